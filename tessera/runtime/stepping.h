#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "tessera/runtime/session.h"

namespace tessera::runtime {

/// What sessions on all processors do alike: the order of steps, loops, host steps, boxes. The
/// memory of values, launches and copies are a processor's.
class Stepping : public Session {
 public:
  Expected<std::vector<Datum>> run(std::span<const Datum> inputs) final;
  Expected<Done> run(std::span<const std::byte* const> inputs,
                     std::span<std::byte* const> outputs) final;

 protected:
  Stepping(std::shared_ptr<const LoadedProgram> loaded, const SessionOptions& options);

  /// All steps, for these inputs, into these outputs.
  virtual Expected<Done> execute(std::span<const std::byte* const> inputs,
                                 std::span<std::byte* const> outputs) = 0;
  virtual Expected<Done> make(const step::Launch& launch, std::size_t step) = 0;
  virtual Expected<Done> make(const step::Copy& copy, std::size_t step) = 0;
  virtual Expected<Done> make(const step::Swap& swap, std::size_t step) = 0;
  virtual Expected<Done> make(const step::CheckIndices& check, std::size_t step) = 0;
  /// The elements of a value that is not boxed; those of its memory itself, or a copy.
  virtual Expected<Bytes> read(ValueIndex value, std::size_t bytes, bool copied) = 0;
  virtual Expected<Done> write(ValueIndex value, std::span<const std::byte> from) = 0;
  /// A copy of what lies there in this round.
  virtual Expected<Bytes> copy_of(const Address& address, std::size_t bytes) = 0;

  Expected<Done> run_steps();
  /// Looks at the elements that the check is of.
  Expected<Done> check_indices(const step::CheckIndices& check, std::size_t step,
                               const std::byte* elements) const;
  /// Around every step where somebody observes: by the clock of this computer.
  virtual Expected<Done> begin_step(std::size_t step);
  virtual Expected<Done> end_step(std::size_t step);
  /// Of the innermost loop.
  std::int64_t round() const { return loops_.empty() ? 0 : loops_.back().round(); }
  const Program& program() const { return program_; }
  const SessionOptions& options() const { return options_; }

 private:
  /// A loop while it runs.
  struct Frame {
    std::size_t begin = 0, end = 0;
    std::int64_t rounds = 0, done = 0;
    bool backwards = false;

    std::int64_t round() const { return backwards ? rounds - 1 - done : done; }
  };

  Expected<Done> make(const step::Host& host, std::size_t step);
  Expected<Done> make(const step::Branch& branch, std::size_t step);
  Expected<Done> make(const step::Jump& jump, std::size_t step);
  Expected<Done> make(const step::Loop& loop, std::size_t step);
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
