#include "tessera/rules/taso_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace tessera::rules::taso {
namespace {

constexpr std::int64_t kLargestNumber = 1 << 20;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > kLargestNumber)
    return std::nullopt;
  return number;
}

/// `3x5`, at the end of a word: what comes before it, and the two sizes.
std::optional<std::pair<std::string_view, Ints>> window_in(std::string_view word) {
  const std::size_t by = word.rfind('x');
  if (by == std::string_view::npos) return std::nullopt;
  const std::string_view before = word.substr(0, by);
  const std::size_t begin = before.find_last_not_of("0123456789") + 1;
  const auto rows = number_in(before.substr(begin)), columns = number_in(word.substr(by + 1));
  if (!rows || !columns || *rows < 1 || *columns < 1) return std::nullopt;
  return std::pair(word.substr(0, begin), Ints{*rows, *columns});
}

/// One line, word by word.
class Words {
 public:
  Words(std::string_view text, int line) : rest_(text), line_(line) { skip(); }

  int line() const { return line_; }
  bool done() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  bool accept(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    // A word is not the beginning of a longer one.
    if (is_word(text.back()) && rest_.size() > text.size() && is_word(rest_[text.size()]))
      return false;
    rest_.remove_prefix(text.size());
    skip();
    return true;
  }
  Expected<Done> expect(std::string_view text) {
    if (accept(text)) return Done{};
    return wrong(text);
  }
  std::string_view word() {
    const auto end = std::ranges::find_if_not(rest_, is_word);
    const std::string_view found(rest_.begin(), end);
    rest_.remove_prefix(found.size());
    skip();
    return found;
  }
  Expected<std::string> name(std::string_view what) {
    const std::string_view found = word();
    if (found.empty()) return wrong(what);
    return std::string(found);
  }
  Expected<std::int64_t> number(std::string_view what) {
    const std::string_view before = rest_;
    if (const auto found = number_in(word())) return *found;
    rest_ = before;
    return wrong(what);
  }

  Diagnostic wrong(std::string_view expected) const {
    return malformed(line_, done() ? "the line ends here" : fmt::format("found '{}'", rest_),
                     fmt::format("{} is expected", expected));
  }

 private:
  void skip() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r"), rest_.size())); }

  std::string_view rest_;
  int line_;
};

/// `s0`, `d2.1`
Expected<Reference> parse_reference(Words& words) {
  Reference reference{.line = words.line()};
  TESSERA_TRY(reference.name, words.name("the name of a value"));
  if (words.accept(".")) {
    TESSERA_TRY(const std::int64_t result, words.number("the number of a result"));
    reference.result = static_cast<std::size_t>(result);
  }
  return reference;
}

/// `[axis=0 ndim=2]`, `[3x3]`
Expected<Done> parse_options(Words& words, Call& call) {
  while (!words.accept("]")) {
    TESSERA_TRY(const std::string key, words.name("an option"));
    if (const auto window = window_in(key); window && window->first.empty()) {
      call.window = window->second;
      continue;
    }
    TESSERA_TRY_DONE(words.expect("="));
    TESSERA_TRY(const std::string value, words.name("the value of an option"));
    std::optional<std::int64_t> number = number_in(value);
    if (!number) {
      call.words[key] = value;
      continue;
    }
    Ints& list = call.numbers[key] = {*number};
    while (words.accept(",")) {
      TESSERA_TRY(const std::int64_t next, words.number("a number"));
      list.push_back(next);
    }
  }
  return Done{};
}

/// `s0 = concat[axis=1 ndim=4](t7, t8)`
Expected<Call> parse_call(Words& words) {
  Call call{.line = words.line()};
  TESSERA_TRY(call.name, words.name("the name of a value"));
  TESSERA_TRY_DONE(words.expect("="));
  TESSERA_TRY(call.op, words.name("an operator"));
  if (const auto window = window_in(call.op)) {
    call.window = window->second;
    call.op = window->first;
  }
  if (words.accept("[")) TESSERA_TRY_DONE(parse_options(words, call));
  if (words.accept("(") && !words.accept(")")) {
    do {
      TESSERA_TRY(Reference arg, parse_reference(words));
      call.args.push_back(std::move(arg));
    } while (words.accept(","));
    TESSERA_TRY_DONE(words.expect(")"));
  }
  if (!words.done()) return words.wrong("the end of the line");
  return call;
}

