/* Runs a model that nanoloom compiled, from C++.  README.md beside this file says how to
 * build it.
 *
 *     ./distances [SIZE...]      numbers of the named dimensions, 1 where none is given
 *
 * The input is f32 and filled with 0, 0.25, 0.5, ... 1.5, over and over; the first
 * elements of the output are printed. */
#include "model.h"
#include <nanoloom.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>

using Functions = nanoloom_model_functions;

static std::vector<float> quarters(std::size_t count)
{
    std::vector<float> numbers(count);
    for (std::size_t i = 0; i < count; i++)
        numbers[i] = 0.25f * static_cast<float>(i % 7);
    return numbers;
}

static void print(const nanoloom::Tensor &tensor, const std::vector<float> &numbers)
{
    std::cout << tensor.name << ":";
    for (std::size_t i = 0; i < std::min<std::size_t>(tensor.count(), 8); i++)
        std::cout << " " << numbers[i];
    std::cout << "\n";
}

int main(int count, char **words)
try {
    nanoloom::Model<Functions> model;
    std::vector<std::int64_t> sizes(Functions::sizes, 1);
    for (std::size_t i = 0; i < sizes.size() && static_cast<int>(i) + 1 < count; i++)
        sizes[i] = std::atoll(words[i + 1]);
    if (!sizes.empty())
        model.resize(sizes.data(), sizes.size());
    const std::vector<float> x = quarters(model.input(0).count());
    std::vector<float> y = model.buffer<float>(0);
    model.run({x}, {y});
    print(model.output(0), y);
    return 0;
} catch (const nanoloom::Error &error) {
    std::cerr << error.what() << "\n";
    return 1;
}
