#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/runtime/program.h"
#include "tessera/support/datum.h"
#include "tessera/support/expected.h"

namespace tessera::runtime {

/// Whether a program can run at all: every index, offset, size and target is within what it points
/// into, addresses of kernels stay in their values in every round, entries are in the image.
Expected<Done> check(const Program& program);

/// Runs the text of a host step.
using Host = std::function<Expected<std::vector<Datum>>(const std::string& text,
                                                        std::span<const Datum> inputs)>;

struct SessionOptions {
  int threads = 1;  // 0: one per core
  Host host = {};   // without one, a program with host steps is refused
  /// Of a GPU: where the machine code that its driver makes of PTX is kept; nowhere if empty.
  std::filesystem::path cache = {};
  /// Where the temporary file of a program with a memory limit goes.
  std::filesystem::path swap_folder = "/var/tmp";
  /// Runs the launches of a program for a GPU in place of one, on memory of this computer.
  std::function<Expected<Done>(const step::Launch& launch, std::span<const std::uint64_t> words)>
      emulate = {};
  /// Fills the arena with bytes of ones (NaN, -1) before every run: what reads memory that nothing
  /// has written gives other results.
  bool poison = false;
  /// Is shown the memory of every launch before it (`done` is false) and after it. Steps are then
  /// run one by one.
  struct Inspection {
    std::size_t step = 0;
    const step::Launch& launch;
    bool done = false;
    /// What a patch of the launch may touch, as it is now.
    std::function<Expected<Bytes>(const step::Launch::Patch& patch)> memory;
  };
  std::function<Expected<Done>(const Inspection& inspection)> inspect = {};
  /// Is told how long each step took; timing every step costs a little.
  std::function<void(std::size_t step, std::int64_t start_ns, std::int64_t end_ns)> observe = {};
};

/// What the sessions of a program share once the first of them has made it.
struct SharedBySessions {
  std::mutex mutex = {};
  std::shared_ptr<const void> content = {};
};

/// A program that is ready to run, shared by any number of sessions. One for a CPU: its code is
/// mapped, read and execute, never writable; its weights are where they were loaded. One for a GPU:
/// the first session takes code and weights there, for all (on_gpu).
class LoadedProgram {
 public:
  /// Checks the program; refuses one for another kind of CPU. One for a GPU meets it when a session
  /// is made.
  static Expected<std::shared_ptr<const LoadedProgram>> load(Program program);
  virtual ~LoadedProgram() = default;
  /// Of one for a CPU, the image is the executable one.
  virtual const Program& program() const = 0;
  virtual SharedBySessions& on_gpu() const = 0;
};

/// One caller's memory for a program: the arena. Results are the same bits in every run and for any
/// number of threads. Not to be used by two threads at a time; make two sessions.
class Session {
 public:
  static Expected<std::unique_ptr<Session>> create(std::shared_ptr<const LoadedProgram> program,
                                                   const SessionOptions& options = {});
  virtual ~Session() = default;

  /// Inputs of other types or shapes are a diagnostic.
  virtual Expected<std::vector<Datum>> run(std::span<const Datum> inputs) = 0;
  /// The same into memory of the caller, aligned to kAlignment and not shared by two of them: no
  /// copies and, but by host steps, nothing allocated. Boxed inputs or outputs are a diagnostic.
  virtual Expected<Done> run(std::span<const std::byte* const> inputs,
                             std::span<std::byte* const> outputs) = 0;
  /// On a GPU, after a run: milliseconds of its steps without the copies of inputs and outputs, the
  /// mean of so many runs one after the other. Nothing on a CPU, or where steps need the computer.
  virtual Expected<std::optional<double>> time_steps(int) { return std::optional<double>(); }
};

}  // namespace tessera::runtime
