#include "tessera/tile/passes/simplify.h"

#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

TEST(Simplify, ComputesWhatIsKnown) {
  expect_pass({simplify,
               R"(kernel k(out: view i32[?]) {
                    a: i32[8] = 3
                    b: i32[8] = 4
                    c: i32[8] = mul(a, b)
                    d: i32[8] = sub(c, a)
                    vstore(out, 0, d)
                  })",
               R"(kernel k(out: view i32[?]) {
                    d: i32[8] = 9
                    zero: i64 = 0
                    vstore(out, zero, d)
                  })"});
}

TEST(Simplify, ComputesFloatsInTheirOwnType) {
  expect_pass({simplify,
               R"(kernel k(out: view f32[?]) {
                    a: f32[8] = 0.1
                    b: f32[8] = 0.2
                    c: f32[8] = add(a, b)
                    vstore(out, 0, c)
                  })",
               R"(kernel k(out: view f32[?]) {
                    c: f32[8] = 0.30000001192092896
                    zero: i64 = 0
                    vstore(out, zero, c)
                  })"});
}

TEST(Simplify, KnowsTheIdentitiesOfIntegers) {
  expect_pass({simplify,
               R"(kernel k(x: view i32[8], out: view i32[8]) {
                    t: i32[8] = vload(x, 0)
                    a: i32[8] = add(t, 0)
                    b: i32[8] = mul(a, 1)
                    c: i32[8] = xor(b, b)
                    d: i32[8] = or(b, c)
                    e: i32[8] = and(d, -1)
                    f: i32[8] = shl(e, 0)
                    g: i32[8] = add(f, 3)
                    h: i32[8] = sub(g, 5)
                    vstore(out, 0, h)
                  })",
               R"(kernel k(x: view i32[8], out: view i32[8]) {
                    zero: i64 = 0
                    t: i32[8] = vload(x, zero)
                    minus: i32[8] = -2
                    h: i32[8] = add(t, minus)
                    vstore(out, zero, h)
                  })"});
}

TEST(Simplify, KeepsFloatSumsWithZero) {
  // -0 + 0 is +0.
  expect_unchanged(simplify,
                   R"(kernel k(x: view f32[8], out: view f32[8]) {
                        zero: i64 = 0
                        t: f32[8] = vload(x, zero)
                        none: f32[8] = 0.0
                        a: f32[8] = add(t, none)
                        vstore(out, zero, a)
                      })");
}

TEST(Simplify, KeepsTheTwoZerosApart) {
  expect_unchanged(simplify,
                   R"(kernel k(x: view f32[8], y: view f32[8]) {
                        a: f32[8] = 0.0
                        b: f32[8] = -0.0
                        zero: i64 = 0
                        vstore(x, zero, a)
                        vstore(y, zero, b)
                      })");
}

TEST(Simplify, UndoesTransposesAndReshapes) {
  expect_pass({simplify,
               R"(kernel k(x: view f32[4, 8], out: view f32[4, 8]) {
                    t: f32[4, 8] = vload(x, 0, 0)
                    a: f32[8, 4] = permute(t) {order = [1, 0]}
                    b: f32[4, 8] = permute(a) {order = [1, 0]}
                    c: f32[32] = reshape(b)
                    d: f32[2, 16] = reshape(c)
                    e: f32[4, 8] = reshape(d)
                    f: f32[4, 8] = slice(e) {from = [0, 0]}
                    g: f32[4, 8] = cast(f)
                    vstore(out, 0, 0, g)
                  })",
               R"(kernel k(x: view f32[4, 8], out: view f32[4, 8]) {
                    zero: i64 = 0
                    t: f32[4, 8] = vload(x, zero, zero)
                    vstore(out, zero, zero, t)
                  })"});
}

