#include "tessera/program/schedule_book.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/support/file.h"

namespace tessera::program {
namespace {

constexpr std::size_t kKeyDigits = 32;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool is_key(std::string_view text) {
  return text.size() == kKeyDigits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

std::string to_text(const ScheduleBook& book) {
  std::string text;
  for (const auto& [key, entry] : book.entries)
    text += fmt::format("{} {}{}{}\n", key, lower::to_text(entry.schedule),
                        entry.comment.empty() ? "" : "  # ", entry.comment);
  return text;
}

Expected<ScheduleBook> parse_schedule_book(std::string_view text, const std::string& file) {
  ScheduleBook book;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t hash = std::min(rest.find('#'), rest.size());
    const std::string_view comment =
        hash < rest.size() ? trimmed(rest.substr(hash + 1)) : std::string_view();
    rest = trimmed(rest.substr(0, hash));
    if (rest.empty()) continue;
    const std::string_view key = rest.substr(0, rest.find(' '));
    const Diagnostic::Where where{.file = file, .item = fmt::format("line {}", line)};
    if (!is_key(key))
      return Diagnostic{.id = "schedule-file",
                        .where = where,
                        .message = fmt::format("'{}' is not the key of a group", key),
                        .note = "a line is KEY SCHEDULE, where KEY has 32 hexadecimal digits",
                        .help = "`tessera compile MODEL --save-schedules FILE` writes such a file"};
    auto schedule = lower::parse_group_schedule(rest.substr(key.size()), file);
    if (!schedule) return located(std::move(schedule).error(), where);
    book.entries.insert_or_assign(std::string(key),
                                  ScheduleBook::Entry{*std::move(schedule), std::string(comment)});
  }
  return book;
}

Expected<ScheduleBook> read_schedule_book(const std::string& file) {
  TESSERA_TRY(const std::string text, read_text(file));
  return parse_schedule_book(text, file);
}

}  // namespace tessera::program