/// `rule 3: 2 -> 3 ops, 1 output(s); inputs t1:2D, t4:2D`, after the first word.
Expected<Record> parse_header(Words& words, int line) {
  Record record{.line = line};
  TESSERA_TRY(record.number, words.number("the number of a rule"));
  TESSERA_TRY_DONE(words.expect(":"));
  // The counts in between are those of the lines that follow.
  const std::size_t at = words.rest().find("inputs");
  if (at == std::string_view::npos) return words.wrong("a list of inputs");
  Words list(words.rest().substr(at), line);
  TESSERA_TRY_DONE(list.expect("inputs"));
  while (!list.done()) {
    Input input;
    TESSERA_TRY(input.name, list.name("an input"));
    TESSERA_TRY_DONE(list.expect(":"));
    const std::string_view rank = list.word();
    if (rank != "any") {
      const auto axes = rank == "scalar"      ? std::optional<std::int64_t>(0)
                        : rank.ends_with('D') ? number_in(rank.substr(0, rank.size() - 1))
                                              : std::nullopt;
      if (!axes || *axes > kHighestRank)
        return malformed(line, fmt::format("{} has rank '{}'", input.name, rank),
                         fmt::format("a rank is any, or 0D to {}D", kHighestRank));
      input.rank = static_cast<int>(*axes);
    }
    if (std::ranges::count(record.inputs, input.name, &Input::name) != 0)
      return malformed(line, fmt::format("{} is listed twice", input.name));
    record.inputs.push_back(std::move(input));
    if (!list.done()) TESSERA_TRY_DONE(list.expect(","));
  }
  return record;
}

/// What a comment says of the shapes of inputs: `t7.1 == 1`, `t7:(4, 1, 3, 3)`. The rest is prose.
void read_comment(std::string_view text, int line, Record& record) {
  for (Words words(text, line); !words.done();) {
    const auto input = std::ranges::find(record.inputs, words.word(), &Input::name);
    if (input == record.inputs.end()) {
      // On to the next word.
      const std::size_t next = std::min(words.rest().find_first_of(" \t"), words.rest().size());
      words = Words(words.rest().substr(next), line);
      continue;
    }
    if (words.accept(".")) {
      const auto axis = words.number("an axis");
      if (!axis || !words.accept("==")) continue;
      const auto size = words.number("a size");
      if (size) input->fixed[static_cast<std::size_t>(*axis)] = *size;
    } else if (words.accept(":") || words.accept("=")) {
      if (!words.accept("(") && !words.accept("[")) continue;
      std::map<std::size_t, std::int64_t> shape;
      while (const auto size = words.number("a size")) {
        shape.emplace(shape.size(), *size);
        if (!words.accept(",")) break;
      }
      const bool whole = !input->rank || shape.size() == static_cast<std::size_t>(*input->rank);
      if (!whole || shape.size() > kHighestRank) continue;
      input->rank = static_cast<int>(shape.size());
      input->fixed = shape;
    }
  }
}

}  // namespace

Diagnostic malformed(int line, std::string message, std::string note) {
  return {.id = "taso-syntax",
          .where = {.item = fmt::format("line {}", line)},
          .message = std::move(message),
          .note = std::move(note)};
}

Expected<std::vector<Record>> parse_records(std::string_view text) {
  std::vector<Record> records;
  int line = 0;
  while (!text.empty()) {
    ++line;
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(whole.size() + 1, text.size()));
    const std::string_view code = whole.substr(0, whole.find('#'));
    Words words(code, line);
    if (!words.done()) {
      if (words.accept("rule")) {
        TESSERA_TRY(Record record, parse_header(words, line));
        records.push_back(std::move(record));
      } else if (records.empty()) {
        return words.wrong("a rule");
      } else if (Record& rule = records.back(); words.accept("src")) {
        TESSERA_TRY(Call call, parse_call(words));
        rule.source.push_back(std::move(call));
      } else if (words.accept("dst")) {
        TESSERA_TRY(Call call, parse_call(words));
        rule.target.push_back(std::move(call));
      } else if (words.accept("map")) {
        Equation map;
        TESSERA_TRY(map.source, parse_reference(words));
        TESSERA_TRY_DONE(words.expect("=="));
        TESSERA_TRY(map.target, parse_reference(words));
        if (!words.done()) TESSERA_TRY_DONE(words.expect(":"));
        if (rule.maps.empty()) rule.about = words.rest();
        rule.maps.push_back(std::move(map));
      } else if (rule.maps.empty()) {
        return words.wrong("src, dst or map");
      }
    }
    if (!records.empty()) read_comment(whole.substr(code.size()), line, records.back());
  }
  for (const Record& record : records)
    if (record.maps.empty())
      return malformed(record.line, fmt::format("rule {} maps no output", record.number));
  return records;
}

}  // namespace tessera::rules::taso
