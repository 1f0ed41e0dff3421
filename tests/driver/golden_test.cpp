#include "tessera/driver/golden.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "tests/support/evaluate.h"

namespace tessera {
namespace {

// rms = 2: the mean of 2, -2, 2, -2 is 0 and its norm 4.
const Golden::Output kGolden{.shape = {4}, .mean = 0, .l2 = 4, .at = {0, 3}, .values = {2, -2}};

TEST(Golden, MeasuresSamplesInUnitsOfRms) {
  const Distance distance = tessera::distance(testing::f32({4}, {2.2, -2, 2, -2}), kGolden);
  EXPECT_NEAR(distance.error, 0.1, 1e-6);
  EXPECT_NEAR(distance.mean_error, 0.025, 1e-6);
  EXPECT_FALSE(distance.within(0.09));
  EXPECT_TRUE(distance.within(0.11));
}

TEST(Golden, SeesWhatTheSamplesMiss) {
  const Distance distance = tessera::distance(testing::f32({4}, {2, 5, 2, -2}), kGolden);
  EXPECT_EQ(distance.error, 0);
  EXPECT_FALSE(distance.within(0.1));
}

TEST(Golden, TakesNaNForInfinitelyFar) {
  EXPECT_FALSE(
      tessera::distance(testing::f32({4}, {std::nan(""), -2, 2, -2}), kGolden).within(1e9));
}

TEST(Golden, SeesANaNThatTheSamplesMiss) {
  EXPECT_FALSE(tessera::distance(testing::f32({4}, {2, std::nan(""), 2, -2}), kGolden).within(1e9));
}

TEST(Golden, TakesEqualInfinitiesAndNaNsForEqual) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor a = testing::f32({4}, {inf, -inf, std::nan(""), 3});
  EXPECT_EQ(tessera::distance(a, a).error, 0);
  EXPECT_TRUE(tessera::distance(a, a).within(0));
  for (const auto& other :
       {testing::f32({4}, {-inf, -inf, std::nan(""), 3}),
        testing::f32({4}, {1e30, -inf, std::nan(""), 3}), testing::f32({4}, {inf, -inf, inf, 3}),
        testing::f32({4}, {inf, -inf, std::nan(""), 4})}) {
    EXPECT_FALSE(tessera::distance(other, a).within(0.1));
    EXPECT_FALSE(tessera::distance(a, other).within(0.1));
  }
}

TEST(Golden, HasOneSampleOfEachStretch) {
  std::vector<double> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const Tensor tensor = testing::f32({10, 100}, values);
  const Golden::Output golden = golden_of(tensor, 7);
  ASSERT_EQ(golden.at.size(), 7U);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_NEAR(static_cast<double>(golden.at[i]), (static_cast<double>(i) + 0.5) * 1000 / 7, 73);
    EXPECT_EQ(golden.values[i], static_cast<double>(golden.at[i]));
  }
  EXPECT_EQ(golden_of(tensor).at.size(), 1000U);
  EXPECT_TRUE(golden_of(testing::f32({0}, {}), 7).at.empty());
  EXPECT_TRUE(tessera::distance(tensor, golden).within(0));
}

TEST(Golden, ComesBackAsWritten) {
  const double inf = std::numeric_limits<double>::infinity();
  Golden golden{.dims = {{"n", 3}}, .producer = "a test", .inputs = "--fill sin"};
  golden.outputs["y/0"] = golden_of(testing::f32({2, 2}, {0.1, -inf, std::nan(""), 7}));
  golden.outputs["none"] = golden_of(testing::f32({0, 3}, {}));
  golden.outputs["text"] = {.shape = {1}, .at = {}, .values = {}, .text = {"\"quoted\""}};
  const auto path = std::filesystem::path(::testing::TempDir()) / "tessera_golden.json";
  ASSERT_TRUE(write_golden(golden, path));
  const auto read = read_golden(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->dims, golden.dims);
  EXPECT_EQ(read->producer, "a test");
  EXPECT_EQ(read->inputs, "--fill sin");
  ASSERT_EQ(read->outputs.size(), 3U);
  for (const auto& [name, output] : golden.outputs) {
    const Golden::Output& found = read->outputs.at(name);
    EXPECT_EQ(found.shape, output.shape);
    EXPECT_EQ(found.mean, output.mean);
    EXPECT_EQ(found.l2, output.l2);
    EXPECT_EQ(found.not_finite, output.not_finite);
    EXPECT_EQ(found.at, output.at);
    EXPECT_EQ(found.text, output.text);
  }
  const std::vector<double>& values = read->outputs.at("y/0").values;
  EXPECT_EQ(values[0], static_cast<double>(0.1F));
  EXPECT_EQ(values[1], -inf);
  EXPECT_TRUE(std::isnan(values[2]));
}

TEST(Golden, RefusesAnotherShape) {
  EXPECT_EQ(tessera::distance(testing::f32({2, 2}, {2, -2, 2, -2}), kGolden).problem,
            "the shape is another");
}

}  // namespace
}  // namespace tessera
