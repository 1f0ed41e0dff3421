#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/machine/machine.h"
#include "tessera/support/expected.h"

namespace tessera::cost {

/// Target of measurements: machine, threads and compiler version. Measurements on one target say
/// nothing about another.
struct Target {
  /// CPU, threads, hash of the rest: neoverse-v1-2t-5f0c91ab; or GPU architecture, number of
  /// multiprocessors, hash of the rest: sm_90a-132sm-5f0c91ab.
  std::string name = {};
  std::string version = {};  // compiler version
  machine::Machine machine = {};
  int threads = 1;
  /// Peak rates for the roofline model, of all threads together; 0: those of the machine
  /// description.
  double flops_per_second = 0, bytes_per_second = 0;
  double seconds_per_launch = 0;

  bool operator==(const Target&) const = default;
};

/// Target for code of this compiler on a machine.
Target target_of(const machine::Machine& machine, int threads);

/// Measured time of a kernel.
struct Measurement {
  std::string key = {};   // hash of the work, 32 hexadecimal digits
  std::string code = {};  // hash of the code that was measured, likewise
  std::string what = {}, strategy = {};
  double operations = 0, bytes = 0, launches = 0;  // as in Work
  double seconds = 0, best = 0;                    // least block median; least of all runs
  std::int64_t samples = 0;
  std::int64_t when = 0;  // seconds since 1970

  bool operator==(const Measurement&) const = default;
};

/// Measured time of a schedule of a fusion group, relative to the default schedule.
struct ScheduleMeasurement {
  std::string key = {};       // hash of the group: Lowering::key
  std::string schedule = {};  // text form
  double seconds = 0;
  double ratio = 0, low = 0, high = 0;  // over the default, and its 95 % confidence interval;
                                        // 0: no code could be made or run
  std::int64_t samples = 0;
  bool chosen = false;  // faster than the default beyond the confidence interval, and the best
  std::int64_t when = 0;
  std::string features = {};  // of definition and schedule, numbers separated by blanks

  bool operator==(const ScheduleMeasurement&) const = default;
};

/// Store of measurements in an SQLite file. Several processes may use it at a time; one that is
/// killed loses only what it was writing. A damaged file, or one of another format, is a
/// diagnostic.
class Store {
 public:
  /// Opens a store; creates the file, readable by its owner only, and its folders if necessary. In
  /// memory if the path is empty.
  static Expected<Store> open(const std::filesystem::path& file);
  /// Opens a store that exists.
  static Expected<Store> open_existing(const std::filesystem::path& file);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  /// All targets, sorted by name.
  Expected<std::vector<Target>> targets() const;
  Expected<std::optional<Target>> find(const std::string& target) const;
  /// Adds or replaces a target.
  Expected<Done> put(const Target& target);

  /// All measurements on a target, sorted by key.
  Expected<std::vector<Measurement>> measurements(const std::string& target) const;
  /// Adds measurements on an existing target in one transaction; newer ones replace older ones.
  Expected<Done> put(const std::string& target, std::span<const Measurement> measurements);

  /// Measurements of schedules on a target, sorted by key and schedule; `chosen`: only the chosen
  /// ones, of which every key has at most one.
  Expected<std::vector<ScheduleMeasurement>> schedules(const std::string& target,
                                                       bool chosen = false) const;
  /// Adds measurements of schedules on an existing target in one transaction; newer ones replace
  /// older ones.
  Expected<Done> put(const std::string& target, std::span<const ScheduleMeasurement> measurements);
  /// Chooses a measured schedule for a key; an empty one: the default.
  Expected<Done> choose(const std::string& target, const std::string& key,
                        const std::string& schedule);

 private:
  class File;
  explicit Store(std::unique_ptr<File> file);
  std::unique_ptr<File> file_;
};

}  // namespace tessera::cost
