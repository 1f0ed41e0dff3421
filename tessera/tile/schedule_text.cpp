#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tessera/support/lexer.h"
#include "tessera/tile/schedule.h"

namespace tessera::tile {
namespace {

constexpr std::size_t kMostSteps = 10'000, kMostArguments = 64;

constexpr std::array<std::pair<Step::Primitive, std::string_view>, 15> kNames = {{
    {Step::Primitive::Split, "split"},
    {Step::Primitive::Cover, "cover"},
    {Step::Primitive::Tile, "tile"},
    {Step::Primitive::Reorder, "reorder"},
    {Step::Primitive::Fuse, "fuse"},
    {Step::Primitive::Fission, "fission"},
    {Step::Primitive::Skew, "skew"},
    {Step::Primitive::Unroll, "unroll"},
    {Step::Primitive::Vectorize, "vectorize"},
    {Step::Primitive::Parallel, "parallel"},
    {Step::Primitive::ComputeAt, "compute_at"},
    {Step::Primitive::CacheRead, "cache_read"},
    {Step::Primitive::CacheWrite, "cache_write"},
    {Step::Primitive::Pipeline, "pipeline"},
    {Step::Primitive::Tensorize, "tensorize"},
}};

/// `loop`, or `stage/loop`.
std::string place_text(const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return name_text(name);
  return name_text(name.substr(0, slash)) + "/" + name_text(name.substr(slash + 1));
}

Expected<Step> parse_step(Lexer& lexer) {
  const Token word = lexer.peek();
  const auto row =
      std::ranges::find(kNames, word.text, &std::pair<Step::Primitive, std::string_view>::second);
  if (word.kind != Token::Kind::Name || word.quoted || row == kNames.end())
    return lexer.expected("a primitive such as split or vectorize");
  lexer.take();
  Step step{.primitive = row->first};
  TESSERA_TRY_DONE(lexer.expect("("));
  while (!lexer.at(")")) {
    if (step.names.size() + step.numbers.size() > kMostArguments)
      return lexer.error("these are too many arguments");
    if (lexer.peek().kind == Token::Kind::Name) {
      if (!step.numbers.empty()) return lexer.error("names come before numbers");
      TESSERA_TRY(std::string name, lexer.name("a loop"));
      if (lexer.accept("/")) {
        TESSERA_TRY(const std::string loop, lexer.name("a loop"));
        name += "/" + loop;
      }
      step.names.push_back(std::move(name));
    } else {
      TESSERA_TRY(const std::int64_t number, lexer.integer("a loop or a number"));
      step.numbers.push_back(number);
    }
    if (!lexer.accept(",")) break;
  }
  TESSERA_TRY_DONE(lexer.expect(")"));
  return step;
}

}  // namespace

std::string to_text(const std::vector<Step>& steps) {
  std::string text;
  for (const Step& step : steps) {
    text +=
        fmt::format("{}(", std::ranges::find(kNames, step.primitive,
                                             &std::pair<Step::Primitive, std::string_view>::first)
                               ->second);
    std::string_view comma;
    for (const std::string& name : step.names) {
      text += fmt::format("{}{}", comma, place_text(name));
      comma = ", ";
    }
    for (const std::int64_t number : step.numbers) {
      text += fmt::format("{}{}", comma, number);
      comma = ", ";
    }
    text += ")\n";
  }
  return text;
}

Expected<std::vector<Step>> parse_schedule(std::string_view text, const std::string& file) {
  Lexer lexer(text, file);
  std::vector<Step> steps;
  while (lexer.peek().kind != Token::Kind::End) {
    if (steps.size() == kMostSteps) return lexer.error("these are too many steps");
    TESSERA_TRY(Step step, parse_step(lexer));
    steps.push_back(std::move(step));
  }
  return steps;
}

std::string loops_text(const Schedule& schedule) {
  constexpr std::string_view kKinds[] = {"for", "parallel", "vector", "unrolled"};
  std::string text;
  for (const Nest& nest : schedule.nests()) {
    text += nest.stage;
    if (nest.at) text += fmt::format(" in loop {} of {}", nest.at->loop, nest.at->what);
    text += nest.tensorized ? ": a product of matrices\n" : "\n";
    if (nest.at) continue;
    std::size_t depth = 1;
    for (const Loop& loop : nest.loops)
      text += fmt::format("{:{}}{} {} < {}{}\n", "", 2 * depth++,
                          kKinds[static_cast<std::size_t>(loop.kind)], loop.name, loop.extent,
                          loop.reduces ? " of the fold" : "");
  }
  return text;
}

}  // namespace tessera::tile