TEST(Simplify, ComputesBeforeItBroadcasts) {
  expect_pass({simplify,
               R"(kernel k(x: view f32[4, 1], s: f32, out: view f32[4, 8]) {
                    t: f32[4, 1] = vload(x, 0, 0)
                    a: f32[4, 8] = broadcast(t)
                    b: f32[4, 8] = broadcast(s)
                    c: f32[4, 8] = mul(a, b)
                    two: f32[4, 8] = 2.0
                    d: f32[4, 8] = add(c, two)
                    vstore(out, 0, 0, d)
                  })",
               R"(kernel k(x: view f32[4, 1], s: f32, out: view f32[4, 8]) {
                    zero: i64 = 0
                    t: f32[4, 1] = vload(x, zero, zero)
                    b: f32[4, 1] = broadcast(s)
                    c: f32[4, 1] = mul(t, b)
                    two: f32[4, 1] = 2.0
                    d: f32[4, 1] = add(c, two)
                    e: f32[4, 8] = broadcast(d)
                    vstore(out, zero, zero, e)
                  })"});
}

TEST(Simplify, DoesWhatABranchOnAConstantDoes) {
  expect_pass({simplify,
               R"(kernel k(x: view f32[8], out: view f32[8]) {
                    t: f32[8] = vload(x, 0)
                    one: i64 = 1
                    c: bool = lt(one, 2)
                    r: f32[8] = if (c) {
                      u: f32[8] = exp(t)
                      yield(u)
                    } else {
                      vstore(out, 0, t)
                      yield(t)
                    }
                    vstore(out, 0, r)
                  })",
               R"(kernel k(x: view f32[8], out: view f32[8]) {
                    zero: i64 = 0
                    t: f32[8] = vload(x, zero)
                    u: f32[8] = exp(t)
                    vstore(out, zero, u)
                  })"});
}

TEST(Simplify, UnrollsALoopOfOneRoundAndDropsOneOfNone) {
  expect_pass({simplify,
               R"(kernel k(x: view f32[16], out: view f32[16]) {
                    t: f32[16] = vload(x, 0)
                    a: f32[16] = for (i: i64 = 3 to 8 step 5, s: f32[16] = t) {
                      u: f32[16] = vload(x, i)
                      v: f32[16] = add(s, u)
                      yield(v)
                    }
                    b: f32[16] = for (i: i64 = 8 to 8 step 5, s: f32[16] = a) {
                      u: f32[16] = exp(s)
                      yield(u)
                    }
                    vstore(out, 0, b)
                  })",
               R"(kernel k(x: view f32[16], out: view f32[16]) {
                    zero: i64 = 0
                    t: f32[16] = vload(x, zero)
                    three: i64 = 3
                    u: f32[16] = vload(x, three)
                    v: f32[16] = add(t, u)
                    vstore(out, zero, v)
                  })"});
}

TEST(Simplify, CarriesOnlyWhatChangesAndIsUsed) {
  expect_pass({simplify,
               R"(kernel k(x: view f32[8], n: i64, out: view f32[8]) {
                    t: f32[8] = vload(x, 0)
                    (a: f32[8], b: f32[8], c: f32[8]) = for (i: i64 = 0 to n step 1,
                        p: f32[8] = t, q: f32[8] = t, r: f32[8] = t) {
                      u: f32[8] = mul(p, q)
                      v: f32[8] = exp(r)
                      yield(u, q, v)
                    }
                    d: f32[8] = add(a, b)
                    vstore(out, 0, d)
                  })",
               R"(kernel k(x: view f32[8], n: i64, out: view f32[8]) {
                    zero: i64 = 0
                    t: f32[8] = vload(x, zero)
                    one: i64 = 1
                    a: f32[8] = for (i: i64 = zero to n step one, p: f32[8] = t) {
                      u: f32[8] = mul(p, t)
                      yield(u)
                    }
                    d: f32[8] = add(a, t)
                    vstore(out, zero, d)
                  })"});
}

