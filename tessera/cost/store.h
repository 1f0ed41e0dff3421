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

/// What kernels run on. Measurements on one target say nothing of another.
struct Target {
  std::string name = {};     // neoverse-v1-2t-5f0c91ab: the CPU, threads, a hash of all the rest
  std::string version = {};  // of the compiler
  machine::Machine machine = {};
  int threads = 1;
  /// What the roofline model reckons with, of all threads together; 0: what the machine promises.
  double flops_per_second = 0, bytes_per_second = 0;
  double seconds_per_launch = 0;

  bool operator==(const Target&) const = default;
};

/// The target that code of this compiler for a machine is measured on.
Target target_of(const machine::Machine& machine, int threads);

/// How long a kernel takes.
struct Measurement {
  std::string key = {};   // of the work, 32 hexadecimal digits
  std::string code = {};  // of the code that was measured, likewise
  std::string what = {}, strategy = {};
  double operations = 0, bytes = 0, launches = 0;  // as Work has them
  double seconds = 0, best = 0;  // the least median of a block of runs; the least of all
  std::int64_t samples = 0;
  std::int64_t when = 0;  // seconds since 1970

  bool operator==(const Measurement&) const = default;
};

/// Measurements in an SQLite file. Several processes may use it at a time; one that is killed loses
/// no more than what it was writing. A file that is damaged or something else is a diagnostic.
class Store {
 public:
  /// Makes the file, for its owner alone, and the folders that it is in, if it is not there. In
  /// memory, if the path is empty.
  static Expected<Store> open(const std::filesystem::path& file);
  /// The same of a file that is there, without making one.
  static Expected<Store> open_existing(const std::filesystem::path& file);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  /// All targets, by name.
  Expected<std::vector<Target>> targets() const;
  Expected<std::optional<Target>> find(const std::string& target) const;
  /// Adds a target, or replaces what is said of it.
  Expected<Done> put(const Target& target);

  /// All measurements on a target, by key.
  Expected<std::vector<Measurement>> measurements(const std::string& target) const;
  /// Adds measurements on a target that is there, all or none; newer ones replace older ones.
  Expected<Done> put(const std::string& target, std::span<const Measurement> measurements);

 private:
  class File;
  explicit Store(std::unique_ptr<File> file);
  std::unique_ptr<File> file_;
};

}  // namespace tessera::cost
