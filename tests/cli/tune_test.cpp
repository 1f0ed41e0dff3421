/// `tessera tune` as a user meets it.

#include <gmock/gmock.h>

#include "tests/support/tessera_command.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

class TuneCommand : public testing::TesseraCommand {
 protected:
  void SetUp() override {
    folder.write("model.tessera",
                 "graph(x: f32[96, 80], y: f32[80, 112]) { return relu(matmul(x, y)) }");
  }
  const std::vector<std::string> tune{"tune",    "model.tessera", "--store",   "tuned.sqlite",
                                      "--cache", "none",          "--threads", "1",
                                      "--json",  "--budget",      "2s"};
};

TEST_F(TuneCommand, MeasuresAndContinues) {
  const nlohmann::json first = json(tune);
  ASSERT_EQ(first["tasks"].size(), 1U);
  const nlohmann::json& task = first["tasks"][0];
  EXPECT_GT(task["trials"], 0);
  EXPECT_EQ(task["known"], 0);
  EXPECT_GT(task["default_seconds"], 0);
  EXPECT_LE(first["tuned_seconds"], first["default_seconds"]);
  const nlohmann::json again = json(tune);
  EXPECT_EQ(again["tasks"][0]["known"], task["trials"]);
}

TEST_F(TuneCommand, OtherCommandsUseWhatWasChosen) {
  const nlohmann::json tuned = json(tune);
  const bool is_chosen = tuned["tasks"][0].contains("schedule");
  const auto compiled = tessera({"compile", "model.tessera", "--store", "tuned.sqlite", "--cache",
                                 "none", "--threads", "1", "--explain"});
  EXPECT_EQ(compiled.out.find("tuned schedule") != std::string::npos, is_chosen) << compiled.out;
  const auto other = tessera({"compile", "model.tessera", "--store", "none", "--cache", "none",
                              "--threads", "1", "--explain"});
  EXPECT_EQ(other.out.find("tuned schedule"), std::string::npos);
}

TEST_F(TuneCommand, WritesAPage) {
  std::vector<std::string> command = tune;
  command.insert(command.end(), {"--report", "page.html", "--events", "events.jsonl"});
  json(command);
  EXPECT_THAT(testing::content_of(folder.path() / "page.html"), HasSubstr("tuningTab"));
  const std::string events = testing::content_of(folder.path() / "events.jsonl");
  for (const char* event : {"tuning", "tuning_task", "trial", "step", "kernel"})
    EXPECT_THAT(events, HasSubstr(std::string("{\"event\":\"") + event + "\""));
}

}  // namespace
}  // namespace tessera
