#include "tests/runtime/host/call.h"

namespace tessera::host {
namespace {

/// What the catalog fills in.
Attrs encoder(Attrs attrs) {
  if (!attrs.has("default_float")) attrs.set("default_float", -0.0);
  if (!attrs.has("default_int64")) attrs.set("default_int64", std::int64_t{-1});
  if (!attrs.has("default_string")) attrs.set("default_string", std::string("_Unused"));
  return attrs;
}

TEST(LabelEncoder, LooksTextUp) {
  expect_result({"ml_label_encoder",
                 {texts({2, 2}, {"b", "a", "q", ""})},
                 encoder({{"keys_strings", Strings{"a", "b"}}, {"values_int64s", Ints{5, 6}}})},
                integers({2, 2}, {6, 5, -1, -1}));
  expect_result({"ml_label_encoder",
                 {integers({3}, {2, 1, 9})},
                 encoder({{"keys_int64s", Ints{1, 2}}, {"values_strings", Strings{"x", "y"}}})},
                texts({3}, {"y", "x", "_Unused"}));
}

TEST(LabelEncoder, TakesWhatIsNoNumberForOneKeyAndTheLastOfEqualKeys) {
  expect_result({"ml_label_encoder",
                 {floats({4}, {kNan, -kNan, 1, 2})},
                 encoder({{"keys_floats", Floats{kNan, 1, 1}}, {"values_int64s", Ints{7, 8, 9}}})},
                integers({4}, {7, 7, 9, -1}));
}

TEST(LabelEncoder, TakesTensorsOfAnyDtype) {
  expect_result({"ml_label_encoder",
                 {numbers(DType::I16, {3}, {3, 4, 5})},
                 encoder({{"keys_tensor", numbers(DType::I16, {2}, {3, 5})},
                          {"values_tensor", numbers(DType::F64, {2}, {0.5, 1.5})},
                          {"default_tensor", numbers(DType::F64, {1}, {-2})}})},
                numbers(DType::F64, {3}, {0.5, -2, 1.5}));
}

TEST(LabelEncoder, RefusesListsThatDoNotFit) {
  const Tensor x = integers({1}, {1});
  expect_refused({"ml_label_encoder", {x}, encoder({{"values_int64s", Ints{1}}})},
                 "0 lists of keys are given");
  expect_refused(
      {"ml_label_encoder", {x}, encoder({{"keys_int64s", Ints{1, 2}}, {"values_int64s", Ints{1}}})},
      "2 keys have 1 values");
  expect_refused({"ml_label_encoder",
                  {x},
                  encoder({{"keys_strings", Strings{"a"}}, {"values_int64s", Ints{1}}})},
                 "keys are string");
}

TEST(OneHotEncoder, MarksTheCategory) {
  const Attrs attrs{{"cats_int64s", Ints{4, 0}}, {"zeros", std::int64_t{1}}};
  expect_result({"ml_one_hot_encoder", {integers({3}, {0, 4, 5})}, attrs},
                floats({3, 2}, {0, 1, 1, 0, 0, 0}));
  expect_result({"ml_one_hot_encoder", {floats({1, 3}, {4.9F, -0.5F, kNan})}, attrs},
                floats({1, 3, 2}, {1, 0, 0, 1, 0, 0}));
  expect_result({"ml_one_hot_encoder",
                 {texts({2}, {"b", "c"})},
                 {{"cats_strings", Strings{"a", "b"}}, {"zeros", std::int64_t{1}}}},
                floats({2, 2}, {0, 1, 0, 0}));
}

TEST(OneHotEncoder, RefusesWhatHasNoCategoryIfAskedTo) {
  expect_refused({"ml_one_hot_encoder",
                  {integers({2}, {1, 2})},
                  {{"cats_int64s", Ints{1}}, {"zeros", std::int64_t{0}}}},
                 "element 1 is of no category");
}

}  // namespace
}  // namespace tessera::host
