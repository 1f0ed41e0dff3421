#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "tessera/runtime/session.h"

namespace tessera::runtime {

/// Execution of steps that CPU and GPU sessions share: order of steps, control flow, host steps,
/// boxed values. Memory of values, launches and copies are up to the device.
class StepExecutor : public Session {
 public:
  Expected<std::vector<Datum>> run(std::span<const Datum> inputs) final;
  Expected<Done> run(std::span<const std::byte* const> inputs,
                     std::span<std::byte* const> outputs) final;

 protected:
  StepExecutor(std::shared_ptr<const LoadedProgram> loaded, const SessionOptions& options);

  /// Runs all steps for these inputs, into these outputs.
  virtual Expected<Done> execute(std::span<const std::byte* const> inputs,
                                 std::span<std::byte* const> outputs) = 0;
  virtual Expected<Done> run_step(const step::Launch& launch, std::size_t step) = 0;
  virtual Expected<Done> run_step(const step::Copy& copy, std::size_t step) = 0;
  virtual Expected<Done> run_step(const step::Swap& swap, std::size_t step) = 0;
  virtual Expected<Done> run_step(const step::CheckIndices& check, std::size_t step) = 0;
  /// Elements of a value that is not boxed: its memory, or a copy.
  virtual Expected<Bytes> read(ValueIndex value, std::size_t bytes, bool copied) = 0;
  virtual Expected<Done> write(ValueIndex value, std::span<const std::byte> from) = 0;
  /// Copy of the memory at an address in the current iteration.
  virtual Expected<Bytes> copy_of(const Address& address, std::size_t bytes) = 0;

  Expected<Done> run_steps();
  /// Checks the elements that the step covers.
  Expected<Done> check_indices(const step::CheckIndices& check, std::size_t step,
                               const std::byte* elements) const;
  /// Called around every step while a profiler observes; measures with the clock of the host.
  virtual Expected<Done> begin_step(std::size_t step);
  virtual Expected<Done> end_step(std::size_t step);
  /// Current iteration of the innermost loop.
  std::int64_t round() const { return loops_.empty() ? 0 : loops_.back().round(); }
  const Program& program() const { return program_; }
  const SessionOptions& options() const { return options_; }

 private:
  /// State of a running loop.
  struct Frame {
    std::size_t begin = 0, end = 0;
    std::int64_t rounds = 0, done = 0;
    bool backwards = false;

    std::int64_t round() const { return backwards ? rounds - 1 - done : done; }
  };

  Expected<Done> run_step(const step::Host& host, std::size_t step);
  Expected<Done> run_step(const step::Branch& branch, std::size_t step);
  Expected<Done> run_step(const step::Jump& jump, std::size_t step);
  Expected<Done> run_step(const step::Loop& loop, std::size_t step);
  Expected<Done> inspect(std::size_t step, bool done);
  Expected<Datum> datum_of(ValueIndex index, bool copied);
  void end_rounds();
  void forget();

  std::shared_ptr<const LoadedProgram> loaded_;
  const Program& program_;
  SessionOptions options_;
  std::vector<Datum> boxes_;  // by value
  std::vector<ValueIndex> boxed_;
  std::vector<Frame> loops_;
  std::size_t next_ = 0;
  std::int64_t step_start_ = 0;
};

}  // namespace tessera::runtime
