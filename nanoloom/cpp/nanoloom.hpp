/* nanoloom.hpp: models that nanoloom compiled, in C++17.
 *
 *     #include "minilm.h"
 *     #include <nanoloom.hpp>
 *
 *     nanoloom::Model<nanoloom_minilm_functions> model;
 *     std::vector<float> x = ..., y = model.buffer<float>(0);
 *     model.run({x}, {y});
 *
 * Everything is inline over the functions of minilm.h; nothing else is linked.  Tensors
 * are views of the caller's memory, dense and row-major: what has data() and size(), an
 * array, or a pointer and a count.  Element types and counts are compared with the
 * model's.  With -fno-exceptions, what would raise Error writes its sentence to stderr
 * and ends the program; Model::run on pointers gives a status in any case. */
#ifndef NANOLOOM_HPP
#define NANOLOOM_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#ifndef NANOLOOM_TYPES_H
#error "include the header of a model in front of nanoloom.hpp"
#endif

namespace nanoloom {

/* What is wrong, as a sentence.  status: an enum nanoloom_status, NANOLOOM_OK where it
 * was found before the model was asked. */
class Error : public std::runtime_error {
public:
    Error(int number, const std::string &text) : std::runtime_error(text), status(number) {}
    const int status;
};

[[noreturn]] inline void fail(int status, const std::string &text) {
#ifdef __cpp_exceptions
    throw Error(status, text);
#else
    std::fprintf(stderr, "nanoloom: %s (status %d)\n", text.c_str(), status);
    std::abort();
#endif
}

/* The bits of 16-bit floats, which C++17 has no types for. */
struct F16 {
    std::uint16_t bits;
};
struct BF16 {
    std::uint16_t bits;
};

/* The model's name of a C++ type. */
template <class T> constexpr nanoloom_element element_of() {
    if constexpr (std::is_same_v<T, bool>) return NANOLOOM_BOOL;
    else if constexpr (std::is_same_v<T, F16>) return NANOLOOM_F16;
    else if constexpr (std::is_same_v<T, BF16>) return NANOLOOM_BF16;
    else if constexpr (std::is_same_v<T, float>) return NANOLOOM_F32;
    else if constexpr (std::is_same_v<T, double>) return NANOLOOM_F64;
    else {
        static_assert(std::is_integral_v<T> && sizeof(T) <= 8, "no element type of a tensor");
        constexpr bool is_signed = std::is_signed_v<T>;
        switch (sizeof(T)) {
        case 1: return is_signed ? NANOLOOM_I8 : NANOLOOM_U8;
        case 2: return is_signed ? NANOLOOM_I16 : NANOLOOM_U16;
        case 4: return is_signed ? NANOLOOM_I32 : NANOLOOM_U32;
        default: return is_signed ? NANOLOOM_I64 : NANOLOOM_U64;
        }
    }
}

inline const char *element_name(int element) {
    constexpr const char *names[] = {"bool", "i8",  "u8",  "i16",  "u16", "i32", "u32",
                                     "i64",  "u64", "f16", "bf16", "f32", "f64"};
    return element < 0 || element > NANOLOOM_F64 ? "another type" : names[element];
}

/* Elements of one type in memory of the caller's.  Byte: const std::byte for inputs.  A
 * temporary is taken where it is read, or is a view itself: it lives as long as the call
 * that it stands in. */
template <class Byte> class View {
    using Pointer = std::conditional_t<std::is_const_v<Byte>, const void *, void *>;
    template <class C>
    using Fits = std::enable_if_t<
        std::is_convertible_v<decltype(std::data(std::declval<C &>())), Pointer>>;

public:
    template <class T>
    View(T *elements, std::size_t number)
        : data(elements), count(number), element(element_of<std::remove_const_t<T>>()) {}

    template <class C, class = Fits<C>>
    View(C &container) : View(std::data(container), std::size(container)) {}
    template <class C, class = Fits<const C>>
    View(const C &container) : View(std::data(container), std::size(container)) {}

    Pointer data;
    std::size_t count;
    int element;
};
using Input = View<const std::byte>;
using Output = View<std::byte>;

/* Name, element type and shape of an input or output; -1: known at run time. */
struct Tensor {
    std::string name;
    int element;
    std::vector<std::int64_t> shape;

    explicit Tensor(const nanoloom_tensor &tensor)
        : name(tensor.name), element(tensor.element),
          shape(tensor.shape, tensor.shape + tensor.rank) {}

    /* How many elements there are; raises Error where a size is not known. */
    std::size_t count() const {
        std::size_t product = 1;
        for (std::int64_t size : shape) {
            if (size < 0)
                fail(NANOLOOM_NO_SIZES, name + " has no sizes yet: call resize");
            product *= static_cast<std::size_t>(size);
        }
        return product;
    }

