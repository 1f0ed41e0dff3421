/// `tessera costs` as a user meets it.

#include <gmock/gmock.h>

#include "tests/support/tessera_command.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

class CostsCommand : public testing::TesseraCommand {
 protected:
  void SetUp() override {
    folder.write("model.tessera",
                 "graph(x: f32[8, 64]) { return softmax(relu(matmul(x, transpose(x) {perm=[1, "
                 "0]}))) }");
  }
  const std::vector<std::string> of_model{"costs",        "model.tessera", "--store",
                                          "costs.sqlite", "--cache",       "none",
                                          "--json",       "--threads",     "1"};
};

TEST_F(CostsCommand, MeasuresTheKernelsOfAModelOnce) {
  const nlohmann::json first = json(of_model), again = json(of_model);
  EXPECT_TRUE(first["measured"]);
  EXPECT_GT(first["run_seconds"], 0);
  ASSERT_FALSE(first["kernels"].empty());
  EXPECT_FALSE(first["kernels"][0]["known_before"]);
  EXPECT_TRUE(again["kernels"][0]["known_before"]);
  EXPECT_EQ(again["seconds"], first["seconds"]);
}

TEST_F(CostsCommand, ListsWhatWasMeasured) {
  const nlohmann::json made = json(of_model);
  const nlohmann::json held = json({"costs", "--store", "costs.sqlite", "--json"});
  ASSERT_EQ(held["targets"].size(), 1U);
  EXPECT_EQ(held["targets"][0]["threads"], 1);
  EXPECT_LE(held["targets"][0]["kernels"], made["kernels"].size());
  const std::string target = held["targets"][0]["name"];
  EXPECT_THAT(tessera({"costs", "--store", "costs.sqlite"}).out, HasSubstr("target " + target));
  const auto profiled = json({"profile", "model.tessera", "--store", "costs.sqlite", "--cache",
                              "none", "--threads", "1", "--runs", "2", "--json"});
  EXPECT_EQ(profiled["steps"][0]["expected_from"], "store");
}

TEST_F(CostsCommand, AnotherTargetIsReckonedAndNotMeasured) {
  json(of_model);
  const auto unknown = tessera({"costs", "model.tessera", "--store", "costs.sqlite",
                                "--measured-on", "toaster", "--cache", "none"});
  EXPECT_EQ(unknown.exit_code, kBadInput);
  EXPECT_THAT(unknown.err, HasSubstr("error[store-no-target]"));
}

}  // namespace
}  // namespace tessera
