"""C++ programs over the C headers of models of each kind, and what they say."""

from __future__ import annotations

PROGRAM = """\
#include "{name}.h"
#include <nanoloom.hpp>
#include <array>
#include <cassert>
#include <iostream>
#include <thread>

template <class Action> static void refused(Action action) {{
    try {{
        action();
    }} catch (const nanoloom::Error &error) {{
        std::cout << error.status << " " << error.what() << "\\n";
        return;
    }}
    std::cout << "taken\\n";
}}

int main() {{
    nanoloom::Model<nanoloom_{name}_functions> model(1);
{body}
    return 0;
}}
"""
UNCAUGHT = """\
#include "sized.h"
#include <nanoloom.hpp>
int main() {
    nanoloom::Model<nanoloom_sized_functions> model(1);
    model.resize({1, 2});
    std::printf("%d\\n", static_cast<int>(model.input(0).count()));
    std::fflush(stdout);
    model.resize({1, -1});
}
"""
TYPES = """
    g (float16[2] h, bool[2] b, int8[2] i) => (float16[2] y, int8[2] z) {
      y = Neg(h)
      z = Where(b, i, i)
    }
"""
OF_TYPES = """
    std::array<nanoloom::F16, 2> h{{{0x3c00}, {0x4000}}}, y{};
    const std::array<bool, 2> b{true, false};
    std::array<std::int8_t, 2> i{3, -4}, z{};
    auto moved = std::move(model);
    assert(!model.get() && moved.get());
    moved.run({h, b, {i.data(), 2}}, {y, z});
    std::cout << std::hex << y[0].bits << " " << y[1].bits << " " << int{z[1]} << "\\n";
    std::array<nanoloom::BF16, 2> other{};
    refused([&] { moved.run({other, b, i}, {y, z}); });
    refused([&] { moved.run({h, b}, {y, z}); });
    refused([&] { moved.run({h, b, i}, {y, {z.data(), 1}}); });
    refused([&] { moved.buffer<float>(0); });
    refused([&] { moved.output(2); });
    refused([&] { moved.resize({1}); });
    refused([&] { nanoloom::Model<nanoloom_types_functions>(-1); });
    const void *none[] = {h.data(), b.data(), nullptr};
    void *made[] = {y.data(), z.data()};
    std::cout << moved.explain(moved.run(none, made)) << "\\n";
    refused([&] { model.run({h, b, i}, {y, z}); });
    refused([&] { model.output(0); });
    refused([&] { model.limit({}); });
    refused([&] { nanoloom::Model<nanoloom_types_functions>::beside(model); });
    refused([&] { nanoloom::Model<nanoloom_types_functions>(nullptr, nullptr); });
    nanoloom_parallel pool;
    assert(!nanoloom_types_pool(nullptr, &pool) && !pool);
    model = std::move(moved);
    model.run({h, std::array<bool, 2>{}, {i.data(), 2}}, {y, z});
    std::cout << int{z[1]} << "\\n";
"""
SAID_OF_TYPES = """\
bc00 c000 fffffffc
0 h is f16, not bf16
0 the model has 3 inputs, and 2 are given
0 z has 2 elements, and 1 are given
0 y is f16, not f32
0 there is no output 2
0 the model has 0 sizes, and 1 are given
1 no handle: threads are 0 to 1024, memory is out, there is no code for this CPU, or \
no thread pool
an input or output pointer is NULL
1 the model was moved to another variable
1 the model was moved to another variable
1 the model was moved to another variable
1 the model was moved to another variable
1 no handle: threads are 0 to 1024, memory is out, there is no code for this CPU, or \
no thread pool
fffffffc
"""
SIZED = """
    g (float[batch, length] x) => (float[batch] y) {
      axes = Constant<value_ints = [1]>()
      y = ReduceSum<keepdims = 0>(x, axes)
    }
"""
OF_SIZES = """
    refused([&] { model.buffer<float>(0); });
    model.resize({2, 3});
    const std::vector<float> x{1, 2, 3, 4, 5, 6};
    auto y = model.buffer<float>(0);
    model.run({x}, {y});
    std::cout << y[0] << " " << y[1] << " " << model.input(0).shape[1] << "\\n";
    refused([&] { model.resize({2, -1}); });
    refused([&] { model.resize({2}); });
    model.run({x}, {y});
    struct Part { /* a view, as std::span is */
        float *data() const { return first; }
        std::size_t size() const { return 2; }
        float *first;
    };
    float made[2];
    model.run({std::vector<float>(6, 2.0f)}, {Part{made}});
    model.run({std::vector<float>(6, 3.0f)}, {y});
    std::cout << made[0] << " " << y[1] << "\\n";
    model.run({x}, {made});
    static_assert(!std::is_convertible_v<std::vector<float>, nanoloom::Output>);
    static_assert(!std::is_convertible_v<const std::vector<float> &, nanoloom::Output>);
    std::vector<float> none;
    for (std::int64_t length : {0, 3}) {
        model.resize({length ? 0 : 2, length});
        auto sums = model.buffer<float>(0);
        model.run({none}, {sums});
        std::cout << sums.size() << " " << made[0] << "\\n";
    }
"""
SAID_OF_SIZES = """\
6 y has no sizes yet: call resize
6 15 3
7 length is -1, and at least 0 is wanted
0 the model has 2 sizes, and 1 are given
6 9
2 6
0 6
"""
COUNTED = """
    g (float[6] x) => (int64[1, n] y) {
      y = NonZero(x)
    }
"""
OF_COUNTS = """
    const std::vector<float> x{0, 2, 0, 4, 5, 0}, none(6);
    auto y = model.buffer<std::int64_t>(0);
    model.run({none}, {y});
    assert(model.output(0).shape[1] == 0);
    refused([&] { model.run({x}, {{y.data(), 0}}); });
    assert(model.buffer<std::int64_t>(0).size() == 6);
    model.run({x}, {y});
    std::cout << model.output(0).count() << ": " << y[0] << y[1] << y[2] << "\\n";
"""
SAID_OF_COUNTS = """\
0 y has 6 elements, and 0 are given
3: 134
"""
GROWN = """
    g (int64 top) => (int64[n] y) {
      zero = Constant<value_int = 0>()
      one = Constant<value_int = 1>()
      y = Range(zero, top, one)
    }
"""
OF_GROWN = """
    for (std::int64_t top : {3, 500, 0}) {
        auto found = model.run_alloc({{&top, 1}});
        auto made = std::move(found);
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < made.tensors[0].count(); i++)
            sum += made.data<std::int64_t>(0)[i];
        std::cout << made.tensors[0].shape[0] << ": " << sum << "\\n";
        refused([&] { made.data<float>(0); });
        refused([&] { made.data<std::int64_t>(1); });
        found = std::move(made);
        assert(found.tensors.size() == 1 && found.data<std::int64_t>(0));
        refused([&] { made.data<std::int64_t>(0); });
    }
    const std::int64_t far = std::int64_t{1} << 61;
    refused([&] { model.run_alloc({{&far, 1}}); });
    refused([&] { model.run_alloc({}); });
    refused([&] { model.resize({1}); });
    model.limit(std::chrono::nanoseconds(-1));
    const std::int64_t top = 3;
    refused([&] { model.run_alloc({{&top, 1}}); });
"""
SAID_OF_GROWN = """\
3: 3
0 y is i64, not f32
0 there is no output 1
0 there is no output 0
500: 124750
0 y is i64, not f32
0 there is no output 1
0 there is no output 0
0: 0
0 y is i64, not f32
0 there is no output 1
0 there is no output 0
12 node Range_2: the data want 2305843009213693952 elements
0 the model has 1 inputs, and 0 are given
0 the model has 0 sizes, and 1 are given
14 the time of the run was over
"""
# So many times: y = y / 2 + x.
LOOP = """
    g (int64 trips, float[2] x) => (float[2] y) {
      yes = Constant<value = bool {1}>()
      zeros = Sub(x, x)
      y = Loop(trips, yes, zeros) <body = body (int64 i, bool go, float[2] before)
        => (bool on, float[2] after)
        { half = Constant <value = float {0.5}> ()
          on = Identity(go)
          less = Mul(before, half)
          after = Add(less, x) }>
    }
"""
OF_LOOPS = """
    const std::int64_t few = 3, for_ever = std::int64_t{1} << 42;
    const std::vector<float> x{1, -2};
    std::vector<float> y(2);
    auto run = [&](auto &which, const std::int64_t &trips) {
        which.run({{&trips, 1}, x}, {y});
        std::cout << y[0] << " " << y[1] << "\\n";
    };
    auto beside = nanoloom::Model<nanoloom_loop_functions>::beside(model);
    for (auto *each : {&model, &beside}) {
        nanoloom::Cancellation stop;
        each->limit(std::chrono::milliseconds(5));
        refused([&] { run(*each, for_ever); });
        each->limit(std::chrono::nanoseconds(-1));
        refused([&] { run(*each, few); });
        each->limit(std::chrono::hours(1), &stop);
        run(*each, few);
        std::thread other([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            stop.cancel();
        });
        refused([&] { run(*each, for_ever); });
        other.join();
        refused([&] { run(*each, few); });
        each->limit(std::chrono::nanoseconds::max());
        run(*each, few);
        each->limit({});
        run(*each, few);
    }
"""
SAID_OF_LOOPS = (
    2
    * """\
14 the time of the run was over
14 the time of the run was over
1.75 -3.5
13 the run was cancelled
13 the run was cancelled
1.75 -3.5
1.75 -3.5
"""
)
CASES = {
    "types": (TYPES, OF_TYPES, SAID_OF_TYPES),
    "sized": (SIZED, OF_SIZES, SAID_OF_SIZES),
    "counts": (COUNTED, OF_COUNTS, SAID_OF_COUNTS),
    "grown": (GROWN, OF_GROWN, SAID_OF_GROWN),
    "loop": (LOOP, OF_LOOPS, SAID_OF_LOOPS),
}