    /* Raises Error for elements of another type. */
    void require(int other) const {
        if (element != other)
            fail(NANOLOOM_OK,
                  name + " is " + element_name(element) + ", not " + element_name(other));
    }
};

/* What a run has allocated, freed with this: the outputs of a model whose sizes have no
 * bound. */
template <class Functions> class Outputs {
public:
    Outputs() = default;
    Outputs(Outputs &&other) noexcept { *this = std::move(other); }
    Outputs &operator=(Outputs &&other) noexcept {
        std::swap(tensors, other.tensors);
        std::swap(pointers, other.pointers);
        return *this;
    }
    Outputs(const Outputs &) = delete;
    Outputs &operator=(const Outputs &) = delete;
    ~Outputs() { Functions::free_outputs(pointers); }

    /* The elements of an output, tensors[index].count() of them; raises Error. */
    template <class T> const T *data(std::size_t index) const {
        if (index >= tensors.size())
            fail(NANOLOOM_OK, "there is no output " + std::to_string(index));
        tensors[index].require(element_of<T>());
        return static_cast<const T *>(pointers[index]);
    }

    std::vector<Tensor> tensors{}; /* with the shapes that the run found */
    void *pointers[Functions::outputs + 1] = {};
};

/* What ends runs from any thread: `cancel` ends those of all models that have it.  It stays
 * so; it lives as long as models have it. */
class Cancellation {
public:
    Cancellation() = default;
    Cancellation(const Cancellation &) = delete;
    Cancellation &operator=(const Cancellation &) = delete;
    void cancel() noexcept { __atomic_store_n(&word, 1, __ATOMIC_RELEASE); }

