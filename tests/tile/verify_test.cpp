#include "tessera/tile/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/tile/builder.h"
#include "tessera/tile/text.h"
#include "tests/tile/random_kernel.h"

namespace tessera::tile {
namespace {

using ::testing::HasSubstr;

/// The diagnostic of a kernel with these statements; empty for a good one.
std::string mistake_of(const std::string& body) {
  const auto kernel = parse_kernel(
      "kernel k(x: f32, n: i64, b: bool, p: *f32, q: *i32, v: view f32[?, 8], w: view i8[4]) {\n"
      "t: f32[4, 8] = 1.0 i: i32[4, 8] = 1 c: bool[4, 8] = true h: f16[8, 4] = 1.0\n" +
      body + "\n}\n");
  return kernel ? std::string{} : to_string(kernel.error());
}

struct Row {
  std::string body, note;
};

const std::vector<Row> kIllTyped = {
    {"a = pid() {axis = 3}", "axis 0, 1 or 2"},
    {"a = npid() {axis = -1}", "axis 0, 1 or 2"},
    {"a = pid(n)", "0 operands"},
    {"a: i32 = pid()", "the result is i64"},
    {"a: *f32 = 0", "the result is a number or a tile of numbers"},
    {"a: f32[4] = iota()", "the result is a tile of integers with one axis"},
    {"a: i32[2, 2] = iota()", "the result is a tile of integers with one axis"},
    {"a: i8[129] = iota()", "numbers that the dtype can hold"},
    {"a: f8e4m3fn[4] = 0", "a dtype to compute with: small types are stored in i8 or u8"},
    {"a: f32[5, 8] = broadcast(t)", "a scalar, or a tile of the result's rank"},
    {"a: f32[2, 4, 8] = broadcast(t)", "a scalar, or a tile of the result's rank"},
    {"a: f64[4] = broadcast(x)", "a scalar, or a tile of the result's rank"},
    {"a: f32[33] = reshape(t)", "as many elements of the same dtype"},
    {"a: f64[32] = reshape(t)", "as many elements of the same dtype"},
    {"a = permute(t) {order = [0, 0]}", "a tile, and each of its axes once"},
    {"a = permute(t) {order = [0]}", "a tile, and each of its axes once"},
    {"a = concat(t, h) {axis = 0}", "tiles that differ along the axis alone"},
    {"a = concat(t, t) {axis = 2}", "tiles of the same rank that have the axis"},
    {"a = concat()", "1 or more operands"},
    {"a: f32[4, 4] = slice(t) {from = [0, 5]}", "a part that lies inside of the tile"},
    {"a: f32[4, 4] = slice(t) {from = [0, -1]}", "a part that lies inside of the tile"},
    {"a: f32[4, 4] = slice(t) {from = [0]}", "a part that lies inside of the tile"},
    {"a = add(t, h)", "operands of equal types"},
    {"a = add(b, b)", "floats or integers"},
    {"a = exp(i)", "floats"},
    {"a = shl(t, t)", "integers"},
    {"a = and(x, x)", "integers or bools"},
    {"a = fma(x, x)", "3 operands"},
    {"a = select(i, t, t)", "a bool for every element"},
    {"a = neg(p)", "floats or integers"},
    {"a: i32[4] = cast(t)", "numbers, and a result of the same shape"},
    {"a: f16[4, 8] = bitcast(t)", "numbers and a result of the same shape whose elements"},
    {"a: i8 = bitcast(b)", "numbers and a result of the same shape whose elements"},
    {"a = reduce(t) {fn = add, axis = 2}", "tiles of one shape that have the axis"},
    {"a = reduce(x) {fn = add}", "tiles of one shape that have the axis"},
    {"a = reduce(t) {fn = sub}", "one tile with add, mul, min"},
    {"a = reduce(t) {fn = xor}", "integers or bools"},
    {"a = scan(t) {fn = add, reverse = 2}", "reverse is 0 or 1"},
    {"a = reduce(t) (l, r) { yield(l, r) }", "a region that yields (f32), not (f32, f32)"},
    {"a = reduce(t) (l) { yield(l) }", "a region of (f32, f32), not of (f32)"},
    {"(a, s) = reduce(t, h) (l, m, r, s) { yield(l, m) }", "tiles of one shape"},
    {"a = gather(t, t)", "a tile and integers whose shape differs along the axis alone"},
    {"j: i32[5, 8] = 0 a = gather(t, j) {axis = 1}", "a tile and integers whose shape"},
    {"a = dot(t, t, t)", "tiles a[m, k], b[k, n], c[m, n]"},
    {"g: f16[4, 8] = 1 z: f16[4, 5] = 0 a = dot(g, h, z)", "tiles a[m, k], b[k, n], c[m, n]"},
    {"z: f32[4, 4] = 0 a = dot(t, h, z)", "floats of one type"},
    {"r: i32[8, 4] = 1 z: i32[4, 4] = 0 a = dot(i, r, z)", "floats of one type"},
    {"a = offset(x, n)", "pointers and as many integers"},
    {"a = offset(p, x)", "pointers and as many integers"},
    {"a = load(x)", "pointers"},
    {"a = load(p, x)", "a mask of a bool for every pointer"},
    {"a = load(p, b, n)", "a mask, then what stands in for it"},
    {"store(p, n)", "pointers and what they point to"},
    {"store(p, x, n)", "a mask of a bool for every pointer"},
    {"a = store(p, x)", "0 results"},
    {"a: view f32[?] = view(p)", "a pointer and 1 extents and strides"},
    {"a: view f32[4] = view(p, n)", "a pointer and 0 extents and strides"},
    {"a: view i32[4] = view(p)", "a pointer to the elements of the view"},
    {"a: view f32[?] = view(p, x)", "extents, strides and offsets of i64 or i32"},
    {"a = dim(v) {axis = 2}", "an axis of a view"},
    {"a = dim(p)", "an axis of a view"},
    {"a = base(p)", "a view"},
    {"a: f32[4] = vload(v, 0, 0)", "a view, and a tile of its dtype and rank"},
    {"a: f16[4, 8] = vload(v, 0, 0)", "a view, and a tile of its dtype and rank"},
    {"a: f32[4, 8] = vload(v, 0)", "an offset for each axis"},
    {"a: f32[4, 8] = vload(v, 0, x)", "extents, strides and offsets of i64 or i32"},
    {"a: f32[4, 8] = vload(v, 0, 0) {inside = [1]}", "inside is 0 or 1 for each axis"},
    {"a: i8[4] = vload(w, 0) {pad = 128}", "a number that i8 can hold"},
    {"vstore(v, 0, 0, h)", "a view, and a tile of its dtype and rank"},
    {"vstore(v, 0, t)", "an offset for each axis"},
    {"a = atomic(p, x) {fn = mul}", "add, min, max, and, or, xor or exchange"},
    {"a = atomic(p, x) {fn = or}", "integers or bools"},
    {"a = atomic(q, x) {fn = add}", "pointers and what they point to"},
    {"a = cas(p, x, x)", "pointers to integers"},
    {"for (j = x to x step x) {}", "from, to and step of i64, or all of i32"},
    {"for (j = 0 to n step 1) stages -1 {}", "stages and unroll of at least 0"},
    {"for (j = 0 to n step 1, a = v) { yield(a) }", "carried values that are numbers or"},
    {"for (j = 0 to n step 1, a = x) { yield(n) }", "a region that yields (f32), not (i64)"},
    {"while (a = x) { yield(a) } do { yield(a) }", "a region that yields (bool), not (f32)"},
    {"a = if (n) { yield(x) } else { yield(x) }", "one bool"},
    {"a = if (b) { yield(x) } else { yield(n) }", "a region that yields (f32), not (i64)"},
    {"a = if (b) { yield(v) } else { yield(v) }", "results that are numbers or pointers"},
    {"assume(c)", "one bool"},
    {"assert(x)", "a bool or a tile of bools"},
    {"print(v)", "numbers and tiles of numbers"},
    {"a = hint(x) {multiple_of = [4]}", "integers or pointers"},
    {"a = hint(n) {multiple_of = [0]}", "a number of at least 1 for each axis"},
    {"a = hint(i) {multiple_of = [4]}", "a number of at least 1 for each axis"},
    {"barrier(n)", "0 operands"},
};

TEST(Verify, SaysWhatWasExpectedOfIllTypedOperations) {
  for (const Row& row : kIllTyped) {
    SCOPED_TRACE(row.body);
    const std::string found = mistake_of(row.body);
    EXPECT_THAT(found, HasSubstr("error[tile-type]"));
    EXPECT_THAT(found, HasSubstr("line 3"));
    EXPECT_THAT(found, HasSubstr("note: " + row.note));
  }
}

TEST(Verify, AcceptsWhatIsRight) {
  for (const char* body : {
           "a: f32[4, 8] = reshape(reshape(t): f32[32])",
           "a: f32[1] = reshape(x) r: f32 = reshape(a)",
           "a: *f32[4] = broadcast(p) s: *f32[2] = slice(a) {from = [2]}",
           "j: i64[4, 5] = 0 a = gather(t, j) {axis = 1}",
           "z: f32[4, 4] = 0 g: f16[4, 8] = 1 a = dot(g, h, z)",
           "g: i8[4, 8] = 1 r: u8[8, 4] = 1 z: i32[4, 4] = 0 a = dot(g, r, z)",
           "a: view f32[?, 4] by [?, ?] = view(p, n, 4, cast(n): i32)",
           "a = atomic(offset(p, 4), 1.0, b) {fn = exchange}",
           "s = for (j = 0 to n step 1, r = p) { yield(offset(r, 1)) }",
       }) {
    EXPECT_EQ(mistake_of(body), "") << body;
  }
}

TEST(Verify, AcceptsEveryRandomKernel) {
  testing::for_each_random_kernel(1000, 100, {}, [](const auto& random) {
    const auto verified = verify(random.kernel);
    EXPECT_TRUE(verified) << to_string(verified.error());
  });
}

// Mistakes that no text can have.

Kernel nested_kernel() {
  return *parse_kernel(
      "kernel k(x: f32, n: i64) {\n"
      "a = for (i = 0 to n step 1, acc = x) { yield(neg(acc)) }\n"
      "b = neg(a)\n"
      "}");
}

std::string structure_mistake(const Kernel& kernel) {
  const auto verified = verify(kernel);
  if (verified) return {};
  EXPECT_EQ(verified.error().id, "tile-structure");
  return verified.error().message;
}

OpId only(const Kernel& kernel, Code code) {
  for (OpId id = 0; id < kernel.ops.size(); ++id) {
    if (kernel.ops[id].code == code) return id;
  }
  return 0;
}

TEST(Verify, RefusesIdsOutOfRange) {
  Kernel kernel = nested_kernel();
  kernel.ops.back().in[0] = 1000;
  EXPECT_EQ(structure_mistake(kernel), "neg uses value 1000");
  kernel = nested_kernel();
  kernel.ops.back().out[0] = 1000;
  EXPECT_EQ(structure_mistake(kernel), "value 1000 is defined again");
  kernel = nested_kernel();
  kernel.body.ops.push_back(1000);
  EXPECT_EQ(structure_mistake(kernel), "operation 1000");
  kernel = nested_kernel();
  kernel.body.params.push_back(1000);
  EXPECT_EQ(structure_mistake(kernel), "parameter 1000");
}

TEST(Verify, RefusesAUseBeforeItsDefinition) {
  Kernel kernel = nested_kernel();
  std::swap(kernel.body.ops[kernel.body.ops.size() - 1],
            kernel.body.ops[kernel.body.ops.size() - 2]);
  EXPECT_EQ(structure_mistake(kernel), "neg uses value a");
}

TEST(Verify, RefusesAUseOutsideOfTheRegion) {
  Kernel kernel = nested_kernel();
  kernel.ops.back().in[0] = kernel.ops[only(kernel, Code::For)].regions[0].params[1];
  EXPECT_EQ(structure_mistake(kernel), "neg uses value acc");
}

TEST(Verify, RefusesAnOperationThatContainsItself) {
  Kernel kernel = nested_kernel();
  const OpId loop = only(kernel, Code::For);
  kernel.ops[loop].regions[0].ops.insert(kernel.ops[loop].regions[0].ops.begin(), loop);
  EXPECT_EQ(structure_mistake(kernel), "operation " + std::to_string(loop));
}

TEST(Verify, RefusesRegionsWithoutTheirYield) {
  Kernel kernel = nested_kernel();
  const OpId loop = only(kernel, Code::For);
  kernel.ops[loop].regions[0].ops.pop_back();
  EXPECT_EQ(structure_mistake(kernel), "neg at the end of a region");
  kernel.ops[loop].regions[0].ops.clear();
  EXPECT_EQ(structure_mistake(kernel), "an empty region");
}

TEST(Verify, RefusesDeepNesting) {
  Kernel kernel{.name = "deep", .values = {{Type::scalar(DType::Bool), "c"}}, .body = {{0}, {}}};
  Region* region = &kernel.body;
  kernel.ops.reserve(1000);
  for (int i = 0; i < 300; ++i) {
    kernel.ops.push_back({.code = Code::Yield});
    kernel.ops.push_back({.code = Code::Yield});
    const auto yields = static_cast<OpId>(kernel.ops.size() - 2);
    kernel.ops.push_back(
        {.code = Code::If, .in = {0}, .regions = {{{}, {yields}}, {{}, {yields + 1}}}});
    region->ops.insert(region->ops.begin(), yields + 2);
    region = &kernel.ops.back().regions[0];
  }
  EXPECT_EQ(structure_mistake(kernel), "regions within regions");
}

TEST(Verify, KeepsTheRegionOfAReductionSimple) {
  EXPECT_THAT(mistake_of("a = reduce(t) (l, r) { store(p, l) yield(l) }"),
              HasSubstr("error[tile-structure]: store in the region of a reduce or a scan"));
  EXPECT_THAT(mistake_of("a = reduce(t) (l, r) { m = reduce(t) {fn = add} yield(l) }"),
              HasSubstr("reduce in the region of a reduce or a scan"));
  EXPECT_EQ(mistake_of("a = reduce(t) (l, r) { yield(fma(l, x, r)) }"), "");
}

TEST(Verify, NamesTheLineThatBuiltTheOperation) {
  Builder b("k");
  const ValueId x = b.param(Type::scalar(DType::F32), "x");
  b.at({"model.cpp", 42});
  b.map(Function::And, {x, x});
  const auto kernel = b.finish();
  ASSERT_FALSE(kernel);
  EXPECT_EQ(to_string(kernel.error()),
            "model.cpp: line 42: error[tile-type]: and(f32, f32) does not fit\n"
            "  note: integers or bools");
}

}  // namespace
}  // namespace tessera::tile
