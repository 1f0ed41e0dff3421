#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/lower/group.h"
#include "tessera/program/canonical.h"
#include "tessera/program/schedule_book.h"
#include "tessera/support/expected.h"

namespace tessera::program {

/// Result of lowering a fusion group: kernels, packings and cost, or a diagnostic.
struct Lowering {
  std::string key;   // hash of the group and the options, 32 hexadecimal digits
  std::string code;  // hash of the kernels
  Expected<lower::GroupCode> made;
  std::vector<std::string> fingerprints = {};  // of the kernels
  std::vector<std::string> packings = {};      // as text
  std::size_t launches = 0;                    // kernels that are not empty
  double operations = 0;                       // estimated scalar operations
  bool is_scheduled = false;                   // lowered by a schedule of the book
  std::optional<Diagnostic> illegal = {};      // why the schedule of the book was left out
  std::shared_ptr<const CanonicalGroup> group = {};
};

/// Lowering cache for one machine and one set of options. Shared between graphs: plans of graphs
/// that have most groups in common are fast.
class Lowerings {
 public:
  Lowerings(machine::Machine machine, const lower::GroupOptions& options,
            std::shared_ptr<const ScheduleBook> schedules = {})
      : machine_(std::move(machine)), options_(options), schedules_(std::move(schedules)) {}

  std::shared_ptr<const Lowering> of(const CanonicalGroup& group);

  const machine::Machine& machine() const { return machine_; }
  const lower::GroupOptions& options() const { return options_; }

 private:
  machine::Machine machine_;
  /// Lowers by the schedule of the book, if it has a legal one, or else by the default.
  void lower_by_book(const CanonicalGroup& group, Lowering& lowering) const;

  lower::GroupOptions options_;
  std::shared_ptr<const ScheduleBook> schedules_;
  std::map<std::string, std::shared_ptr<const Lowering>, std::less<>> made_;
};

}  // namespace tessera::program
