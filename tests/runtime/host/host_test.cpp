#include "tessera/runtime/host/host.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/runtime/host/call.h"

namespace tessera::host {
namespace {

TEST(Host, FindsEveryFunctionOfTheTable) {
  for (const Entry& entry : all()) EXPECT_EQ(find(entry.name), entry.function) << entry.name;
}

TEST(Host, FindsNothingUnderAnotherName) {
  EXPECT_EQ(find(""), nullptr);
  EXPECT_EQ(find("top"), nullptr);
  EXPECT_EQ(find("zzz"), nullptr);
}

/// What a function may ask for, so that the data alone is wrong.
Attrs every_attribute(std::string_view name) {
  const Attr aggregate =
      name == "ml_tree_ensemble" ? Attr(std::int64_t{1}) : Attr(std::string("SUM"));
  const Attr modes =
      name == "ml_tree_ensemble" ? Attr(numbers(DType::U8, {0}, {})) : Attr(Strings{});
  return {{"aggregate_function", aggregate},
          {"axis", std::int64_t{0}},
          {"cats_int64s", Ints{1}},
          {"default_float", 0.0},
          {"default_int64", std::int64_t{0}},
          {"default_string", std::string()},
          {"keys_int64s", Ints{1}},
          {"leaf_weights", floats({0}, {})},
          {"n_targets", std::int64_t{1}},
          {"nodes_modes", modes},
          {"nodes_splits", floats({0}, {})},
          {"pixel_format", std::string("RGB")},
          {"values_int64s", Ints{1}},
          {"zeros", std::int64_t{1}},
          {"largest", std::int64_t{1}},
          {"sorted", std::int64_t{1}},
          {"keepdims", std::int64_t{1}},
          {"new_axis", std::int64_t{0}},
          {"center_point_box", std::int64_t{0}},
          {"sample_size", std::int64_t{1}},
          {"shape", Ints{-1}},
          {"low", 0.0},
          {"high", 1.0},
          {"mean", 0.0},
          {"scale", 1.0},
          {"to", std::string("f32")},
          {"pattern", std::string("a")},
          {"case_change_action", std::string("NONE")},
          {"is_case_sensitive", std::int64_t{0}},
          {"kernel_shape", Ints{2}},
          {"mode", std::string("TF")},
          {"min_gram_length", std::int64_t{1}},
          {"max_gram_length", std::int64_t{1}},
          {"max_skip_count", std::int64_t{0}},
          {"ngram_counts", Ints{0}},
          {"ngram_indexes", Ints{0}},
          {"pool_int64s", Ints{1}}};
}

TEST(Host, EveryFunctionRefusesMissingInputsUnderItsName) {
  const std::set<std::string_view> without_inputs = {"optional", "optional_has_element",
                                                     "sequence_empty"};
  for (const Entry& entry : all()) {
    const Attrs attrs = every_attribute(entry.name);
    const Results results = entry.function({.inputs = {}, .attrs = attrs});
    if (without_inputs.contains(entry.name)) {
      EXPECT_TRUE(results.has_value()) << entry.name;
    } else {
      ASSERT_FALSE(results) << entry.name;
      EXPECT_EQ(results.error().id, "host-" + std::string(entry.name));
    }
  }
}

TEST(Host, NoFunctionFallsForInputsOfAnotherKind) {
  const std::vector<Datum> odd = {
      Datum(),
      Datum::optional(),
      Datum::sequence({}),
      Datum::sequence({floats({1}, {1}), Datum::optional()}),
      floats({}, {1}),
      floats({0, 3}, {}),
      floats({2, 1, 2}, {1, 2, 3, 4}),
      integers({2}, {-9223372036854775807 - 1, 9223372036854775807}),
      integers({std::int64_t{1} << 40, 0}, {}),
      integers({std::int64_t{1} << 40, std::int64_t{1} << 40, 0}, {}),
      bools({1}, {1}),
      texts({2}, {"a", "1"}),
      texts({}, {""}),
  };
  for (const Entry& entry : all()) {
    const Attrs attrs = every_attribute(entry.name);
    for (const Datum& first : odd)
      for (const Datum& second : odd)
        for (const Datum& third : odd) {
          const std::vector<Datum> inputs = {first, second, third};
          const Results results =
              entry.function({.inputs = inputs, .attrs = attrs, .memory_limit = 1 << 16});
          if (!results) {
            EXPECT_THAT(results.error().id,
                        ::testing::AnyOf("host-" + std::string(entry.name), "memory-limit"));
          }
        }
  }
}

}  // namespace
}  // namespace tessera::host
