#include "tessera/tile/passes/coarsen.h"

#include "tessera/tile/passes/rewrite.h"
#include "tessera/tile/passes/simplify.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

Kernel by_four(const Kernel& kernel) {
  const auto coarse = coarsen(simplify(kernel), 4);
  EXPECT_TRUE(coarse) << to_text(kernel);
  return coarse ? simplify(*coarse) : kernel;
}

void expect_not_coarsened(std::string_view text) {
  const Kernel kernel = parsed_kernel(text);
  expect_valid(kernel);
  EXPECT_FALSE(coarsen(kernel, 4)) << text;
}

TEST(Coarsen, GivesAProgramFourRows) {
  const Kernel found = by_four(parsed_kernel(
      R"(kernel rows(x: view f32[?, 64], w: view f32[64], out: view f32[?, 64]) {
                     row: i64 = pid() {axis = 0}
                     t: f32[1, 64] = vload(x, row, 0)
                     s: f32[1] = reduce(t) {fn = add, axis = 1}
                     all: f32[1, 1] = reshape(s)
                     sums: f32[1, 64] = broadcast(all)
                     d: f32[1, 64] = sub(t, sums)
                     ws: f32[64] = vload(w, 0)
                     wr: f32[1, 64] = reshape(ws)
                     r: f32[1, 64] = mul(d, wr)
                     vstore(out, row, 0, r)
                   })"));
  const Kernel wanted = simplify(parsed_kernel(
      R"(kernel rows(x: view f32[?, 64], w: view f32[64], out: view f32[?, 64]) {
                     group: i64 = pid() {axis = 0}
                     row: i64 = mul(group, 4)
                     t: f32[4, 64] = vload(x, row, 0)
                     s: f32[4] = reduce(t) {fn = add, axis = 1}
                     all: f32[4, 1] = reshape(s)
                     sums: f32[4, 64] = broadcast(all)
                     d: f32[4, 64] = sub(t, sums)
                     ws: f32[64] = vload(w, 0)
                     wr: f32[1, 64] = reshape(ws)
                     wb: f32[4, 64] = broadcast(wr)
                     r: f32[4, 64] = mul(d, wb)
                     b: *f32 = base(out)
                     have: i64 = dim(out) {axis = 0}
                     count: i64 = npid() {axis = 0}
                     end: i64 = min(have, count)
                     bounded: view f32[?, 64] = view(b, end)
                     vstore(bounded, row, 0, r)
                   })"));
  EXPECT_TRUE(same(found, wanted)) << to_text(found);
}

TEST(Coarsen, FollowsRowsAlongAnyAxis) {
  const Kernel kernel = by_four(parsed_kernel(
      R"(kernel columns(x: view f32[16, ?] by [?, ?], out: view f32[16, ?],
                        greatest: view f32[?]) {
           column: i64 = pid() {axis = 0}
           t: f32[16, 1] = vload(x, 0, column)
           s: f32[1] = reduce(t) {fn = max, axis = 0}
           m: f32[1] = exp(s)
           r: f32[16, 1] = mul(t, t)
           vstore(greatest, column, m)
           vstore(out, 0, column, r)
         })"));
  expect_valid(kernel);
  const std::string text = to_text(kernel);
  EXPECT_NE(text.find("f32[16, 4] = vload"), std::string::npos) << text;
  EXPECT_NE(text.find("f32[16, 4] = mul"), std::string::npos) << text;
}