TEST(Simplify, MovesWhatNeverChangesOutOfLoops) {
  expect_pass({simplify,
               R"(kernel k(x: view f32[8], n: i64, out: view f32[8]) {
                    t: f32[8] = vload(x, 0)
                    a: f32[8] = for (i: i64 = 0 to n step 1, p: f32[8] = t) {
                      b: f32[8] = for (j: i64 = 0 to n step 1, q: f32[8] = p) {
                        e: f32[8] = exp(t)
                        f: f32[8] = mul(p, e)
                        g: f32[8] = add(q, f)
                        yield(g)
                      }
                      yield(b)
                    }
                    vstore(out, 0, a)
                  })",
               R"(kernel k(x: view f32[8], n: i64, out: view f32[8]) {
                    zero: i64 = 0
                    t: f32[8] = vload(x, zero)
                    one: i64 = 1
                    e: f32[8] = exp(t)
                    a: f32[8] = for (i: i64 = zero to n step one, p: f32[8] = t) {
                      f: f32[8] = mul(p, e)
                      b: f32[8] = for (j: i64 = zero to n step one, q: f32[8] = p) {
                        g: f32[8] = add(q, f)
                        yield(g)
                      }
                      yield(b)
                    }
                    vstore(out, zero, a)
                  })"});
}

TEST(Simplify, MovesALoadOutOfALoopThatRunsAndWritesNothing) {
  expect_pass({simplify,
               R"(kernel k(x: *f32, out: view f32[1]) {
                    none: f32 = 0
                    a: f32 = for (i: i64 = 0 to 9 step 1, p: f32 = none) {
                      t: f32 = load(x)
                      u: f32 = add(p, t)
                      yield(u)
                    }
                    b: f32[1] = reshape(a)
                    vstore(out, 0, b)
                  })",
               R"(kernel k(x: *f32, out: view f32[1]) {
                    none: f32 = 0
                    zero: i64 = 0
                    nine: i64 = 9
                    one: i64 = 1
                    t: f32 = load(x)
                    a: f32 = for (i: i64 = zero to nine step one, p: f32 = none) {
                      u: f32 = add(p, t)
                      yield(u)
                    }
                    b: f32[1] = reshape(a)
                    vstore(out, zero, b)
                  })"});
}

TEST(Simplify, LeavesLoadsInLoopsThatMayNotRunOrWrite) {
  expect_unchanged(simplify,
                   R"(kernel k(x: *f32, n: i64, out: view f32[1]) {
                        none: f32 = 0
                        zero: i64 = 0
                        one: i64 = 1
                        a: f32 = for (i: i64 = zero to n step one, p: f32 = none) {
                          t: f32 = load(x)
                          u: f32 = add(p, t)
                          yield(u)
                        }
                        b: f32[1] = reshape(a)
                        vstore(out, zero, b)
                        nine: i64 = 9
                        for (i: i64 = zero to nine step one) {
                          t: f32 = load(x)
                          u: f32 = add(t, a)
                          store(x, u)
                        }
                      })");
}

TEST(Simplify, LoadsAgainOnlyAfterAWrite) {
  expect_pass({simplify,
               R"(kernel k(x: view f32[8], out: view f32[8]) {
                    a: f32[8] = vload(x, 0)
                    b: f32[8] = vload(x, 0)
                    c: f32[8] = add(a, b)
                    vstore(out, 0, c)
                    d: f32[8] = vload(x, 0)
                    vstore(out, 0, d)
                  })",
               R"(kernel k(x: view f32[8], out: view f32[8]) {
                    zero: i64 = 0
                    a: f32[8] = vload(x, zero)
                    c: f32[8] = add(a, a)
                    vstore(out, zero, c)
                    d: f32[8] = vload(x, zero)
                    vstore(out, zero, d)
                  })"});
}

