#include "tessera/support/attrs.h"

#include <gtest/gtest.h>

#include <limits>

#include "tessera/support/check.h"

namespace tessera {
namespace {

Tensor tensor_of(std::vector<float> elements) {
  return Tensor::of<float>(DType::F32, {static_cast<std::int64_t>(elements.size())}, elements);
}

TEST(Attrs, AreSortedByName) {
  const Attrs attrs{{"pads", Ints{1, 1}}, {"groups", std::int64_t{1}}};
  ASSERT_EQ(attrs.entries().size(), 2U);
  EXPECT_EQ(attrs.entries()[0].first, "groups");
  EXPECT_EQ(attrs.entries()[1].first, "pads");
}

TEST(Attrs, GiveBackWhatWasSet) {
  Attrs attrs;
  attrs.set("axis", std::int64_t{-1});
  attrs.set("mode", std::string("nearest"));
  attrs.set("axis", std::int64_t{2});
  EXPECT_EQ(attrs.i("axis"), 2);
  EXPECT_EQ(attrs.s("mode"), "nearest");
  EXPECT_EQ(attrs.find("scale"), nullptr);
}

TEST(Attrs, ForgetWhatIsErased) {
  Attrs attrs{{"axis", std::int64_t{1}}};
  attrs.erase("axis");
  EXPECT_TRUE(attrs.empty());
}

TEST(Attrs, OfAnotherKindAreOurBug) {
  const Attrs attrs{{"axis", std::int64_t{1}}};
  EXPECT_THROW(attrs.ints("axis"), InternalError);
  EXPECT_THROW(attrs.i("missing"), InternalError);
}

TEST(Attrs, AreEqualByContentWhateverTheOrderOfSetting) {
  const Attrs a{{"x", 1.0}, {"y", tensor_of({1, 2})}};
  const Attrs b{{"y", tensor_of({1, 2})}, {"x", 1.0}};
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
}

TEST(Attrs, DifferInATensorsBytes) {
  const Attrs a{{"value", tensor_of({1, 2})}};
  const Attrs b{{"value", tensor_of({1, 3})}};
  EXPECT_FALSE(a == b);
  EXPECT_NE(a.hash(), b.hash());
}

TEST(Attrs, TellAnIntFromAnEqualFloat) {
  EXPECT_FALSE(equal(Attr{std::int64_t{1}}, Attr{1.0}));
  EXPECT_NE(hash_of(Attr{std::int64_t{1}}), hash_of(Attr{1.0}));
}

TEST(Attrs, CompareFloatsByBits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(equal(Attr{nan}, Attr{nan}));
  EXPECT_FALSE(equal(Attr{0.0}, Attr{-0.0}));
}

TEST(Attrs, HashNeighbouringStringsApart) {
  EXPECT_NE(hash_of(Attr{Strings{"ab", "c"}}), hash_of(Attr{Strings{"a", "bc"}}));
}

TEST(Attrs, TellANameFromAText) {
  EXPECT_TRUE(equal(Attr{Symbol{"g"}}, Attr{Symbol{"g"}}));
  EXPECT_FALSE(equal(Attr{Symbol{"g"}}, Attr{std::string("g")}));
  EXPECT_NE(hash_of(Attr{Symbol{"g"}}), hash_of(Attr{Symbol{"h"}}));
  EXPECT_EQ((Attrs{{"a", 1}, {"b", Symbol{"g"}}}).symbolic()->first, "b");
  EXPECT_EQ((Attrs{{"a", 1}}).symbolic(), nullptr);
}

}  // namespace
}  // namespace tessera
