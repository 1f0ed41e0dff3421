#include "tessera/lower/group_schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tessera/support/lexer.h"

namespace tessera::lower {
namespace {

constexpr std::size_t kMostNumbers = 64, kMostStages = 1000;
constexpr std::int64_t kMostTile = std::int64_t{1} << 40;
constexpr std::int64_t kMostOfABlock = 64;

/// Named parameters of a schedule as lists of numbers, in the order of the text form. One table
/// for each strategy serves the printer and the parser.
using Parameters = std::vector<std::pair<std::string_view, std::vector<std::int64_t>>>;

Parameters parameters_of(const ContractionSchedule& s) {
  return {{"rows", s.rows},
          {"columns", {s.columns}},
          {"sums", s.sums},
          {"panel", {s.panel}},
          {"columns_outer", {s.columns_outer ? 1 : 0}}};
}
Parameters parameters_of(const BlockContractionSchedule& s) {
  return {
      {"rows", s.rows},           {"columns", {s.columns}},
      {"sums", s.sums},           {"columns_outer", {s.columns_outer ? 1 : 0}},
      {"split_k", {s.split}},     {"stages", {s.block.stages}},
      {"warps", {s.block.warps}}, {"producers", {static_cast<std::int64_t>(s.block.producers)}}};
}
Parameters parameters_of(const WinogradSchedule& s) {
  return {{"m", {s.m}},
          {"block", {s.images, s.slices, s.rows, s.columns}},
          {"filters", {s.filters}},
          {"panel", {s.panel}},
          {"programs", {s.programs}}};
}
Parameters parameters_of(const AttentionSchedule& s) {
  return {{"rows", {s.rows}}, {"keys", {s.keys}}};
}
Parameters parameters_of(const RowsSchedule& s) {
  return {{"blocks", s.blocks}};
}

void assign(ContractionSchedule& s, const Parameters& p) {
  s = {p[0].second, p[1].second[0], p[2].second, p[3].second[0], p[4].second[0] != 0};
}
void assign(BlockContractionSchedule& s, const Parameters& p) {
  using Producers = tile::BlockRequest::Producers;
  const auto number = [&](std::size_t i) { return p[i].second[0]; };
  // Numbers that no block has stay so.
  const auto small = [&](std::size_t i) {
    return static_cast<int>(std::min(number(i), kMostOfABlock));
  };
  s = {.rows = p[0].second,
       .columns = number(1),
       .sums = p[2].second,
       .columns_outer = number(3) != 0,
       .split = number(4),
       .block = {.stages = small(5),
                 .warps = small(6),
                 .producers = static_cast<Producers>(std::min<std::int64_t>(number(7), 3))}};
}
void assign(WinogradSchedule& s, const Parameters& p) {
  const auto& block = p[1].second;
  s = {p[0].second[0], block[0],       block[1],       block[2],
       block[3],       p[2].second[0], p[3].second[0], p[4].second[0]};
}
void assign(AttentionSchedule& s, const Parameters& p) {
  s = {p[0].second[0], p[1].second[0]};
}
void assign(RowsSchedule& s, const Parameters& p) {
  s.blocks = p[0].second;
}

std::string_view name_of(const ContractionSchedule&) {
  return "contraction";
}
std::string_view name_of(const BlockContractionSchedule&) {
  return "block_contraction";
}
std::string_view name_of(const WinogradSchedule&) {
  return "winograd";
}
std::string_view name_of(const AttentionSchedule&) {
  return "attention_tile";
}
std::string_view name_of(const RowsSchedule&) {
  return "rows";
}

template <class Schedule>
std::string text_of(const Schedule& schedule) {
  std::string text(name_of(schedule));
  for (const auto& [name, numbers] : parameters_of(schedule))
    text += fmt::format(" {}={}", name, fmt::join(numbers, ","));
  return text;
}

std::string text_of(const LoopsSchedule& schedule) {
  std::string text = "loops";
  for (std::size_t i = 0; i < schedule.stages.size(); ++i) {
    if (i > 0) text += " |";
    std::string steps = tile::to_text(schedule.stages[i]);
    if (!steps.empty()) steps.pop_back();
    for (const char c : " " + steps) text += c == '\n' ? std::string("; ") : std::string(1, c);
  }
  return text;
}

/// Reads `name=1,2,3` for each parameter; lists that have a fixed length keep it.
template <class Schedule>
Expected<GroupSchedule> parse_parameters(Lexer& lexer) {
  Schedule schedule;
  Parameters parameters = parameters_of(schedule);
  for (auto& [name, numbers] : parameters) {
    TESSERA_TRY(const std::string found, lexer.name("a parameter"));
    if (found != name) return lexer.error(fmt::format("the parameter '{}' belongs here", name));
    TESSERA_TRY_DONE(lexer.expect("="));
    const std::size_t fixed = numbers.size();
    numbers.clear();
    while (lexer.peek().kind == Token::Kind::Integer) {
      TESSERA_TRY(const std::int64_t number, lexer.integer("a number"));
      if (number < 0 || number > kMostTile) return lexer.error("the number is out of range");
      if (numbers.size() == kMostNumbers) return lexer.error("these are too many numbers");
      numbers.push_back(number);
      if (!lexer.accept(",")) break;
    }
    if (fixed > 0 && numbers.size() != fixed)
      return lexer.error(fmt::format("'{}' has {} number{}", name, fixed, fixed == 1 ? "" : "s"));
  }
  assign(schedule, parameters);
  if (parameters_of(schedule) != parameters) return lexer.error("a number is out of range");
  return GroupSchedule(std::move(schedule));
}

/// Steps of each stage: `;` between steps, `|` between stages.
Expected<GroupSchedule> parse_loops(std::string_view text, const std::string& file) {
  LoopsSchedule schedule;
  while (true) {
    const std::size_t bar = text.find('|');
    std::string stage(text.substr(0, bar));
    std::ranges::replace(stage, ';', '\n');
    TESSERA_TRY(std::vector<tile::Step> steps, tile::parse_schedule(stage, file));
    schedule.stages.push_back(std::move(steps));
    if (bar == std::string_view::npos) return GroupSchedule(std::move(schedule));
    if (schedule.stages.size() == kMostStages)
      return illegal_schedule("the schedule has too many stages");
    text.remove_prefix(bar + 1);
  }
}

}  // namespace

std::string to_text(const GroupSchedule& schedule) {
  return std::visit([](const auto& alternative) { return text_of(alternative); }, schedule);
}

Expected<GroupSchedule> parse_group_schedule(std::string_view text, const std::string& file) {
  Lexer lexer(text, file);
  TESSERA_TRY(const std::string kind, lexer.name("a strategy such as contraction or loops"));
  if (kind == "loops") return parse_loops(text.substr(text.find("loops") + 5), file);
  Expected<GroupSchedule> schedule =
      kind == "contraction"         ? parse_parameters<ContractionSchedule>(lexer)
      : kind == "block_contraction" ? parse_parameters<BlockContractionSchedule>(lexer)
      : kind == "winograd"          ? parse_parameters<WinogradSchedule>(lexer)
      : kind == "attention_tile"    ? parse_parameters<AttentionSchedule>(lexer)
      : kind == "rows"              ? parse_parameters<RowsSchedule>(lexer)
                       : Expected<GroupSchedule>(lexer.error("unknown strategy '" + kind + "'"));
  if (schedule && lexer.peek().kind != Token::Kind::End)
    return lexer.expected("the end of the schedule");
  return schedule;
}

Diagnostic illegal_schedule(std::string reason) {
  return {.id = "schedule-illegal",
          .message = std::move(reason),
          .note = "the schedule does not fit the definition or the target machine"};
}

}  // namespace tessera::lower