TEST(Simplify, LoadsAgainInEachRoundOfALoopThatWrites) {
  expect_unchanged(simplify,
                   R"(kernel k(x: view f32[8], n: i64) {
                        zero: i64 = 0
                        a: f32[8] = vload(x, zero)
                        one: i64 = 1
                        for (i: i64 = zero to n step one) {
                          b: f32[8] = vload(x, zero)
                          c: f32[8] = add(a, b)
                          vstore(x, zero, c)
                        }
                      })");
}

TEST(Simplify, SharesNothingBetweenTwoBranches) {
  expect_unchanged(simplify,
                   R"(kernel k(x: view f32[8], c: bool) {
                        zero: i64 = 0
                        a: f32[8] = vload(x, zero)
                        if (c) {
                          b: f32[8] = exp(a)
                          vstore(x, zero, b)
                        } else {
                          d: f32[8] = exp(a)
                          e: f32[8] = neg(d)
                          vstore(x, zero, e)
                        }
                      })");
}

TEST(Simplify, KnowsMasksThatAreConstant) {
  expect_pass({simplify,
               R"(kernel k(p: *f32, out: view f32[8]) {
                    i: i64[8] = iota()
                    base: *f32[8] = broadcast(p)
                    at: *f32[8] = offset(base, i)
                    yes: bool[8] = true
                    no: bool[8] = false
                    seven: f32[8] = 7.0
                    a: f32[8] = load(at, yes, seven)
                    b: f32[8] = load(at, no, seven)
                    c: f32[8] = add(a, b)
                    store(at, c, no)
                    vstore(out, 0, c)
                  })",
               R"(kernel k(p: *f32, out: view f32[8]) {
                    i: i64[8] = iota()
                    base: *f32[8] = broadcast(p)
                    at: *f32[8] = offset(base, i)
                    seven: f32[8] = 7.0
                    a: f32[8] = load(at)
                    c: f32[8] = add(a, seven)
                    zero: i64 = 0
                    vstore(out, zero, c)
                  })"});
}

TEST(Simplify, AsksAViewThatItKnowsForItsExtents) {
  expect_pass({simplify,
               R"(kernel k(p: *f32, n: i64, out: view i64[3]) {
                    v: view f32[?, 64] = view(p, n)
                    a: i64 = dim(v) {axis = 0}
                    b: i64 = dim(v) {axis = 1}
                    c: i64 = stride(v) {axis = 0}
                    d: i64 = add(a, b)
                    e: i64 = add(d, c)
                    f: i64[1] = reshape(e)
                    vstore(out, 0, f)
                  })",
               R"(kernel k(p: *f32, n: i64, out: view i64[3]) {
                    s: i64 = 128
                    e: i64 = add(n, s)
                    f: i64[1] = reshape(e)
                    zero: i64 = 0
                    vstore(out, zero, f)
                  })"});
}

TEST(Simplify, KeepsHintsAssumptionsAndEffectsInOrder) {
  expect_unchanged(simplify,
                   R"(kernel k(x: view f32[?], n: i64) {
                        sixteen: i64 = 16
                        r: i64 = rem(n, sixteen)
                        zero: i64 = 0
                        c: bool = eq(r, zero)
                        assume(c)
                        h: i64 = hint(n) {multiple_of = [16]}
                        t: f32[16] = vload(x, h)
                        barrier()
                        print(h) {message = "h"}
                        vstore(x, zero, t)
                      })");
}

TEST(Simplify, KeepsTheMeaningOfAnyKernel) {
  for_each_random_kernel(1, 120, {}, [](const RandomKernel& random) {
    expect_same_meaning(simplify, random);
    const Kernel once = simplify(random.kernel);
    EXPECT_EQ(anonymous(simplify(once)), anonymous(once));
  });
}

TEST(SlowSimplify, KeepsTheMeaningOfManyKernels) {
  for_each_random_kernel(1000, 1000, {.steps = 60},
                         [](const RandomKernel& random) { expect_same_meaning(simplify, random); });
}

}  // namespace
}  // namespace tessera::tile