    std::int32_t word = 0; /* for the functions of the C header */
};

/* A handle: its threads and its working memory.  One thread runs it at a time; other
 * handles of the model share its parameters.  Functions: nanoloom_MODEL_functions. */
template <class Functions> class Model {
public:
    /* threads: 0 chooses by the CPUs that this process may use. */
    explicit Model(int threads = 0) : Model(Functions::create(threads)) {}

    /* The same, on a thread pool of the caller's: see nanoloom_parallel. */
    Model(nanoloom_parallel parallel, void *context)
        : Model(Functions::create_on(parallel, context)) {}

    /* The same, on the threads of another model, which lives longer. */
    template <class Other> static Model beside(const Model<Other> &other) {
        nanoloom_parallel parallel;
        void *context = Other::pool(other.owned(), &parallel);
        return Model(parallel, context);
    }

    Model(Model &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), room_(std::move(other.room_)) {}
    Model &operator=(Model &&other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(room_, other.room_);
        return *this;
    }
    Model(const Model &) = delete;
    Model &operator=(const Model &) = delete;
    ~Model() { Functions::destroy(handle_); }

    /* For the functions of the C header; nullptr behind a move, where all but this, explain
     * and run on pointers raise Error. */
    typename Functions::handle *get() const noexcept { return handle_; }
    typename Functions::handle *owned() const {
        if (!handle_)
            fail(NANOLOOM_NO_HANDLE, "the model was moved to another variable");
        return handle_;
    }

    /* Numbers of the model's sizes, in the order of its header; none where it has none. */
    void resize(std::initializer_list<std::int64_t> sizes) {
        resize(sizes.begin(), sizes.size());
    }
    void resize(const std::int64_t *sizes, std::size_t count) {
        if (count != std::size_t{Functions::sizes})
            refuse("the model has " + std::to_string(Functions::sizes) + " sizes, and " +
                   std::to_string(count) + " are given");
        if constexpr (Functions::sizes > 0) {
            require(Functions::resize(owned(), sizes));
            room_ = rooms();
        }
    }

    /* An input or output, with the sizes of the last resize; raises Error past the end. */
    Tensor input(std::int32_t index) const {
        owned();
        if constexpr (Functions::sizes > 0) {
            if (const nanoloom_tensor *found = Functions::input_of(owned(), index))
                return Tensor(*found);
        }
        return known(Functions::input(index), "input", index);
    }
    Tensor output(std::int32_t index) const {
        owned();
        if constexpr (Functions::has_output_of) {
            if (const nanoloom_tensor *found = Functions::output_of(owned(), index))
                return Tensor(*found);
        }
        return known(Functions::output(index), "output", index);
    }

    /* Memory for an output: for the largest, where its shape depends on the data. */
    template <class T> std::vector<T> buffer(std::int32_t index) const {
        static_assert(!std::is_same_v<T, bool>, "a vector of bools is no memory of them");
        Tensor tensor = output(index);
        tensor.require(element_of<T>());
        return std::vector<T>(room(tensor, index));
    }

    /* From now on a run takes so long at most, 0 for as long as it takes, and ends when
     * somebody cancels it: run raises Error with NANOLOOM_LATE or NANOLOOM_CANCELLED, and
     * the next one is like any other. */
    void limit(std::chrono::nanoseconds time, const Cancellation *cancellation = nullptr) {
        Functions::limit(owned(), time.count(), cancellation ? &cancellation->word : nullptr);
    }

    /* Reads the inputs, writes the outputs, in the order of the header; raises Error. */
    void run(std::initializer_list<Input> inputs, std::initializer_list<Output> outputs) {
        const void *given[Functions::inputs + 1];
        void *made[Functions::outputs + 1];
        fill(inputs, Functions::inputs, given, "inputs",
             [&](std::int32_t i) { return Place{input(i), input(i).count()}; });
        fill(outputs, Functions::outputs, made, "outputs",
             [&](std::int32_t i) { return Place{output(i), room(output(i), i)}; });
        require(run(given, made));
    }

    /* Reads the inputs and allocates the outputs, of a model whose sizes have no bound. */
    Outputs<Functions> run_alloc(std::initializer_list<Input> inputs) {
        const void *given[Functions::inputs + 1];
        Outputs<Functions> made;
        fill(inputs, Functions::inputs, given, "inputs",
             [&](std::int32_t i) { return Place{input(i), input(i).count()}; });
        require(Functions::run_alloc(owned(), given, made.pointers));
        for (std::int32_t i = 0; i < Functions::outputs; i++)
            made.tensors.push_back(output(i));
        return made;
    }

    /* The same as run without comparisons and exceptions: an enum nanoloom_status. */
    int run(const void *const *inputs, void *const *outputs) noexcept {
        return Functions::run(handle_, inputs, outputs);
    }

    /* How many tokens a session keeps; it forgets all but the first `length`, or makes
     * room for so many.  Only models compiled with --session have these. */
    std::int64_t length() const { return Functions::length(owned()); }
    void rewind(std::int64_t length) { require(Functions::rewind(owned(), length)); }
    void reserve(std::int64_t tokens) { require(Functions::reserve(owned(), tokens)); }

    /* What a status means, with what the handle knows of its last run. */
    std::string explain(int status) const {
        char text[512];
        Functions::explain(handle_, status, text, sizeof text);
        return text;
    }

private:
    explicit Model(typename Functions::handle *handle) : handle_(handle) {
        if (!handle)
            fail(NANOLOOM_NO_HANDLE,
                  "no handle: threads are 0 to 1024, memory is out, there is no code for "
                  "this CPU, or no thread pool");
        if constexpr (Functions::sizes == 0)
            room_ = rooms();
    }

    /* What memory each output needs, where a run says that less of it counts. */
    std::vector<std::size_t> rooms() const {
        std::vector<std::size_t> made;
        if constexpr (Functions::is_counted)
            for (std::int32_t i = 0; i < Functions::outputs; i++)
                made.push_back(Functions::sizes > 0 ? output(i).count()
                                                    : Tensor(*Functions::output(i)).count());
        return made;
    }

    std::size_t room(const Tensor &tensor, std::int32_t index) const {
        if constexpr (Functions::is_counted)
            if (static_cast<std::size_t>(index) < room_.size())
                return room_[static_cast<std::size_t>(index)];
        return tensor.count();
    }

    struct Place {
        Tensor tensor;
        std::size_t count;
    };

    [[noreturn]] static void refuse(const std::string &text) { fail(NANOLOOM_OK, text); }

    void require(int status) const {
        if (status != NANOLOOM_OK)
            fail(status, explain(status));
    }

    static Tensor known(const nanoloom_tensor *tensor, const char *kind, std::int32_t index) {
        if (!tensor)
            refuse("there is no " + std::string(kind) + " " + std::to_string(index));
        return Tensor(*tensor);
    }

    template <class Views, class Pointer, class PlaceOf>
    static void fill(const Views &views, int wanted, Pointer *pointers, const char *kind,
                     PlaceOf place_of) {
        if (views.size() != static_cast<std::size_t>(wanted))
            refuse("the model has " + std::to_string(wanted) + " " + kind + ", and " +
                   std::to_string(views.size()) + " are given");
        std::int32_t index = 0;
        for (const auto &view : views) {
            Place place = place_of(index);
            place.tensor.require(view.element);
            if (view.count != place.count)
                refuse(place.tensor.name + " has " + std::to_string(place.count) +
                       " elements, and " + std::to_string(view.count) + " are given");
            pointers[index++] = view.count ? view.data : pointers; /* no elements, any place */
        }
    }

    typename Functions::handle *handle_;
    std::vector<std::size_t> room_{};
};

} // namespace nanoloom

#endif
