#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "tessera/codegen/compile.h"
#include "tessera/support/rng.h"
#include "tessera/support/tensor.h"
#include "tessera/tile/interp.h"
#include "tessera/tile/text.h"
#include "tessera/tile/verify.h"
#include "tessera/triton/lower.h"

namespace tessera::triton {

inline const std::filesystem::path kFixtures =
    std::filesystem::path(TESSERA_SOURCE_DIR) / "tests" / "triton" / "fixtures";

/// TTIR of a kernel in kernels.py, as each version of Triton prints it that prints it differently.
inline std::vector<std::filesystem::path> fixtures_of(const std::string& name) {
  std::vector<std::filesystem::path> paths;
  for (const char* version : {"3.6", "3.9"}) {
    const auto path = kFixtures / version / (name + ".ttir");
    if (std::filesystem::exists(path)) paths.push_back(path);
  }
  EXPECT_FALSE(paths.empty()) << "no fixture of " << name;
  return paths;
}

inline std::string text_at(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline tile::Kernel kernel_at(const std::filesystem::path& path) {
  auto kernel = kernel_of(text_at(path), path.filename().string());
  EXPECT_TRUE(kernel) << path << ": " << (kernel ? "" : to_string(kernel.error()));
  return kernel ? *std::move(kernel) : tile::Kernel{};
}

/// Memory of the arguments of a launch after it.
struct Memory {
  std::string run;  // which fixture and what ran it
  std::vector<std::vector<std::byte>> buffers;

  /// What the n-th argument holds.
  template <class T>
  std::vector<T> of(std::size_t argument) const {
    std::vector<T> numbers(buffers[argument].size() / sizeof(T));
    std::memcpy(numbers.data(), buffers[argument].data(), numbers.size() * sizeof(T));
    return numbers;
  }
};

/// Launch of a fixture by the interpreter and as machine code, on the same data.
class Launch {
 public:
  explicit Launch(std::string name) : name_(std::move(name)) {}

  template <class T>
  Launch& memory(const std::vector<T>& numbers) {
    std::vector<std::byte> bytes(numbers.size() * sizeof(T));
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    buffers_.push_back(std::move(bytes));
    numbers_.emplace_back();
    return *this;
  }
  Launch& number(double value) {
    buffers_.emplace_back();
    numbers_.emplace_back(value);
    return *this;
  }
  template <class... Values>
  Launch& numbers(Values... values) {
    (number(static_cast<double>(values)), ...);
    return *this;
  }
  /// Called with the arguments before each run: for memory that holds addresses.
  Launch& before(std::function<void(std::span<tile::Argument>)> fill) {
    fill_ = std::move(fill);
    return *this;
  }

  /// Runs every fixture both ways. Integers of the two have to be equal, floats within `tolerance`
  /// of their size.
  std::vector<Memory> run(const tile::Grid& grid, double tolerance = 1e-5) {
    std::vector<Memory> all;
    for (const auto& path : fixtures_of(name_)) {
      const std::string version = path.parent_path().filename().string();
      const tile::Kernel kernel = kernel_at(path);
      if (kernel.params().size() != buffers_.size()) {
        ADD_FAILURE() << path << " has " << kernel.params().size() << " parameters";
        continue;
      }
      Memory interpreted{version + " by the interpreter", buffers_};
      const auto expected = arguments(kernel, interpreted);
      const auto by_interpreter = tile::interpret(kernel, expected, grid);
      EXPECT_TRUE(by_interpreter) << path << ": "
                                  << (by_interpreter ? "" : to_string(by_interpreter.error()));
      Memory native{version + " as machine code", buffers_};
      const auto actual = arguments(kernel, native);
      const auto compiled = codegen::compile(kernel);
      if (!compiled) {
        ADD_FAILURE() << path << ": " << to_string(compiled.error());
        continue;
      }
      const auto launched = (*compiled)->launch(actual, grid, 2);
      EXPECT_TRUE(launched) << path << ": " << (launched ? "" : to_string(launched.error()));
      for (std::size_t i = 0; i < buffers_.size(); ++i) {
        if (!buffers_[i].empty() && !fill_) compare(kernel, interpreted, native, i, tolerance);
      }
      all.push_back(std::move(interpreted));
      all.push_back(std::move(native));
    }
    return all;
  }

  std::vector<tile::Argument> arguments(const tile::Kernel& kernel, Memory& memory) const {
    std::vector<tile::Argument> made;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const tile::Type& type = kernel.type(kernel.params()[i]);
      if (type.is_pointer()) {
        made.push_back(tile::Argument::pointer(type.dtype, memory.buffers[i].data(),
                                               std::ssize(memory.buffers[i])));
      } else if (is_float(type.dtype)) {
        made.push_back(tile::Argument::number(type.dtype, numbers_[i]));
      } else {
        made.push_back(tile::Argument::integer(type.dtype, static_cast<std::int64_t>(numbers_[i])));
      }
    }
    if (fill_) fill_(made);
    return made;
  }
  const std::vector<std::vector<std::byte>>& buffers() const { return buffers_; }

 private:
  static void compare(const tile::Kernel& kernel, const Memory& expected, const Memory& actual,
                      std::size_t argument, double tolerance) {
    const DType dtype = kernel.type(kernel.params()[argument]).dtype;
    const auto &want = expected.buffers[argument], &got = actual.buffers[argument];
    if (!is_float(dtype)) {
      EXPECT_EQ(want, got) << actual.run << ": argument " << argument;
      return;
    }
    const std::int64_t count = std::ssize(want) / byte_width(dtype);
    const Tensor left{dtype, {count}, Bytes::copy(want)}, right{dtype, {count}, Bytes::copy(got)};
    for (std::int64_t i = 0; i < count; ++i) {
      const double x = number_at(left, i), y = number_at(right, i);
      if ((std::isnan(x) && std::isnan(y)) || x == y) continue;
      ASSERT_LE(std::fabs(x - y), tolerance * std::max(1.0, std::fabs(x)))
          << actual.run << ": argument " << argument << " at " << i;
    }
  }

  std::string name_;
  std::vector<std::vector<std::byte>> buffers_;
  std::vector<double> numbers_;
  std::function<void(std::span<tile::Argument>)> fill_;
};

/// Floats from -2 to 2 that follow from the seed.
inline std::vector<float> random_floats(std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> numbers(count);
  for (float& x : numbers) x = static_cast<float>(rng.uniform() * 4 - 2);
  return numbers;
}

/// Integers from `least` to `least + count_of_values - 1`.
inline std::vector<std::int32_t> random_integers(std::size_t count, std::uint64_t seed,
                                                 std::int64_t least, std::uint64_t values) {
  Rng rng(seed);
  std::vector<std::int32_t> numbers(count);
  for (auto& x : numbers)
    x = static_cast<std::int32_t>(least + static_cast<std::int64_t>(rng.below(values)));
  return numbers;
}

inline void expect_near(const std::vector<float>& actual, const std::vector<double>& expected,
                        const std::string& run, double tolerance = 1e-5) {
  ASSERT_EQ(actual.size(), expected.size()) << run;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(actual[i])) continue;
    if (static_cast<double>(actual[i]) == expected[i]) continue;
    ASSERT_LE(std::fabs(static_cast<double>(actual[i]) - expected[i]),
              tolerance * std::max(1.0, std::fabs(expected[i])))
        << run << " at " << i;
  }
}

}  // namespace tessera::triton
