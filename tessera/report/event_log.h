#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/report/records.h"
#include "tessera/support/expected.h"

namespace tessera::report {

/// Event log: a header and records, in the order of events.
struct EventLog {
  Header header = {};
  std::vector<Record> records = {};

  explicit EventLog(std::string command = {});

  void add(Record record) { records.push_back(std::move(record)); }
  /// Records of one kind, in order.
  template <class Kind>
  std::vector<const Kind*> all() const {
    std::vector<const Kind*> found;
    for (const Record& record : records)
      if (const auto* one = std::get_if<Kind>(&record)) found.push_back(one);
    return found;
  }
  /// Last record of a kind, or null.
  template <class Kind>
  const Kind* last() const {
    const std::vector<const Kind*> found = all<Kind>();
    return found.empty() ? nullptr : found.back();
  }
};

/// JSON lines: one object per record, with its kind as `event`. Fields that have their default
/// value are left out. Text that is not UTF-8 is repaired.
std::string to_json_lines(const EventLog& log);

/// Parses a log. `report-malformed` names the line that is none; `report-version` is a log of
/// another schema. Unknown events and fields are skipped.
Expected<EventLog> parse_event_log(std::string_view text);

/// Fields of each kind of event, for the test of the documentation.
std::vector<std::pair<std::string, std::vector<std::string>>> schema();

}  // namespace tessera::report
