#include "tessera/tile/passes/cut_rows.h"

#include <cmath>

#include "tessera/tile/passes/simplify.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

void expect_not_cut(std::string_view text) {
  const Kernel kernel = simplify(parsed_kernel(text));
  expect_valid(kernel);
  EXPECT_FALSE(cut_rows(kernel, 600, 256)) << text;
}

TEST(CutRows, GivesTilesAlongARowTheExtentOfAPart) {
  const Kernel kernel = simplify(parsed_kernel(
      R"(kernel scaled(x: view f32[?, 600], w: view f32[600], out: view f32[?, 600]) {
    row = pid()
    t: f32[1, 600] = vload(x, row, 0)
    s: f32[1, 1] = reshape(reduce(t) {fn = add, axis = 1})
    r = mul(div(t, broadcast(s): f32[1, 600]), reshape(vload(w, 0): f32[600]): f32[1, 600])
    vstore(out, row, 0, r)
  })"));
  const auto cut = cut_rows(kernel, 600, 256);
  ASSERT_TRUE(cut);
  expect_valid(cut->kernel);
  EXPECT_EQ(cut->kernel.type(cut->column), Type::scalar(DType::I64));
  int accesses = 0;
  for (const OpId id : cut->kernel.body.ops) {
    const Operation& op = cut->kernel.ops[id];
    for (const ValueId out : op.out) {
      const Type& type = cut->kernel.type(out);
      if (!type.is_tile()) continue;
      EXPECT_TRUE(type.count() == 1 || type.count() == 256) << to_string(type);
      EXPECT_EQ(cut->axes.contains(out), type.count() == 256) << to_string(type);
    }
    accesses += op.code == Code::Vload || op.code == Code::Vstore ? 1 : 0;
  }
  EXPECT_EQ(accesses, 3);
}

TEST(CutRows, RefusesWhatIsDoneAlongTheRowOtherwise) {
  expect_not_cut(R"(kernel scanned(x: view f32[?, 600], out: view f32[?, 600]) {
    t: f32[1, 600] = vload(x, pid(), 0)
    s: f32[1, 1] = reshape(reduce(t) {fn = add, axis = 1})
    vstore(out, pid(), 0, mul(scan(t) {fn = add, axis = 1}, broadcast(s): f32[1, 600]))
  })");
}

TEST(CutRows, RefusesToReadAfterAWrite) {
  expect_not_cut(R"(kernel late(x: view f32[?, 600], out: view f32[?, 600]) {
    t: f32[1, 600] = vload(x, pid(), 0)
    s: f32[1] = reduce(t) {fn = add, axis = 1}
    vstore(out, pid(), 0, t)
    u: f32[1, 600] = vload(x, add(pid(), 1), 0)
    v: f32[1] = reduce(u) {fn = add, axis = 1}
    vstore(out, pid(), 0, reshape(add(s, v)): f32[1, 1])
  })");
}

TEST(CutRows, RefusesTwoResults) {
  expect_not_cut(R"(kernel two(x: view f32[?, 600], a: view f32[?, 600], b: view f32[?, 600]) {
    t: f32[1, 600] = vload(x, pid(), 0)
    s: f32[1, 1] = reshape(reduce(t) {fn = add, axis = 1})
    vstore(a, pid(), 0, t)
    vstore(b, pid(), 0, mul(t, broadcast(s): f32[1, 600]))
  })");
}

TEST(CutRows, NeutralNumbersLeaveAllAsItIs) {
  EXPECT_TRUE(std::signbit(neutral_of(Function::Add, DType::F32)->number));
  EXPECT_TRUE(std::isnan(neutral_of(Function::Max, DType::F16)->number));
  EXPECT_EQ(neutral_of(Function::Maximum, DType::F32)->number, -INFINITY);
  EXPECT_EQ(neutral_of(Function::Min, DType::I8)->integer, 127);
  EXPECT_EQ(neutral_of(Function::Max, DType::U8)->integer, 0);
  EXPECT_EQ(neutral_of(Function::Mul, DType::I32)->integer, 1);
  EXPECT_FALSE(neutral_of(Function::Sub, DType::F32));
}

}  // namespace
}  // namespace tessera::tile