TEST(Coarsen, AddsAnAxisToTilesAndNumbersOfARow) {
  const Kernel found = by_four(parsed_kernel(
      R"(kernel rows(x: view f32[?, 97], w: view f32[97], out: view f32[?, 97], means: view f32[?]) {
           row: i64 = pid() {axis = 0}
           end: i64 = dim(x) {axis = 0}
           within: bool = lt(row, end)
           assume(within)
           t: f32[1, 97] = vload(x, row, 0)
           r: f32[97] = reshape(t)
           s: f32 = reduce(r) {fn = add, axis = 0}
           m: f32 = div(s, 97.0)
           all: f32[97] = broadcast(m)
           d: f32[97] = sub(r, all)
           ws: f32[97] = vload(w, 0)
           p: f32[97] = mul(d, ws)
           o: f32[1, 97] = reshape(p)
           one: f32[1] = broadcast(m)
           vstore(means, row, one)
           vstore(out, row, 0, o)
         })"));
  const Kernel wanted = simplify(parsed_kernel(
      R"(kernel rows(x: view f32[?, 97], w: view f32[97], out: view f32[?, 97], means: view f32[?]) {
           group: i64 = pid() {axis = 0}
           row: i64 = mul(group, 4)
           t: f32[4, 97] = vload(x, row, 0)
           s: f32[4] = reduce(t) {fn = add, axis = 1}
           m: f32[4] = div(s, 97.0)
           column: f32[4, 1] = reshape(m)
           all: f32[4, 97] = broadcast(column)
           d: f32[4, 97] = sub(t, all)
           ws: f32[97] = vload(w, 0)
           wr: f32[1, 97] = reshape(ws)
           wb: f32[4, 97] = broadcast(wr)
           p: f32[4, 97] = mul(d, wb)
           means_at: *f32 = base(means)
           have: i64 = dim(means) {axis = 0}
           count: i64 = npid() {axis = 0}
           end: i64 = min(have, count)
           bounded: view f32[?] = view(means_at, end)
           vstore(bounded, row, m)
           out_at: *f32 = base(out)
           rows: i64 = dim(out) {axis = 0}
           last: i64 = min(rows, count)
           of_grid: view f32[?, 97] = view(out_at, last)
           vstore(of_grid, row, 0, p)
         })"));
  EXPECT_TRUE(same(found, wanted)) << to_text(found);
}

TEST(Coarsen, LeavesWhatIsNotRowsOfViews) {
  // The number of a program is computed with.
  expect_not_coarsened(R"(kernel blocks(x: view f32[?], out: view f32[?]) {
                      p: i64 = pid() {axis = 0}
                      at: i64 = mul(p, 64)
                      t: f32[64] = vload(x, at)
                      vstore(out, at, t)
                    })");
  // Rows are computed with, beyond what is assumed of them.
  expect_not_coarsened(R"(kernel evens(x: view f32[?, 8], out: view f32[?, 8]) {
                      p: i64 = pid() {axis = 0}
                      within: bool = lt(p, 100)
                      assume(within)
                      row: i64 = add(p, p)
                      t: f32[1, 8] = vload(x, row, 0)
                      vstore(out, p, 0, t)
                    })");
  // All programs write one place.
  expect_not_coarsened(R"(kernel last(x: view f32[?, 8], out: view f32[8]) {
                      p: i64 = pid() {axis = 0}
                      t: f32[1, 8] = vload(x, p, 0)
                      s: f32[8] = reduce(t) {fn = add, axis = 0}
                      vstore(out, 0, s)
                    })");
  // A program has several rows, which overlap those of others.
  expect_not_coarsened(R"(kernel windows(x: view f32[?, 8], out: view f32[?, 8]) {
                      p: i64 = pid() {axis = 0}
                      t: f32[2, 8] = vload(x, p, 0)
                      vstore(out, p, 0, t)
                    })");
  // What happens once in each program.
  expect_not_coarsened(R"(kernel counted(x: view f32[?, 8], total: *f32) {
                      p: i64 = pid() {axis = 0}
                      t: f32[1, 8] = vload(x, p, 0)
                      old: f32 = atomic(total, 1.0) {fn = add}
                    })");
  // No number of a program at all.
  expect_not_coarsened(R"(kernel same(x: view f32[8], out: view f32[8]) {
                      t: f32[8] = vload(x, 0)
                      vstore(out, 0, t)
                    })");
}

}  // namespace
}  // namespace tessera::tile
