#include "tessera/driver/check_steps.h"

#include <gtest/gtest.h>

#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"

namespace tessera {
namespace {

CompiledModel compiled(const std::string& text, const machine::Machine& machine) {
  const Model model{.graph = testing::parsed(text), .output_names = {}};
  CompileModelOptions options;
  options.code.machine = machine;
  auto made = compile_model(model, {std::nullopt}, options);
  EXPECT_TRUE(made) << to_string(made.error());
  return *std::move(made);
}

const std::vector<Datum> kInputs = {testing::random_f32({8, 8}, 1)};

TEST(CheckSteps, LaunchesAreAsTheirTilePrograms) {
  for (const machine::Machine& machine : {machine::host(), machine::cuda()}) {
    const auto report = check_steps(
        compiled("graph(x: f32[8, 8]) { return softmax(matmul(x, x)) }", machine), kInputs, {});
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_GT(report->launches, 0U);
    EXPECT_TRUE(report->differences.empty()) << report->differences[0].what;
  }
}

TEST(CheckSteps, NamesTheStepThatIsNot) {
  CompiledModel one = compiled("graph(x: f32[8, 8]) { return relu(x) }", machine::host());
  one.kernels = compiled("graph(x: f32[8, 8]) { return neg(x) }", machine::host()).kernels;
  const auto report = check_steps(one, kInputs, {});
  ASSERT_TRUE(report) << to_string(report.error());
  ASSERT_EQ(report->differences.size(), 1U);
  EXPECT_EQ(report->differences[0].step, 0U);
  EXPECT_NE(report->differences[0].what.find("relu"), std::string::npos);
}

}  // namespace
}  // namespace tessera
