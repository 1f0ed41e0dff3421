#include <gtest/gtest.h>

#include "tests/codegen/both_ways.h"

namespace tessera::codegen {
namespace {

constexpr std::int64_t kOddSizes[] = {0, 1, 3, 7, 31, 127, 128, 129, 257};

TEST(Kernels, AddVectorsOfAnyLength) {
  const tile::Kernel kernel = parsed(R"(kernel add(x: *f32, y: *f32, out: *f32, n: i64) {
    lane: i64[128] = iota()
    i = add(mul(pid(), 128), lane)
    mask = lt(i, n)
    a = load(offset(x, i), mask)
    b = load(offset(y, i), mask)
    store(offset(out, i), add(a, b), mask)
  })");
  for (const std::int64_t n : kOddSizes) {
    TestArguments arguments(1);
    arguments.pointer(DType::F32, n)
        .pointer(DType::F32, n)
        .pointer(DType::F32, n)
        .integer(DType::I64, n);
    expect_both_ways(kernel, arguments, {(n + 127) / 128, 1, 1}, 0);
  }
}

/// The views that such masks become end before they begin: they are empty.
TEST(Kernels, MasksThatNoElementSatisfies) {
  const tile::Kernel none = parsed(R"(kernel none(x: *f32, out: *f32, n: i64) {
    i: i64[32] = iota()
    a = load(offset(x, i), lt(i, n), 7.0)
    store(offset(out, i), a)
    store(offset(x, i), a, lt(i, n))
  })");
  for (const std::int64_t n : {-100, -1, 0, 5}) {
    TestArguments arguments(6);
    arguments.pointer(DType::F32, 32).pointer(DType::F32, 32).integer(DType::I64, n);
    expect_both_ways(none, arguments, {1, 1, 1}, 0);
  }
  const tile::Kernel before = parsed(R"(kernel before(x: *f32, out: view f32[4, 2]) {
    lane: i64[2] = iota()
    for (r = 0 to 4 step 1) {
      i = add(lane, sub(r, 3))
      a = load(offset(x, i), ge(i, 0), 7.0)
      vstore(out, r, 0, reshape(a): f32[1, 2])
      yield()
    }
  })");
  TestArguments arguments(7);
  arguments.pointer(DType::F32, 2).view(DType::F32, {4, 2});
  expect_both_ways(before, arguments, {1, 1, 1}, 0);
}

TEST(Kernels, AddViewsOfAnyTypeAndLength) {
  for (const char* type :
       {"f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}) {
    const tile::Kernel kernel =
        parsed(fmt::format(R"(kernel add(x: view {0}[?], y: view {0}[?], out: view {0}[?]) {{
      at = mul(pid(), 128)
      a: {0}[128] = vload(x, at)
      b: {0}[128] = vload(y, at)
      vstore(out, at, add(mul(a, b), a))
    }})",
                           type));
    const DType dtype = *parse_dtype(type);
    for (const std::int64_t n : kOddSizes) {
      TestArguments arguments(2);
      arguments.view(dtype, {n}).view(dtype, {n}).view(dtype, {n});
      expect_both_ways(kernel, arguments, {(n + 127) / 128, 1, 1}, 0);
    }
  }
}

TEST(Kernels, SoftmaxOfRows) {
  const tile::Kernel kernel = parsed(R"(kernel softmax(x: view f32[?, ?], out: view f32[?, ?]) {
    row = pid()
    t: f32[1, 256] = vload(x, row, 0) {pad = -inf}
    m = reduce(t) {fn = max, axis = 1}
    e = exp(sub(t, broadcast(reshape(m): f32[1, 1]): f32[1, 256]))
    s = reduce(e) {fn = add, axis = 1}
    vstore(out, row, 0, div(e, broadcast(reshape(s): f32[1, 1]): f32[1, 256]))
  })");
  for (const std::int64_t n : {1, 3, 7, 127, 128, 129, 255, 256}) {
    TestArguments arguments(3);
    arguments.view(DType::F32, {5, n}).view(DType::F32, {5, n});
    expect_both_ways(kernel, arguments, {5, 1, 1});
  }
}

