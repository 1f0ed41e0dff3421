#pragma once

#include "cli/model_flags.h"
#include "tessera/driver/native_model.h"

namespace tessera::cli {

/// Memory that holds the arguments of timed runs.
enum class ArgumentMemory {
  Session,  // memory of the session
  Heap,     // other memory, which is copied for a GPU
  Tensors,  // inputs on the heap; each run makes its results
};

/// Compiled model or saved program with its inputs, ready for repeated runs.
class NativeRunner {
 public:
  /// Compiles or loads the program; compiled() is null for a saved one.
  static Expected<std::unique_ptr<NativeRunner>> prepare(const Source& source,
                                                         std::vector<Datum> inputs,
                                                         const CompileFlags& flags,
                                                         Context& context);

  const RunnableProgram& runnable() const { return *entry_->runnable; }
  std::span<const Datum> inputs() const { return inputs_; }
  const runtime::Program& program() const { return entry_->program(); }
  const CompiledModel* compiled() const { return entry_->compiled ? &*entry_->compiled : nullptr; }

  Expected<std::vector<Datum>> run() { return (*session_)->run(inputs_); }
  /// Times of this many runs in milliseconds. Where sizes depend on data, arguments are tensors.
  Expected<std::vector<double>> time(int runs);
  /// Chooses the memory of later timed runs.
  void place_arguments(ArgumentMemory where);
  /// Bytes of all inputs and outputs of static size.
  std::int64_t argument_bytes() const;
  /// Milliseconds on a GPU, without copies of inputs and outputs; see Session::time_steps.
  Expected<std::optional<double>> time_steps();

 private:
  explicit NativeRunner(const Context& context) : line_(context) {}
  Expected<Done> run_again();

  ProgressLine line_;
  std::shared_ptr<NativeModel> model_;
  std::shared_ptr<const NativeModel::Entry> entry_;
  std::optional<RunnableProgram::Lease> session_;
  std::vector<Datum> inputs_;
  std::vector<std::shared_ptr<std::byte>> memory_;  // of arguments that are not tensors
  std::vector<const std::byte*> from_;
  std::vector<std::byte*> to_;
  bool in_place_ = true;
};

}  // namespace tessera::cli
