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

/// What every function may ask for, so that the data alone is wrong.
Attrs every_attribute() {
  return {{"axis", std::int64_t{0}},
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
    const Attrs attrs = every_attribute();
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
  const Attrs attrs = every_attribute();
  for (const Entry& entry : all())
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

}  // namespace
}  // namespace tessera::host