TEST(Kernels, ReductionsAlongEitherAxis) {
  for (const char* fn : {"add", "max", "min", "maximum", "minimum", "mul"}) {
    for (const int axis : {0, 1}) {
      const tile::Kernel kernel =
          parsed(fmt::format(R"(kernel fold(x: view f32[?, ?], out: view f32[?]) {{
        t: f32[24, 40] = vload(x, 0, 0) {{pad = 1.0}}
        r = reduce(t) {{fn = {}, axis = {}}}
        vstore(out, 0, r)
      }})",
                             fn, axis));
      for (const std::int64_t n : {1, 7, 23, 40, 41}) {
        TestArguments arguments(4);
        arguments.view(DType::F32, {n, n}).view(DType::F32, {50});
        expect_both_ways(kernel, arguments, {1, 1, 1});
      }
    }
  }
}

TEST(Kernels, TransposesAndSlices) {
  const tile::Kernel kernel = parsed(R"(kernel move(x: view i32[?, ?], out: view i32[?, ?]) {
    t: i32[16, 24] = vload(x, 0, 0)
    p = permute(t) {order = [1, 0]}
    s: i32[8, 16] = slice(p) {from = [4, 0]}
    r: i32[128] = reshape(s)
    q: i32[16, 8] = reshape(add(r, r))
    vstore(out, 1, 2, concat(q, q) {axis = 1})
  })");
  TestArguments arguments(5);
  arguments.view(DType::I32, {13, 24}).view(DType::I32, {18, 17});
  expect_both_ways(kernel, arguments, {1, 1, 1});
}

TEST(Kernels, MultipliesMatricesOfAnyShape) {
  const tile::Kernel kernel =
      parsed(R"(kernel matmul(a: view f32[?, ?], b: view f32[?, ?], c: view f32[?, ?]) {
    m = mul(pid(), 32)
    n = mul(pid() {axis = 1}, 48)
    k = dim(a) {axis = 1}
    zero: f32[32, 48] = 0.0
    (sum: f32[32, 48]) = for (i: i64 = 0 to k step 16, acc: f32[32, 48] = zero) {
      x: f32[32, 16] = vload(a, m, i)
      y: f32[16, 48] = vload(b, i, n)
      yield(dot(x, y, acc))
    }
    vstore(c, m, n, sum)
  })");
  for (const std::int64_t n : {1, 3, 7, 31, 32, 33, 64, 65}) {
    TestArguments arguments(6);
    arguments.view(DType::F32, {n, n + 2})
        .view(DType::F32, {n + 2, n + 1})
        .view(DType::F32, {n, n + 1});
    expect_both_ways(kernel, arguments, {(n + 31) / 32, (n + 48) / 48, 1}, 1e-4);
  }
}

TEST(Kernels, MultiplyByATileOfOneNumber) {
  const tile::Kernel kernel =
      parsed(R"(kernel scale(x: view f32[?, ?], s: f32, out: view f32[?, ?]) {
    a: f32[8, 1] = vload(x, 0, 0)
    b: f32[1, 1] = reshape(s)
    vstore(out, 0, 0, dot(a, b, 0))
  })");
  TestArguments arguments(8);
  arguments.view(DType::F32, {8, 1}).number(DType::F32, 1.5).view(DType::F32, {8, 1});
  expect_both_ways(kernel, arguments, {1, 1, 1});
}

TEST(Kernels, CarryTilesThroughLoopsAndBranches) {
  const tile::Kernel kernel = parsed(R"(kernel swap(x: view i32[?], out: view i32[?], n: i64) {
    a: i32[32] = vload(x, 0)
    b: i32[32] = vload(x, 32)
    (p: i32[32], q: i32[32]) = for (i: i64 = 0 to n step 1, u: i32[32] = a, v: i32[32] = b) {
      odd = eq(rem(i, 2), 1)
      (w: i32[32]) = if (odd) { yield(add(u, v)) } else { yield(sub(u, v)) }
      yield(v, w)
    }
    vstore(out, 0, p)
    vstore(out, 32, q)
  })");
  for (const std::int64_t n : {0, 1, 2, 5}) {
    TestArguments arguments(7);
    arguments.view(DType::I32, {64}).view(DType::I32, {64}).integer(DType::I64, n);
    expect_both_ways(kernel, arguments, {1, 1, 1});
  }
}

}  // namespace
}  // namespace tessera::codegen
