#include "tessera/tile/passes/narrow.h"

#include "tessera/tile/passes/simplify.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

Kernel narrowed(const Kernel& kernel) {
  return simplify(narrow(simplify(kernel)));
}

TEST(Narrow, ConvertsNumbersThatFitTo32BitsToFloats) {
  expect_pass({narrowed,
               R"(kernel dequantize(x: view u8[8], out: view f32[8]) {
                    t: u8[8] = vload(x, 0)
                    zero: i64[8] = 126
                    vstore(out, 0, cast(sub(cast(t): i64[8], zero)): f32[8])
                  })",
               R"(kernel dequantize(x: view u8[8], out: view f32[8]) {
                    zero: i64 = 0
                    t: u8[8] = vload(x, zero)
                    wide: i32[8] = cast(t)
                    shift: i32[8] = -126
                    sum: i32[8] = add(wide, shift)
                    number: f32[8] = cast(sum)
                    vstore(out, zero, number)
                  })"});
}

TEST(Narrow, WrapsSumsOfProductsThatWrapLater) {
  expect_pass({narrowed,
               R"(kernel sums(x: view i64[8], y: view i8[8], out: view i32[8]) {
                    a: i64[8] = vload(x, 0)
                    b: i8[8] = vload(y, 0)
                    vstore(out, 0, cast(add(mul(a, cast(b): i64[8]), a)): i32[8])
                  })",
               R"(kernel sums(x: view i64[8], y: view i8[8], out: view i32[8]) {
                    zero: i64 = 0
                    a: i64[8] = vload(x, zero)
                    b: i8[8] = vload(y, zero)
                    low: i32[8] = cast(a)
                    wide: i32[8] = cast(b)
                    product: i32[8] = mul(low, wide)
                    sum: i32[8] = add(product, low)
                    vstore(out, zero, sum)
                  })"});
}

TEST(Narrow, KeepsWhatIsReadInFull) {
  // A float of a number that may not fit; a comparison; what is stored; what a loop carries.
  for (const char* text : {R"(kernel k(x: view i32[8], out: view f32[8]) {
                                zero: i64 = 0
                                t: i32[8] = vload(x, zero)
                                a: i64[8] = cast(t)
                                b: i64[8] = add(a, a)
                                c: f32[8] = cast(b)
                                vstore(out, zero, c)
                              })",
                           R"(kernel k(x: view i32[8], out: view bool[8]) {
                                zero: i64 = 0
                                t: i32[8] = vload(x, zero)
                                a: i64[8] = cast(t)
                                b: i64[8] = mul(a, a)
                                c: bool[8] = cast(b)
                                vstore(out, zero, c)
                              })",
                           R"(kernel k(x: view i32[8], out: view i64[8], low: view i32[8]) {
                                zero: i64 = 0
                                t: i32[8] = vload(x, zero)
                                a: i64[8] = cast(t)
                                b: i64[8] = mul(a, a)
                                c: i32[8] = cast(b)
                                vstore(low, zero, c)
                                vstore(out, zero, b)
                              })"})
    expect_unchanged(narrowed, text);
}

TEST(Narrow, KeepsTheBitsOfLargeNumbers) {
  const Kernel kernel = parsed_kernel(
      R"(kernel k(x: view i64[64], y: view i32[64], low: view i32[64], byte: view u8[64], number: view f32[64]) {
           a: i64[64] = vload(x, 0)
           b: i64[64] = cast(vload(y, 0): i32[64])
           large: i64[64] = 4294967297
           c = add(mul(mul(a, large), b), sub(b, a))
           vstore(low, 0, cast(c): i32[64])
           vstore(byte, 0, cast(mul(c, b)): u8[64])
           vstore(number, 0, cast(add(b, large)): f32[64])
         })");
  const Extents all{64};
  expect_same_meaning(narrowed, launched(kernel, {1, 1, 1}, {all, all, all, all, all}));
}

TEST(Narrow, KeepsTheMeaningOfAnyKernel) {
  for_each_random_kernel(1, 200, {},
                         [](const RandomKernel& random) { expect_same_meaning(narrowed, random); });
}

}  // namespace
}  // namespace tessera::tile
