#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/tile/lang_run.h"

namespace tessera::tile {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int here(Place where = Place::current()) {
  return where.line;
}

/// The body has this mistake, on the line that it says.
using Wrong = std::function<void(const Val& p, const Val& n, int& line)>;
void expect_mistake(const char* message, const Wrong& body) {
  int line = 0;
  const auto traced = kernel("wrong", {pointer("p", DType::F32), number("n")},
                             [&](const Val& p, const Val& n) { body(p, n, line); });
  ASSERT_FALSE(traced) << message;
  EXPECT_THAT(why(traced), HasSubstr(message));
  EXPECT_EQ(traced.error().where.item, "line " + std::to_string(line)) << why(traced);
  EXPECT_THAT(traced.error().where.file, HasSubstr("lang_mistakes_test.cpp"));
}

TEST(LangMistakes, AreFoundInTheLinesThatMakeThem) {
  expect_mistake("error[tile-type]: the shapes [3] and [4] do not fit together",
                 [](const Val&, const Val&, int& line) {
                   line = here() + 1;
                   zeros({3}) + zeros({4});
                 });
  expect_mistake("exp(i64) does not fit", [](const Val&, const Val& n, int& line) {
    line = here() + 1;
    exp(n);
  });
  expect_mistake("a number that i8 can hold, not 300", [](const Val&, const Val&, int& line) {
    line = here() + 1;
    zeros({2}, DType::I8) + 300;
  });
  expect_mistake("a mask of i64[4]", [](const Val& p, const Val& n, int& line) {
    line = here() + 1;
    load(p + arange(0, 4), n + arange(0, 4));
  });
  expect_mistake("a value is used outside", [](const Val& p, const Val& n, int& line) {
    Val mask;
    for (const Val i : range(n)) mask = i < n;
    line = here() + 1;
    load(p, mask);
  });
  expect_mistake("an extent or a stride that is no whole number",
                 [](const Val& p, const Val&, int& line) {
                   line = here() + 1;
                   make_view(p, {-1});
                 });
  expect_mistake("f32[4] does not fit into the shape []", [](const Val& p, const Val&, int& line) {
    line = here() + 1;
    store(p, zeros({4}));
  });
  expect_mistake("tiles a[m, k], b[k, n], c[m, n]", [](const Val&, const Val&, int& line) {
    line = here() + 1;
    dot(zeros({4, 3}), zeros({4, 3}));
  });
  expect_mistake("that have the axis", [](const Val&, const Val&, int& line) {
    line = here() + 1;
    softmax(zeros({4}), 3);
  });
  expect_mistake("that have the axis", [](const Val&, const Val&, int& line) {
    line = here() + 1;
    sum(zeros({4, 4}), 2, Dims::Keep);
  });
  expect_mistake("axis -1 of f32[4, 4]", [](const Val&, const Val&, int& line) {
    line = here() + 1;
    argmax(zeros({4, 4}), -3);
  });
  expect_mistake("f32[4, 4] is indexed by 1 axes", [](const Val&, const Val&, int& line) {
    line = here() + 1;
    zeros({4, 4})[{All, None}];
  });
  expect_mistake("extents of at least 1", [](const Val&, const Val&, int& line) {
    line = here() + 1;
    arange(4, 4);
  });
  expect_mistake("elements at most", [](const Val&, const Val&, int& line) {
    line = here() + 1;
    zeros({std::int64_t{1} << 40, 1 << 30});
  });
  expect_mistake("1 or more operands", [](const Val&, const Val&, int& line) {
    line = here() + 1;
    concat({}, 0);
  });
}

TEST(LangMistakes, ALoopThatChangesATypeSaysSo) {
  expect_mistake("error[tile-carried]: a variable that was i64 is assigned f32",
                 [](const Val&, const Val& n, int& line) {
                   Val x = 0;
                   for (const Val i : range(n)) {
                     line = here() + 1;
                     x = i * 0.5;
                   }
                 });
}

TEST(LangMistakes, BranchesOfDifferentTypesSaySo) {
  expect_mistake("a variable that was f32[4] is assigned f32[5]",
                 [](const Val&, const Val& n, int& line) {
                   Val x;
                   line = here() + 2;
                   when(
                       n > 0, [&] { x = zeros({4}); }, [&] { x = zeros({5}); });
                 });
}

TEST(LangMistakes, AValueIsNotUsedOutsideOfTheLoopThatMadeIt) {
  expect_mistake("error[tile-scope]: a value is used outside of the region that made it",
                 [](const Val& p, const Val& n, int& line) {
                   Val last;
                   for (const Val i : range(n)) last = i;
                   line = here() + 1;
                   store(p, last);
                 });
  expect_mistake("a value is used outside of the region that made it",
                 [](const Val& p, const Val& n, int& line) {
                   Val one;
                   when(n > 0, [&] { one = 1; });
                   line = here() + 1;
                   store(p, one);
                 });
  expect_mistake("a value is used outside of the region that made it",
                 [](const Val& p, const Val& n, int& line) {
                   Val other;
                   when(
                       n > 0, [] {}, [&] { other = 1; });
                   line = here() + 1;
                   store(p, other);
                 });
}

TEST(LangMistakes, AViewIsNotUsedOutsideOfTheLoopThatMadeIt) {
  expect_mistake("a value is used outside of the region",
                 [](const Val& p, const Val& n, int& line) {
                   std::vector<View> views;
                   for (const Val i : range(n)) views.push_back(make_view(p + i, {n}));
                   line = here() + 1;
                   views[0].load({0}, {4});
                 });
}

TEST(LangMistakes, AVariableWithoutAValueIsNotUsed) {
  expect_mistake("a variable is used that has no value", [](const Val& p, const Val&, int& line) {
    const Val nothing;
    line = here() + 1;
    store(p, nothing);
  });
}

TEST(LangMistakes, ALoopIsNotLeftEarly) {
  expect_mistake("error[tile-control]: the loop is left before its end",
                 [](const Val& p, const Val& n, int& line) {
                   line = here() + 1;
                   for (const Val i : range(n)) {
                     store(p, i);
                     break;
                   }
                   store(p, n);
                 });
}

TEST(LangMistakes, ALoopGoesUpwards) {
  expect_mistake("a loop by steps of 0", [](const Val& p, const Val& n, int& line) {
    line = here() + 1;
    for (const Val i : range(0, n, 0)) store(p, i);
  });
  expect_mistake("from, to and step of i64", [](const Val& p, const Val&, int& line) {
    line = here() + 1;
    for (const Val i : range(0, 2.5)) store(p, i);
  });
}

TEST(LangMistakes, AConditionAssignsNothing) {
  expect_mistake("the condition of the loop assigns a variable",
                 [](const Val&, const Val& n, int& line) {
                   Val x = n;
                   line = here() + 1;
                   loop_while(
                       [&] {
                         x = x - 1;
                         return x > 0;
                       },
                       [] {});
                 });
}

TEST(LangMistakes, ParametersAreWhatTheBodyTakes) {
  const auto body = [](const View&) {};
  EXPECT_THAT(why(kernel("k", {pointer("p", DType::F32)}, body)),
              HasSubstr("error[tile-param]: parameter p is *f32"));
  EXPECT_THAT(why(kernel("k", {"p"}, body)), HasSubstr("note: a type"));
  EXPECT_THAT(why(kernel("k", {}, body)), HasSubstr("0 parameters are named"));
  EXPECT_THAT(why(kernel("k", {pointer("p", DType::F32)}, [](const Ptr<int>&) {})),
              HasSubstr("the body takes *i32"));
  EXPECT_THAT(why(kernel("k", {view("v", DType::F32, {-5})}, body)), HasSubstr("parameter v"));
}

TEST(LangMistakes, AValueOfAnotherKernelIsRefused) {
  const auto outer = kernel("outer", {number("n")}, [](const Val& n) {
    const auto inner = kernel("inner", {}, [&] { n + 1; });
    EXPECT_THAT(why(inner), HasSubstr("a value of another kernel is used"));
    device_assert(n > 0, "the outer kernel goes on");
  });
  EXPECT_TRUE(outer) << why(outer);
}

TEST(LangMistakes, AViewOfAKernelThatIsDoneIsRefused) {
  std::vector<View> kept;
  const Param x = view("x", DType::F32, {8});
  EXPECT_TRUE(
      kernel("first", {number("a"), x}, [&](const Val&, const View& v) { kept.push_back(v); }));
  EXPECT_THAT(why(kernel("second", {x}, [&](const View&) { kept[0].load({0}, {4}); })),
              HasSubstr("a value of another kernel is used"));
}

TEST(LangMistakes, WithoutAKernelThereIsNothingToTrace) {
  EXPECT_THROW(arange(0, 4), std::logic_error);
  Val kept;
  EXPECT_TRUE(kernel("k", {number("n")}, [&](const Val& n) { kept = n; }));
  EXPECT_THROW(kept + 1, std::logic_error);
}

TEST(LangMistakes, ExceptionsOfTheBodyPassThrough) {
  const auto thrower = [] {
    return kernel("k", {number("n")}, [](const Val& n) {
      for (const Val i : range(n)) throw std::runtime_error("mine");
    });
  };
  EXPECT_THROW((void)thrower(), std::runtime_error);
  EXPECT_THROW(arange(0, 4), std::logic_error);
}

}  // namespace
}  // namespace tessera::tile
