#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/runtime/session.h"

namespace tessera {

/// Options for running a program.
struct ExecutionOptions {
  int threads = 1;
  /// Limit on host memory of the program and of host steps, in bytes.
  std::int64_t memory_limit = std::int64_t{4} << 30;
  std::filesystem::path cache = {};         // cache of GPU code; none if empty
  std::int64_t max_iterations = 100'000;    // limit on loop iterations in host steps
  const std::atomic<bool>* stop = nullptr;  // cancellation flag of host steps
  decltype(runtime::SessionOptions::observe) observe = {};
};

/// Session options whose host steps are run by the interpreter.
runtime::SessionOptions session_options(const ExecutionOptions& options);

/// Loaded program with a pool of sessions: one for each call in flight, reused by later calls.
/// Thread-safe.
class RunnableProgram {
 public:
  /// Loads a program; one that needs more memory than the limit is rejected. Sessions, and with
  /// them a GPU, are needed to run it alone.
  static Expected<std::shared_ptr<RunnableProgram>> create(runtime::Program program,
                                                           ExecutionOptions options);

  const runtime::Program& program() const { return loaded_->program(); }
  const std::shared_ptr<const runtime::LoadedProgram>& loaded() const { return loaded_; }
  /// Whether inputs and outputs have a static size, so that sessions run on memory of the caller.
  bool has_static_arguments() const { return has_static_arguments_; }

  /// A session, with aligned memory for inputs that a caller's memory is copied to.
  struct Slot {
    std::unique_ptr<runtime::Session> session = {};
    std::vector<std::optional<Buffer>> staging = {};  // by input
  };
  /// A session that belongs to the holder of the lease, and returns to the pool with its end.
  class Lease {
   public:
    Lease(RunnableProgram& pool, Slot slot) : pool_(&pool), slot_(std::move(slot)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (slot_.session) pool_->give_back(std::move(slot_));
    }
    runtime::Session& operator*() const { return *slot_.session; }
    runtime::Session* operator->() const { return slot_.session.get(); }
    /// Aligned memory of the size of an input, kept for later leases of the session.
    std::byte* staging(std::size_t input);

   private:
    RunnableProgram* pool_;
    Slot slot_;
  };
  /// The lease must not outlive the program.
  Expected<Lease> lease();

  /// Memory for an argument; see Session::host_memory.
  Expected<std::shared_ptr<std::byte>> host_memory(std::size_t bytes);

  /// Runs the program. Outputs share no memory with inputs, weights or other runs.
  Expected<std::vector<Datum>> run(std::span<const Datum> inputs);

 private:
  RunnableProgram(std::shared_ptr<const runtime::LoadedProgram> loaded, ExecutionOptions options);
  void give_back(Slot slot);

  std::shared_ptr<const runtime::LoadedProgram> loaded_;
  ExecutionOptions options_;
  bool has_static_arguments_ = true;
  std::mutex mutex_;
  std::vector<Slot> idle_;
};

/// Whether a file is a saved program, by its extension.
bool is_saved_program(const std::filesystem::path& path);

}  // namespace tessera
