#include <gtest/gtest.h>

#include <cmath>

#include "examples/attention.h"
#include "examples/dropout.h"
#include "examples/histogram.h"
#include "examples/layer_norm.h"
#include "examples/matmul.h"
#include "examples/softmax.h"
#include "examples/vector_add.h"
#include "tests/codegen/both_ways.h"

namespace tessera::codegen {
namespace {

using namespace tile::examples;

constexpr DType kFloats[] = {DType::F16, DType::BF16, DType::F32, DType::F64};
constexpr DType kNumbers[] = {DType::F16, DType::BF16, DType::F32, DType::F64, DType::I8,
                              DType::I16, DType::I32,  DType::I64, DType::U8,  DType::U64};

/// Half the distance from 1 to the next number.
double rounding(DType dtype) {
  switch (dtype) {
    case DType::F16: return 0x1p-11;
    case DType::BF16: return 0x1p-8;
    case DType::F32: return 0x1p-24;
    default: return 0x1p-53;
  }
}

/// How far a sum of so many products may be from the exact one, in relation to 1 or its size: a
/// rounding for each step of the sum, in its own type, and a few for the result. Data is up to 2.
double bound(DType dtype, std::int64_t length) {
  const double steps = static_cast<double>(length) + 8;
  return 4 * steps * rounding(tile::accumulator(dtype)) + 4 * rounding(dtype);
}

/// One row of the table: a kernel of a dtype on data of a size.
using Try = std::function<void(DType dtype, std::int64_t n)>;

void run(const Expected<tile::Kernel>& kernel, const TestArguments& arguments,
         const tile::Grid& grid, double tolerance) {
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  expect_both_ways(*kernel, arguments, grid, tolerance);
}

void try_vector_add(DType dtype, std::int64_t n) {
  TestArguments arguments(1);
  arguments.pointer(dtype, n).pointer(dtype, n).pointer(dtype, n).integer(DType::I64, n);
  run(vector_add(dtype, 64), arguments, {tile::cdiv(n, 64), 1, 1}, 0);
}

void try_softmax(DType dtype, std::int64_t n) {
  TestArguments arguments(2);
  arguments.view(dtype, {3, n}).view(dtype, {3, n});
  run(softmax(dtype, n), arguments, {3, 1, 1}, bound(dtype, n));
}

void try_layer_norm(DType dtype, std::int64_t n) {
  TestArguments arguments(3);
  arguments.view(dtype, {3, n}).view(dtype, {n}).view(dtype, {n}).view(dtype, {3, n});
  arguments.number(DType::F32, 1e-2);
  run(layer_norm(dtype, n), arguments, {3, 1, 1}, 16 * bound(dtype, n));
}

void try_matmul(DType dtype, std::int64_t n) {
  constexpr MatmulTiles kTiles{32, 48, 16, 2};
  const std::int64_t m = n + 2, k = n == 5 ? 0 : n;
  const DType result = sum_dtype(dtype);
  TestArguments arguments(4);
  arguments.view(dtype, {m, k}).view(dtype, {k, n}).view(result, {m, n});
  run(matmul(dtype, result, kTiles), arguments, {matmul_programs(m, n, kTiles), 1, 1},
      bound(result, k));
}

void try_matmul_bias(DType dtype, std::int64_t n) {
  constexpr MatmulTiles kTiles{16, 32, 64, 8};
  for (const Activation activation :
       {Activation::Identity, Activation::Relu, Activation::Gelu, Activation::Silu}) {
    TestArguments arguments(5);
    arguments.view(dtype, {n, n})
        .view(dtype, {n, n + 1})
        .view(dtype, {n + 1})
        .view(dtype, {n, n + 1});
    run(matmul_bias(dtype, kTiles, activation), arguments,
        {matmul_programs(n, n + 1, kTiles), 1, 1}, bound(dtype, n));
  }
}

void try_matmul_pointers(DType dtype, std::int64_t n) {
  constexpr MatmulTiles kTiles{32, 16, 32, 3};
  TestArguments arguments(6);
  arguments.pointer(dtype, n * (n + 3)).pointer(dtype, n * n).pointer(dtype, n * n);
  // a is transposed and has gaps.
  for (const std::int64_t number :
       {n, n, n, std::int64_t{1}, n + 3, n, std::int64_t{1}, n, std::int64_t{1}})
    arguments.integer(DType::I64, number);
  run(matmul_pointers(dtype, kTiles), arguments, {matmul_programs(n, n, kTiles), 1, 1},
      bound(dtype, n));
}

void try_matmul_packed(DType dtype, std::int64_t n) {
  constexpr MatmulTiles kTiles{32, 48, 16, 2};
  constexpr std::int64_t kPanel = 24;
  TestArguments arguments(7);
  arguments.view(dtype, {n + 1, n})
      .view(dtype, {tile::cdiv(n, kPanel), n, kPanel})
      .view(dtype, {n + 1, n});
  run(matmul_packed(dtype, kTiles, kPanel), arguments, {matmul_programs(n + 1, n, kTiles), 1, 1},
      bound(dtype, n));
}

void try_attention(DType dtype, std::int64_t n) {
  for (const Mask mask : {Mask::None, Mask::Causal}) {
    TestArguments arguments(8);
    for (int i = 0; i < 4; ++i) arguments.view(dtype, {2, n, 16});
    // Scores and powers are rounded to the dtype before they are multiplied.
    run(attention(dtype, 16, {32, 32}, mask), arguments, {tile::cdiv(n, 32), 2, 1},
        bound(dtype, n) + 16 * rounding(dtype));
  }
}

void try_dropout(DType dtype, std::int64_t n) {
  TestArguments arguments(9);
  arguments.pointer(dtype, n).pointer(dtype, n).integer(DType::I64, n);
  arguments.number(DType::F32, 0.3).integer(DType::I64, 12345678901);
  run(dropout(dtype, 64), arguments, {tile::cdiv(n, 64), 1, 1}, 2 * rounding(dtype));
}

void try_histogram(DType, std::int64_t n) {
  TestArguments arguments(10);
  arguments.pointer(DType::I32, n)
      .pointer(DType::I32, 50)
      .integer(DType::I64, n)
      .integer(DType::I64, 50);
  run(histogram(64), arguments, {tile::cdiv(n, 64), 1, 1}, 0);
}

struct Entry {
  const char* name;
  Try attempt;
  std::vector<DType> dtypes;
  std::int64_t least = 0;  // a tile has at least one element
};

const std::vector<Entry>& table() {
  static const std::vector<DType> floats(std::begin(kFloats), std::end(kFloats));
  static const std::vector<DType> numbers(std::begin(kNumbers), std::end(kNumbers));
  static const std::vector<DType> products = {DType::F16, DType::BF16, DType::F32,
                                              DType::F64, DType::I8,   DType::U8};
  static const std::vector<Entry> entries = {
      {"vector_add", try_vector_add, numbers},
      {"softmax", try_softmax, floats, 1},
      {"layer_norm", try_layer_norm, floats, 1},
      {"matmul", try_matmul, products},
      {"matmul_bias", try_matmul_bias, floats},
      {"matmul_pointers", try_matmul_pointers, floats},
      {"matmul_packed", try_matmul_packed, floats},
      {"attention", try_attention, floats},
      {"dropout", try_dropout, floats},
      {"histogram", try_histogram, {DType::I32}},
  };
  return entries;
}

void try_sizes(std::initializer_list<std::int64_t> sizes) {
  for (const Entry& entry : table()) {
    for (const DType dtype : entry.dtypes) {
      for (const std::int64_t n : sizes) {
        if (n < entry.least) continue;
        SCOPED_TRACE(fmt::format("{} of {}, size {}", entry.name, to_string(dtype), n));
        entry.attempt(dtype, n);
      }
    }
  }
}

TEST(Examples, OfEveryTypeAndOddSizeAreAsInterpreted) {
  try_sizes({0, 7, 65});
}

TEST(SlowExamples, OfEveryTypeAndOddSizeAreAsInterpreted) {
  try_sizes({1, 3, 5, 15, 16, 17, 31, 32, 33, 63, 64, 127, 128, 129, 257});
}

}  // namespace
}  // namespace tessera::codegen
