#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tessera/expr/field.h"
#include "tessera/interp/interp.h"
#include "tessera/ir/bind.h"
#include "tessera/ir/text.h"
#include "tessera/rules/text.h"
#include "tessera/superopt/mutate/find_mutants.h"
#include "tessera/superopt/mutate/positions.h"
#include "tests/support/graph_check.h"

namespace tessera::superopt {
namespace {

using testing::parsed;

constexpr const char* kImageSizes =
    "sizes n=2 c=3 f=4 h=5 w=6\nsizes c=2 n=3 w=4 f=5 h=6\nmost 1500 elements";

/// Mutants over the operators of a shipped set that a class needs.
MutantResult mutants_of(std::string_view inputs, const std::vector<std::string>& operators,
                        const std::string& of = "sets/pet.set",
                        std::string_view sizes = kImageSizes) {
  std::string text = fmt::format("set part\n{}\n{}\n", sizes, inputs);
  const auto sets = shipped_sets();
  const auto pet = std::ranges::find(sets, of, &ShippedSet::name);
  EXPECT_NE(pet, sets.end());
  for (const std::string& name : operators) {
    const std::size_t begin = pet->text.find("op " + name + "(");
    EXPECT_NE(begin, std::string_view::npos) << name;
    std::size_t end = begin;
    for (int depth = 0, braces = 0; braces == 0 || depth > 0; ++end) {
      // The body is the first brace that begins a statement.
      if (pet->text[end] == '{') ++depth;
      if (pet->text[end] == '}' && --depth == 0) ++braces;
    }
    text += std::string(pet->text.substr(begin, end - begin)) + "\n";
  }
  const auto set = parse_set(text, "part.set");
  EXPECT_TRUE(set) << to_string(set.error()) << "\n" << text;
  if (!set) return {};
  auto result = find_mutants(*set, {.max_ops = 3});
  EXPECT_TRUE(result) << to_string(result.error());
  return result ? *std::move(result) : MutantResult{};
}

constexpr const char* kImages =
    "input x, y: f32[n, c, h, w]\n"
    "weight k, l: f32[f, c, 3, 3] as f32[_, _, 2*_ + 1, 2*_ + 1]\n"
    "like i: f32[n, c, h, w]";

/// The mutant of a name, which has to be proved.
const rules::Rule* proved(const MutantResult& result, std::string_view name) {
  for (const FoundMutant& mutant : result.mutants)
    if (mutant.corrected.rule.name == name) {
      EXPECT_EQ(prove::to_string(mutant.corrected.verdict), "proved") << name;
      return &mutant.corrected.rule;
    }
  ADD_FAILURE() << "there is no mutant " << name;
  return nullptr;
}

std::string region_text(const rules::Rule* rule) {
  return rule != nullptr && rule->mutant ? rules::to_text(rule->mutant->wrong) : "";
}

TEST(Mutants, OneConvolutionOverTheConcatenationIsWrongAlongTheSeam) {
  const MutantResult found = mutants_of(kImages, {"conv", "concat_columns"});
  const rules::Rule* rule = proved(found, "concat_columns_conv_conv_as_conv_concat_columns");
  ASSERT_NE(rule, nullptr);
  // For all sizes and windows: half a window on both sides of the seam.
  EXPECT_EQ(region_text(rule), "[_, _, _, e - j : e + j]");
}

TEST(Mutants, ABatchIsFoldedIntoTheRows) {
  const MutantResult found = mutants_of(kImages, {"conv", "fold_rows", "unfold_rows"});
  const rules::Rule* rule = proved(found, "conv_as_unfold_rows_conv_fold_rows");
  ASSERT_NE(rule, nullptr);
  EXPECT_TRUE(rule->mutant);
}

TEST(Mutants, ABatchIsFoldedIntoTheColumns) {
  const MutantResult found = mutants_of(kImages, {"conv", "fold_columns", "unfold_columns"});
  const rules::Rule* rule = proved(found, "conv_as_unfold_columns_conv_fold_columns");
  ASSERT_NE(rule, nullptr);
  EXPECT_TRUE(rule->mutant);
}

TEST(Mutants, ADilatedConvolutionIsADenseOneOnDeinterleavedPixels) {
  const MutantResult found = mutants_of(
      "input z: f32[n, c, 2*h, 2*w] as f32[_, _, 2*_, 2*_]\n"
      "weight k: f32[f, c, 3, 3] as f32[_, _, 2*_ + 1, 2*_ + 1]",
      {"conv", "conv_dilated", "deinterleave", "interleave"});
  const rules::Rule* rule = proved(found, "conv_dilated_as_interleave_conv_deinterleave");
  ASSERT_NE(rule, nullptr);
  EXPECT_FALSE(rule->mutant);
}

TEST(Mutants, AnImageAndAWindowArePadded) {
  const MutantResult found =
      mutants_of(kImages, {"conv", "conv_window", "pad_image", "crop_image", "pad_kernel"});
  proved(found, "conv_as_conv_window_pad_kernel");
  proved(found, "conv_as_crop_image_conv_pad_image");
}

TEST(Mutants, AKernelIsTransposed) {
  const MutantResult found = mutants_of(kImages, {"conv", "conv_turned", "turn_image"});
  proved(found, "conv_as_turn_image_conv_turned_turn_image");
}

TEST(Mutants, APointwiseConvolutionIsAMatmul) {
  const MutantResult found = mutants_of(
      "input x: f32[n, c, h, w]\nweight e: f32[f, c, 1, 1] as f32[_, _, 1, 1]\n"
      "like i: f32[n, c, h, w]",
      {"conv_pointwise", "matmul_kernel", "flatten", "unflatten"});
  proved(found, "conv_pointwise_as_unflatten_matmul_kernel_flatten");
}

TEST(Mutants, ConvolutionsAreMergedIntoGroups) {
  const MutantResult found =
      mutants_of(kImages, {"conv", "conv_two_groups", "concat_channels", "concat_kernels"});
  proved(found, "concat_channels_conv_conv_as_conv_two_groups_concat_channels_concat_kernels");
}

TEST(Mutants, KernelsOfUnequalWindowsAreMergedByPadding) {
  const MutantResult found = mutants_of(
      "input x: f32[n, c, h, w]\n"
      "weight k: f32[f, c, 3, 3] as f32[_, _, 2*_ + 1, 2*_ + 1]\n"
      "weight e: f32[f, c, 1, 1] as f32[_, _, 1, 1]",
      {"conv", "conv_pointwise", "concat_channels", "concat_kernels", "pad_kernel"});
  proved(found, "concat_channels_conv_conv_pointwise_as_conv_concat_kernels_pad_kernel");
}

TEST(Mutants, BatchedMatmulsAreMerged) {
  const MutantResult found =
      mutants_of("input a, s: f32[n, h, c]\ninput b, t: f32[n, c, w]", {"matmul", "concat_stack"});
  proved(found, "concat_stack_matmul_matmul_as_matmul_concat_stack_concat_stack");
}

/// Random sizes that satisfy the guard of a rule.
std::optional<SizeValues> random_sizes(const rules::Rule& rule, Rng& rng) {
  std::set<std::string> names;
  for (const ValueId id : rule.source.inputs())
    for (const Dim& dim : *rule.source.type(id).shape) dim.collect_symbols(names);
  for (int attempt = 0; attempt < 50; ++attempt) {
    SizeValues sizes;
    for (const std::string& name : names) sizes[name] = 1 + static_cast<std::int64_t>(rng.below(4));
    if (const auto fits = holds(rule.guard, sizes); fits && *fits && bound(rule.source, sizes))
      return sizes;
  }
  return std::nullopt;
}

bool is_inside(const rules::Region& region, std::size_t output, std::size_t position,
               const OutputDifference& shape, const SizeValues& sizes) {
  const auto number = [&](const Dim& dim) {
    return dim
        .substituted([&](std::string_view name) -> std::optional<Dim> {
          return Dim(sizes.find(name)->second);
        })
        .constant()
        .value();
  };
  std::vector<std::int64_t> at(shape.shape.size());
  for (std::size_t axis = at.size(); axis-- > 0;) {
    const auto size = static_cast<std::size_t>(shape.shape[axis]);
    at[axis] = static_cast<std::int64_t>(position % size);
    position /= size;
  }
  return std::ranges::any_of(region, [&](const rules::Box& box) {
    bool inside = box.output == output;
    for (std::size_t axis = 0; axis < at.size(); ++axis)
      if (const auto& interval = box.axes[axis])
        inside = inside && at[axis] >= number(interval->begin) && at[axis] < number(interval->end);
    return inside;
  });
}

/// Compares proved mutants at random sizes, over a prime field: the corrected program is right at
/// every position, the mutant is wrong in its region alone, and the few positions that
/// multilinearity asks for tell each box as all of its positions do. Returns how many.
int expect_sound(const MutantResult& found, int draws, std::uint64_t seed) {
  Rng rng(seed);
  int compared = 0;
  for (const FoundMutant& mutant : found.mutants) {
    const rules::Rule& rule = mutant.corrected.rule;
    if (!std::holds_alternative<prove::Proved>(mutant.corrected.verdict)) continue;
    SCOPED_TRACE(rules::to_text(rule));
    for (int draw = 0; draw < draws; ++draw) {
      const auto sizes = random_sizes(rule, rng);
      if (!sizes) continue;
      const auto source = bound(rule.source, *sizes), corrected = bound(rule.target, *sizes);
      EXPECT_TRUE(corrected) << to_string(corrected.error());
      if (!source || !corrected) continue;
      const auto difference = differing_positions(*source, *corrected, rng);
      EXPECT_TRUE(difference) << to_string(difference.error());
      for (const OutputDifference& output : *difference)
        EXPECT_EQ(std::ranges::count(output.differs, true), 0);
      ++compared;
      if (!rule.mutant) continue;
      const auto wrong = differing_positions(*source, *bound(rule.mutant->target, *sizes), rng);
      EXPECT_TRUE(wrong) << to_string(wrong.error());
      for (std::size_t i = 0; i < wrong->size(); ++i) {
        const OutputDifference& output = (*wrong)[i];
        for (std::size_t at = 0; at < output.differs.size(); ++at)
          EXPECT_TRUE(!output.differs[at] || is_inside(rule.mutant->wrong, i, at, output, *sizes));
      }
    }
    if (::testing::Test::HasFailure()) return compared;
  }
  return compared;
}

TEST(Mutants, ABatchOfVolumesIsFoldedIntoTheFrames) {
  const MutantResult found = mutants_of(
      "input x: f32[n, c, d, h, w]\n"
      "weight k: f32[f, c, 3, 3, 3] as f32[_, _, 2*_ + 1, 2*_ + 1, 2*_ + 1]\n"
      "like i: f32[n, c, d, h, w]",
      {"conv3d", "fold_frames", "unfold_frames"}, "sets/pet3d.set",
      "sizes n=2 c=3 f=4 d=5 h=6 w=7\nsizes c=2 n=3 w=4 f=5 h=6 d=7\nmost 6000 elements");
  const rules::Rule* rule = proved(found, "conv3d_as_unfold_frames_conv3d_fold_frames");
  ASSERT_NE(rule, nullptr);
  EXPECT_EQ(region_text(rule), "[_, _, max(0, c - j) : c, _, _], [_, _, 0 : j, _, _]");
  EXPECT_GE(expect_sound(found, 12, 3), 6);  // also where a window is longer than the volume
}

TEST(Mutants, AreRightOnceCorrectedAndWrongInTheirRegionAlone) {
  const MutantResult found =
      mutants_of(kImages, {"conv", "concat_columns", "fold_rows", "unfold_rows"});
  EXPECT_EQ(expect_sound(found, 20, 11), 40);
}

TEST(SlowMutants, OfTheWholeSetAreRightOnceCorrected) {
  const auto set = load_set("pet");
  ASSERT_TRUE(set) << to_string(set.error());
  const auto found = find_mutants(*set, {.max_ops = 3});
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_GE(expect_sound(*found, 6, 5), 2000);
  // Merged by the greatest common divisor of 2*f and f filters: three groups of f, the first two on
  // the same image.
  const auto merged =
      std::ranges::find(found->mutants,
                        "concat_channels(conv(x, u), conv(y, k)) as "
                        "conv_three_groups(concat_extended(x, y), concat_kernels(u, k))",
                        [](const FoundMutant& mutant) { return mutant.corrected.rule.about; });
  ASSERT_NE(merged, found->mutants.end());
  EXPECT_FALSE(merged->corrected.rule.mutant) << "equal in all positions";
  EXPECT_EQ(prove::to_string(merged->corrected.verdict), "proved");
}

TEST(MutantRegions, AreFoundByFewPositionsOfEachBox) {
  // The boxes between borders agree exactly where a corner and its neighbours do.
  const Graph source = parsed(
      "graph(x: f32[3, 2, 6, 5], k: f32[2, 2, 3, 3]) { return conv(x, k) {pads=[1, 1, 1, 1]} }");
  const Graph mutant = parsed(
      "graph(x: f32[3, 2, 6, 5], k: f32[2, 2, 3, 3]) {"
      "  m = conv(reshape(transpose(x) {perm=[1, 0, 2, 3]}, [1, 2, 18, 5]), k) {pads=[1, 1, 1, 1]}"
      "  return transpose(reshape(m, [2, 3, 6, 5])) {perm=[1, 0, 2, 3]} }");
  Rng rng(3);
  const auto found = differing_positions(source, mutant, rng);
  ASSERT_TRUE(found) << to_string(found.error());
  const OutputDifference& output = found->at(0);
  const auto borders = borders_of(output);
  EXPECT_EQ(borders[0], (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(borders[2], (std::vector<std::int64_t>{0, 1, 5, 6}));
  for (std::size_t n = 0; n + 1 < borders[0].size(); ++n)
    for (std::size_t y = 0; y + 1 < borders[2].size(); ++y) {
      const bool top = y == 0 && n > 0, bottom = y == 2 && n < 2;
      EXPECT_EQ(agrees_in_box(output, {borders[0][n], 0, borders[2][y], 0},
                              {borders[0][n + 1], 2, borders[2][y + 1], 5}),
                !top && !bottom);
    }
}

TEST(MutantRegions, AreDeclinedWhereDifferencesAreNoBoxes) {
  const auto region = region_of(parsed("graph(x: f32[n, n]) { return transpose(x) {perm=[1, 0]} }"),
                                parsed("graph(x: f32[n, n]) { return mul(x, 1.0) }"), {});
  EXPECT_FALSE(region);
}

}  // namespace
}  // namespace tessera::superopt
