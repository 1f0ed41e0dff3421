#include "tessera/runtime/host/regex_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tessera/runtime/host/utf8.h"

namespace tessera::host {
namespace {

constexpr std::size_t kLongest = 20'000;
constexpr int kMostRepeats = 1000;
constexpr int kDeepest = 200;

Diagnostic fault(std::string message) {
  return {.id = "host-regex_full_match", .message = std::move(message)};
}

const PointRanges kDigits = {{'0', '9'}};
const PointRanges kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const PointRanges kSpaces = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};

/// Complement of a set of ranges, which may overlap and be in any order.
PointRanges complement(PointRanges ranges) {
  std::ranges::sort(ranges);
  PointRanges out;
  char32_t next = 0;
  for (const auto& [first, last] : ranges) {
    if (first > next) out.emplace_back(next, first - 1);
    next = std::max<char32_t>(next, last + 1);
  }
  if (next <= kLastPoint) out.emplace_back(next, kLastPoint);
  return out;
}

PointRanges in_order(PointRanges ranges) {
  return complement(complement(std::move(ranges)));
}

struct NamedClass {
  std::string_view name;
  PointRanges ranges;
};
const NamedClass kNamedClasses[] = {
    {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
    {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
    {"ascii", {{0, 0x7F}}},
    {"blank", {{'\t', '\t'}, {' ', ' '}}},
    {"cntrl", {{0, 0x1F}, {0x7F, 0x7F}}},
    {"digit", kDigits},
    {"graph", {{'!', '~'}}},
    {"lower", {{'a', 'z'}}},
    {"print", {{' ', '~'}}},
    {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
    {"space", {{'\t', '\r'}, {' ', ' '}}},
    {"upper", {{'A', 'Z'}}},
    {"word", kWord},
    {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
};

struct Flags {
  bool any_case = false;
  bool dot_takes_newline = false;
};

class Parser {
 public:
  Parser(std::string_view pattern, std::vector<PointRanges>& sets) : rest_(pattern), sets_(sets) {}

  Expected<Part> pattern() {
    TESSERA_TRY(Part part, choice());
    if (!rest_.empty()) return fault("a ) without its (");
    return part;
  }

 private:
  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  Expected<char32_t> take_point() {
    const Character character = first_character(rest_);
    if (character.point > kLastPoint) return fault("the pattern is not UTF-8");
    rest_.remove_prefix(character.length);
    return character.point;
  }

  Expected<Part> choice() {
    const Flags outer = flags_;
    if (++depth_ > kDeepest) return fault(fmt::format("more than {} groups nested", kDeepest));
    Part out{.kind = Part::Kind::Choice};
    do {
      TESSERA_TRY(Part way, sequence());
      out.parts.push_back(std::move(way));
    } while (take("|"));
    --depth_;
    flags_ = outer;
    return out;
  }

  Expected<Part> sequence() {
    Part out{.kind = Part::Kind::Sequence};
    while (!rest_.empty() && !rest_.starts_with('|') && !rest_.starts_with(')')) {
      TESSERA_TRY(Part part, atom());
      TESSERA_TRY(part, repeated(std::move(part)));
      out.parts.push_back(std::move(part));
    }
    return out;
  }

  Expected<Part> repeated(Part part) {
    Part out{.kind = Part::Kind::Repeat};
    TESSERA_TRY(const bool found, quantifier(out));
    if (!found) return part;
    take("?");  // prefers fewer; whether the whole text matches does not depend on it
    Part again;
    TESSERA_TRY(const bool twice, quantifier(again));
    if (twice) return fault("a repetition of a repetition");
    out.parts.push_back(std::move(part));
    return out;
  }

  /// Parses * + ? or {m,n} if one comes. A brace that starts no count is a plain character.
  Expected<bool> quantifier(Part& out) {
    if (take("*")) return true;
    if (take("+")) {
      out.least = 1;
      return true;
    }
    if (take("?")) {
      out.most = 1;
      return true;
    }
    const std::string_view before = rest_;
    if (!take("{")) return false;
    const auto least = number();
    out.most = least;
    if (least && take(",")) out.most = number();
    if (!least || !take("}")) {
      rest_ = before;
      out.most.reset();
      return false;
    }
    out.least = *least;
    if (out.least > kMostRepeats || out.most.value_or(out.least) > kMostRepeats)
      return fault(fmt::format("more than {} repetitions", kMostRepeats));
    if (out.most && *out.most < out.least)
      return fault(fmt::format("{} to {} repetitions", out.least, *out.most));
    return true;
  }

  std::optional<int> number() {
    std::optional<int> value;
    while (!rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9') {
      value = std::min(value.value_or(0) * 10 + (rest_[0] - '0'), kMostRepeats + 1);
      rest_.remove_prefix(1);
    }
    return value;
  }

  static Part leaf(Atom atom) { return {.kind = Part::Kind::Leaf, .atom = atom}; }

  /// Characters that match these, with case folding.
  PointRanges accepted(PointRanges ranges) const {
    ranges = in_order(std::move(ranges));
    if (!flags_.any_case) return ranges;
    // Only the letters of the case table, all below this, have another case.
    constexpr char32_t kCased = 0x600;
    PointRanges all = ranges;
    for (char32_t point = 'A'; point < kCased; ++point)
      if (contains(ranges, point))
        for (const char32_t same : {lower_case(point), upper_case(point)})
          if (same != point) all.emplace_back(same, same);
    return in_order(std::move(all));
  }

  Part reads(PointRanges ranges) {
    Part out = leaf(Atom::Read);
    out.set = sets_.size();
    sets_.push_back(std::move(ranges));
    return out;
  }

  Expected<Part> atom() {
    if (take("(")) return group();
    if (take("[")) {
      TESSERA_TRY(PointRanges ranges, bracket());
      return reads(std::move(ranges));
    }
    if (take("^") || take("\\A")) return leaf(Atom::TextStart);
    if (take("$") || take("\\z")) return leaf(Atom::TextEnd);
    if (take("\\b")) return leaf(Atom::WordEdge);
    if (take("\\B")) return leaf(Atom::WordInside);
    if (take("."))
      return reads(flags_.dot_takes_newline ? PointRanges{{0, kLastPoint}}
                                            : complement({{'\n', '\n'}}));
    if (take("\\")) {
      TESSERA_TRY(PointRanges ranges, escape());
      return reads(accepted(std::move(ranges)));
    }
    if (rest_.find_first_of("*+?") == 0) return fault("a repetition of nothing");
    TESSERA_TRY(const char32_t point, take_point());
    return reads(accepted({{point, point}}));
  }

  Expected<Part> group() {
    const Flags outer = flags_;
    if (take("?P<") || take("?<")) {
      const std::size_t end = rest_.find('>');
      if (end == std::string_view::npos || end == 0) return fault("a group name without its end");
      rest_.remove_prefix(end + 1);
    } else if (take("?")) {
      bool on = true;
      while (!rest_.empty() && rest_[0] != ':' && rest_[0] != ')') {
        const char flag = rest_[0];
        rest_.remove_prefix(1);
        if (flag == '-') {
          on = false;
        } else if (flag == 'i') {
          flags_.any_case = on;
        } else if (flag == 's') {
          flags_.dot_takes_newline = on;
        } else if (flag != 'U') {  // U swaps the preference for fewer, which does not matter here
          return fault("a flag of a group that is not supported");
        }
      }
      if (take(")")) return Part{};  // the flags hold for the rest of the group around it
      if (!take(":")) return fault("a ( without its )");
    }
    TESSERA_TRY(Part inner, choice());
    flags_ = outer;
    if (!take(")")) return fault("a ( without its )");
    return inner;
  }

  /// Character set of an escape whose backslash has been read.
  Expected<PointRanges> escape() {
    if (rest_.empty()) return fault("a pattern that ends in a backslash");
    TESSERA_TRY(const char32_t point, take_point());
    switch (point) {
      case 'd': return kDigits;
      case 'D': return complement(kDigits);
      case 'w': return kWord;
      case 'W': return complement(kWord);
      case 's': return kSpaces;
      case 'S': return complement(kSpaces);
      case 'x': return hexadecimal();
      default: break;
    }
    constexpr std::string_view kNames = "abfnrtv", kCharacters = "\a\b\f\n\r\t\v";
    const bool ascii = point < 0x80;
    const auto name = ascii ? kNames.find(static_cast<char>(point)) : std::string_view::npos;
    if (name != std::string_view::npos && point != 'b') {
      const auto named = static_cast<char32_t>(kCharacters[name]);
      return PointRanges{{named, named}};
    }
    if (!ascii || contains(kWord, point)) return fault("an escape that is not supported");
    return PointRanges{{point, point}};
  }

  Expected<PointRanges> hexadecimal() {
    const bool braced = take("{");
    char32_t value = 0;
    int digits = 0;
    for (; !rest_.empty() && digits < (braced ? 8 : 2); ++digits) {
      constexpr std::string_view kDigitNames = "0123456789abcdef";
      const char32_t digit = lower_case(static_cast<unsigned char>(rest_[0]));
      const auto found = kDigitNames.find(static_cast<char>(digit));
      if (found == std::string_view::npos) break;
      value = value * 16 + static_cast<char32_t>(found);
      rest_.remove_prefix(1);
    }
    const bool complete = braced ? digits > 0 && take("}") : digits == 2;
    if (!complete || value > kLastPoint) return fault("a \\x without its number");
    return PointRanges{{value, value}};
  }

  /// One member of a bracket expression: a character, or a class.
  Expected<PointRanges> member() {
    if (take("[:")) {
      const bool negated = take("^");
      for (const NamedClass& named : kNamedClasses)
        if (rest_.starts_with(named.name) && rest_.substr(named.name.size()).starts_with(":]")) {
          rest_.remove_prefix(named.name.size() + 2);
          return negated ? complement(named.ranges) : named.ranges;
        }
      return fault("an unknown class of characters");
    }
    if (take("\\")) return escape();
    TESSERA_TRY(const char32_t point, take_point());
    return PointRanges{{point, point}};
  }

  Expected<PointRanges> bracket() {
    const bool negated = take("^");
    PointRanges ranges;
    bool first = true;
    while (first || !rest_.starts_with(']')) {
      if (rest_.empty()) return fault("a [ without its ]");
      first = false;
      TESSERA_TRY(PointRanges found, member());
      const bool single = found.size() == 1 && found[0].first == found[0].second;
      const bool range = rest_.starts_with('-') && rest_.size() > 1 && rest_[1] != ']';
      if (single && range) {
        rest_.remove_prefix(1);
        TESSERA_TRY(const PointRanges last, member());
        if (last.size() != 1 || last[0].first != last[0].second || last[0].first < found[0].first)
          return fault("a range of characters that runs backwards");
        found[0].second = last[0].second;
      }
      ranges.insert(ranges.end(), found.begin(), found.end());
    }
    rest_.remove_prefix(1);
    ranges = accepted(std::move(ranges));
    return negated ? complement(std::move(ranges)) : ranges;
  }

  std::string_view rest_;
  std::vector<PointRanges>& sets_;
  Flags flags_;
  int depth_ = 0;
};

}  // namespace

bool contains(const PointRanges& ranges, char32_t point) {
  const auto range = std::ranges::lower_bound(ranges, point, {}, &PointRanges::value_type::second);
  return range != ranges.end() && range->first <= point;
}

bool is_word_character(char32_t point) {
  return contains(kWord, point);
}

Expected<Pattern> parse_pattern(std::string_view text) {
  if (text.size() > kLongest)
    return fault(fmt::format("a pattern of {} bytes is too long", text.size()));
  Pattern pattern;
  TESSERA_TRY(pattern.root, Parser(text, pattern.sets).pattern());
  return pattern;
}

}  // namespace tessera::host
