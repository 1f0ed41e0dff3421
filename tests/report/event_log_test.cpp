#include "tessera/report/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "tessera/report/page.h"

namespace tessera::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

EventLog example() {
  EventLog log("compile");
  log.add(Model{.name = "net", .file = "net.onnx", .nodes = 2, .inputs = {{"x", "f32[2]"}}});
  log.add(Node{.graph = "original", .id = 0, .name = "Conv_0", .op = "conv"});
  log.add(Rewrite{.rule = "relu_twice",
                  .times = 2,
                  .where = {"y"},
                  .source = {.labels = {"x", "relu"}, .edges = {{0, 1}}},
                  .proof_steps = {{"unfold", 3}}});
  log.add(StepTime{.step = 1, .calls = 2, .ms = 0.25, .expected_ms = 0.5});
  log.add(StepTime{.step = 2});
  return log;
}

TEST(EventLog, ReadsBackWhatItWrites) {
  const std::string text = to_json_lines(example());
  const auto log = parse_event_log(text);
  ASSERT_TRUE(log) << to_string(log.error());
  EXPECT_EQ(to_json_lines(*log), text);
  EXPECT_EQ(log->header.schema, kSchemaVersion);
  EXPECT_EQ(log->header.command, "compile");
  const auto* rewrite = log->last<Rewrite>();
  ASSERT_NE(rewrite, nullptr);
  EXPECT_THAT(rewrite->where, ElementsAre("y"));
  EXPECT_THAT(rewrite->source.edges, ElementsAre(ElementsAre(0, 1)));
  EXPECT_EQ(rewrite->proof_steps.at("unfold"), 3);
  const auto times = log->all<StepTime>();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0]->expected_ms, 0.5);
  EXPECT_EQ(times[1]->expected_ms, std::nullopt);
}

TEST(EventLog, HasOneObjectPerLineWithItsKindFirst) {
  std::istringstream lines(to_json_lines(example()));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_THAT(line, ::testing::StartsWith("{\"event\":\""));
  EXPECT_EQ(count, 6u);
}

TEST(EventLog, SkipsEventsAndFieldsItDoesNotKnow) {
  const auto log = parse_event_log(
      "{\"event\":\"log\",\"schema\":1,\"later\":true}\n"
      "{\"event\":\"candidate\",\"seconds\":1}\n\n"
      "{\"event\":\"step\",\"id\":3,\"later\":[1,2]}\n");
  ASSERT_TRUE(log) << to_string(log.error());
  ASSERT_EQ(log->records.size(), 1u);
  EXPECT_EQ(log->last<Step>()->id, 3);
}

TEST(EventLog, NamesTheLineThatIsNoEvent) {
  const std::string header = "{\"event\":\"log\",\"schema\":1}\n";
  for (const char* line :
       {"{", "[]", "7", "{\"id\":1}", "{\"event\":7}", "{\"event\":\"step\",\"id\":1.5}",
        "{\"event\":\"node\",\"operands\":[7]}", "{\"event\":\"rewrite\",\"source\":[]}"}) {
    const auto log = parse_event_log(header + line);
    ASSERT_FALSE(log) << line;
    EXPECT_EQ(log.error().id, "report-malformed") << line;
    EXPECT_EQ(log.error().where.item, "line 2") << line;
  }
  EXPECT_FALSE(parse_event_log(""));
  EXPECT_FALSE(parse_event_log("{\"event\":\"step\"}"));
}

TEST(EventLog, KeepsNumbersThatAreNotFinite) {
  EventLog log("profile");
  log.add(report::Run{.ms = std::numeric_limits<double>::quiet_NaN(),
                      .between_ms = std::numeric_limits<double>::infinity()});
  const auto read = parse_event_log(to_json_lines(log));
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_TRUE(std::isnan(read->last<report::Run>()->ms));
}

TEST(EventLog, RepairsTextThatIsNotUtf8) {
  EventLog log("compile");
  log.add(Node{.graph = "original", .name = "a\xff\xfe"});
  const auto read = parse_event_log(to_json_lines(log));
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_THAT(read->last<Node>()->name, ::testing::StartsWith("a"));
}

TEST(EventLog, IsDocumentedFieldByField) {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR) + "/docs/report.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(text, HasSubstr("schema " + std::to_string(kSchemaVersion)));
  for (const auto& [event, fields] : schema()) {
    const std::size_t at = text.find("| `" + event + "` |");
    ASSERT_NE(at, std::string::npos) << event;
    const std::string row = text.substr(at, text.find('\n', at) - at);
    for (const std::string& field : fields) EXPECT_THAT(row, HasSubstr("`" + field + "`")) << event;
  }
}

// --- the page ----------------------------------------------------------------------------------

constexpr const char* kHostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>";

TEST(Page, ContainsTheLogItWasMadeOf) {
  const EventLog log = example();
  const auto read = event_log_of_page(page(log));
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(to_json_lines(*read), to_json_lines(log));
}

TEST(Page, EscapesHostileNames) {
  EventLog log("compile");
  log.add(Model{.name = kHostile, .file = kHostile});
  log.add(Node{.graph = "original", .name = kHostile, .op = kHostile});
  log.add(Node{.graph = "{{js}}", .name = "<!--", .op = std::string(10'000, 'x')});
  const std::string html = page(log, &log);
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  const auto read = event_log_of_page(html);
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->all<Node>()[0]->name, kHostile);
}

TEST(Page, NeedsNoOtherFile) {
  const std::string html = page(example());
  for (const char* word : {"src=\"", "@import", "<link", "url(", "fetch(", "XMLHttpRequest"})
    EXPECT_THAT(html, Not(HasSubstr(word)));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
}

TEST(Page, IsMadeOfAnyLog) {
  EXPECT_THAT(page(EventLog("report")), HasSubstr("</html>"));
  EventLog strange("report");  // numbers that point nowhere
  strange.add(Node{.graph = "compiled", .id = 7, .operands = {{.node = 99}, {.node = 7}}});
  strange.add(Step{.id = 3, .nodes = {1234, -5}, .kernel = 77, .loop = 55});
  EXPECT_THAT(page(strange), HasSubstr("</html>"));
}

}  // namespace
}  // namespace tessera::report
