#include "tessera/runtime/host/regex.h"

#include <fmt/format.h>

#include <optional>

#include "tessera/runtime/host/utf8.h"

namespace tessera::host {
namespace {

using Step = Regex::Step;

constexpr std::size_t kMostSteps = 20'000;

/// Compiles the tree from its end to its start, so that each state knows its successor.
class Unfolding {
 public:
  explicit Unfolding(std::vector<Step>& steps) : steps_(steps) {}

  /// Initial state of `part` if `next` comes after it; none if there are too many states.
  std::optional<std::size_t> before(const Part& part, std::size_t next) {
    // Parts that compile to nothing cost time as well.
    if (++work_ > 10 * kMostSteps || steps_.size() > kMostSteps) return std::nullopt;
    switch (part.kind) {
      case Part::Kind::Leaf:
        return add({.kind = Step::Kind::Test, .atom = part.atom, .next = next, .other = part.set});
      case Part::Kind::Sequence: return in_sequence(part, next);
      case Part::Kind::Choice: return one_of(part, next);
      case Part::Kind::Repeat: return repeated(part, next);
    }
    return std::nullopt;
  }

 private:
  std::size_t add(const Step& step) {
    steps_.push_back(step);
    return steps_.size() - 1;
  }
  std::size_t fork(std::size_t next, std::size_t other) {
    return add({.kind = Step::Kind::Fork, .next = next, .other = other});
  }

  std::optional<std::size_t> in_sequence(const Part& part, std::size_t next) {
    std::optional<std::size_t> at = next;
    for (auto it = part.parts.rbegin(); at && it != part.parts.rend(); ++it) at = before(*it, *at);
    return at;
  }

  std::optional<std::size_t> one_of(const Part& part, std::size_t next) {
    std::optional<std::size_t> at;
    for (const Part& way : part.parts) {
      const auto start = before(way, next);
      if (!start) return std::nullopt;
      at = at ? fork(*at, *start) : *start;
    }
    return at;
  }

  std::optional<std::size_t> repeated(const Part& part, std::size_t next) {
    const Part& body = part.parts.front();
    std::optional<std::size_t> at = next;
    if (!part.most) {
      const std::size_t loop = fork(next, next);
      const auto start = before(body, loop);
      if (!start) return std::nullopt;
      steps_[loop].other = *start;
      at = loop;
    }
    for (int i = part.least; part.most && at && i < *part.most; ++i) {
      const auto start = before(body, *at);
      if (!start) return std::nullopt;
      at = fork(*start, next);
    }
    for (int i = 0; at && i < part.least; ++i) at = before(body, *at);
    return at;
  }

  std::vector<Step>& steps_;
  std::size_t work_ = 0;
};

/// Surroundings of a position in the text.
struct Surroundings {
  bool at_start, at_end, word_before, word_after;

  bool allow(Atom atom) const {
    switch (atom) {
      case Atom::TextStart: return at_start;
      case Atom::TextEnd: return at_end;
      case Atom::WordEdge: return word_before != word_after;
      case Atom::WordInside: return word_before == word_after;
      case Atom::Read: return false;
    }
    return false;
  }
};

}  // namespace

Expected<Regex> Regex::parse(std::string_view text) {
  TESSERA_TRY(Pattern pattern, parse_pattern(text));
  Regex regex;
  regex.sets_ = std::move(pattern.sets);
  regex.steps_.emplace_back();  // Accept
  const auto start = Unfolding(regex.steps_).before(pattern.root, 0);
  if (!start)
    return Diagnostic{
        .id = "host-regex_full_match",
        .message = fmt::format("the pattern unfolds to more than {} steps", kMostSteps)};
  // A fork with equal successors is a plain transition to the start.
  regex.steps_.push_back({.kind = Step::Kind::Fork, .next = *start, .other = *start});
  return regex;
}

bool Regex::matches(std::string_view text) const {
  std::vector<std::size_t> current = {steps_.size() - 1}, readers;
  std::vector<std::size_t> seen(steps_.size(), 0);  // position at which a state was reached last
  const std::size_t length = text.size();
  bool word_before = false;
  for (std::size_t round = 1;; ++round) {
    const bool at_end = text.empty();
    const Character character = at_end ? Character{} : first_character(text);
    const Surroundings around{.at_start = text.size() == length,
                              .at_end = at_end,
                              .word_before = word_before,
                              .word_after = !at_end && is_word_character(character.point)};
    readers.clear();
    bool accepted = false;
    while (!current.empty()) {
      const std::size_t at = current.back();
      current.pop_back();
      if (seen[at] == round) continue;
      seen[at] = round;
      const Step& step = steps_[at];
      switch (step.kind) {
        case Step::Kind::Accept: accepted = true; break;
        case Step::Kind::Fork:
          current.push_back(step.next);
          current.push_back(step.other);
          break;
        case Step::Kind::Test:
          if (step.atom == Atom::Read) readers.push_back(at);
          if (around.allow(step.atom)) current.push_back(step.next);
          break;
      }
    }
    if (at_end) return accepted;
    for (const std::size_t at : readers)
      if (contains(sets_[steps_[at].other], character.point)) current.push_back(steps_[at].next);
    if (current.empty()) return false;
    word_before = around.word_after;
    text.remove_prefix(character.length);
  }
}

}  // namespace tessera::host
