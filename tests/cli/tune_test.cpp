/// `tessera tune` as a user meets it.

#include <gmock/gmock.h>

#include "tessera/cost/store.h"
#include "tessera/program/schedule_book.h"
#include "tessera/runtime/cuda/session.h"
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

TEST_F(TuneCommand, NeedsAGpuToTuneForOne) {
  if (runtime::cuda::this_gpu()) GTEST_SKIP() << "there is one";
  const auto failed = tessera({"tune", "model.tessera", "--store", "tuned.sqlite", "--target",
                               "cuda", "--precision", "f16", "--budget", "1s"});
  EXPECT_NE(failed.exit_code, 0);
  EXPECT_THAT(failed.err, HasSubstr("error[cuda-missing]"));
  folder.write("add.tile",
               "kernel add(x: view f32[?], out: view f32[?], BLOCK: const = 16) {\n"
               "  at = mul(pid(), BLOCK)\n  a: f32[BLOCK] = vload(x, at)\n"
               "  vstore(out, at, add(a, 1.0))\n}\n");
  const auto kernel =
      tessera({"tune", "add.tile", "--arg", "x=f32[100]", "--arg", "out=f32[100]", "--grid",
               "ceil_div(out.0, BLOCK)", "--store", "tuned.sqlite", "--target", "cuda"});
  EXPECT_NE(kernel.exit_code, 0);
  EXPECT_THAT(kernel.err, HasSubstr("error[cuda-missing]"));
}

TEST_F(TuneCommand, SchedulesForAGpuAreUsedAnywhere) {
  const std::vector<std::string> target = {"--target", "cuda:sm_90a", "--precision", "f16",
                                           "--cache",  "none",        "--explain"};
  const auto compile = [&](std::vector<std::string> more) {
    std::vector<std::string> command = {"compile", "model.tessera"};
    command.insert(command.end(), target.begin(), target.end());
    command.insert(command.end(), more.begin(), more.end());
    return tessera(command).out;
  };
  const std::string usual =
      compile({"--store", "none", "--save-schedules", (folder.path() / "usual.txt").string()});
  EXPECT_EQ(usual.find("tuned schedule"), std::string::npos);
  auto book = program::read_schedule_book((folder.path() / "usual.txt").string());
  ASSERT_TRUE(book) << to_string(book.error());
  ASSERT_EQ(book->entries.size(), 1u);
  auto schedule = std::get<lower::BlockContractionSchedule>(book->entries.begin()->second.schedule);
  schedule.block.stages = 2;
  const std::string text = lower::to_text(schedule);
  auto store = cost::Store::open(folder.path() / "tuned.sqlite");
  ASSERT_TRUE(store);
  const cost::Target gpu = cost::target_of(machine::cuda("sm_90a"), 1);
  ASSERT_TRUE(store->put(gpu));
  const std::string key = book->entries.begin()->first;
  const cost::ScheduleMeasurement measured{
      .key = key, .schedule = text, .seconds = 1e-6, .ratio = 0.5, .low = 0.4, .high = 0.6};
  ASSERT_TRUE(store->put(gpu.name, std::span(&measured, 1)));
  ASSERT_TRUE(store->choose(gpu.name, key, text));
  const std::string tuned = compile({"--store", (folder.path() / "tuned.sqlite").string()});
  EXPECT_THAT(tuned, HasSubstr("schedules       1 of the fusion groups have a tuned"));
  EXPECT_THAT(tuned, HasSubstr("tuned schedule: " + text));
  compile({"--store", (folder.path() / "tuned.sqlite").string(), "--events", "events.jsonl"});
  const std::string events = folder.read("events.jsonl");
  EXPECT_THAT(events, HasSubstr("\"chosen\":\"" + text + "\""));
  EXPECT_THAT(events, HasSubstr("\"chosen_by\":\"tuning"));
}

TEST_F(TuneCommand, TunesTheConstantsOfAKernel) {
  folder.write("add.tile",
               "kernel add(x: view f32[?], out: view f32[?], BLOCK: const = 16) {\n"
               "  at = mul(pid(), BLOCK)\n  a: f32[BLOCK] = vload(x, at)\n"
               "  vstore(out, at, add(a, 1.0))\n}\n");
  const std::vector<std::string> launch = {"--arg",     "x=f32[100000]",
                                           "--arg",     "out=f32[100000]",
                                           "--grid",    "ceil_div(out.0, BLOCK)",
                                           "--store",   "tuned.sqlite",
                                           "--threads", "1",
                                           "--json"};
  const auto with_launch = [&](std::vector<std::string> command) {
    command.insert(command.end(), launch.begin(), launch.end());
    return json(command);
  };
  const nlohmann::json tuned =
      with_launch({"tune", "add.tile", "--budget", "20s", "--events", "events.jsonl"});
  EXPECT_EQ(tuned["space"], 9);
  EXPECT_EQ(tuned["failed"], 0);
  EXPECT_EQ(tuned["default"]["BLOCK"], 16);
  const nlohmann::json timed = with_launch({"kernel", "bench", "add.tile"});
  EXPECT_EQ(timed["tuned"], !tuned["is_default"]);
  EXPECT_EQ(timed["constants"],
            "constants BLOCK=" + std::to_string(tuned["chosen"]["BLOCK"].get<int>()));
  EXPECT_THAT(testing::content_of(folder.path() / "events.jsonl"),
              HasSubstr("{\"event\":\"trial\""));
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
