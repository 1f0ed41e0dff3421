#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tessera/lower/group_schedule.h"
#include "tessera/support/expected.h"

namespace tessera::program {

/// Schedules of fusion groups, by the key of the group (Lowering::key). Groups that it does not
/// name are lowered by their default schedules.
struct ScheduleBook {
  struct Entry {
    lower::GroupSchedule schedule = {};
    std::string comment = {};  // what the group computes, for readers of the file
    bool operator==(const Entry&) const = default;
  };
  std::map<std::string, Entry, std::less<>> entries = {};
  bool operator==(const ScheduleBook&) const = default;
};

/// Text form, one line per group: `KEY SCHEDULE  # COMMENT`. It parses back.
std::string to_text(const ScheduleBook& book);
Expected<ScheduleBook> parse_schedule_book(std::string_view text, const std::string& file = {});
Expected<ScheduleBook> read_schedule_book(const std::string& file);

}  // namespace tessera::program
