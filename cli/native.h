#pragma once

#include "cli/model_flags.h"
#include "tessera/driver/native_model.h"

namespace tessera::cli {

/// A model or a saved program with its inputs, ready to run again and again.
class Native {
 public:
  /// compiled() is null for a saved program. `observe` is told how long each step took.
  static Expected<std::unique_ptr<Native>> prepare(const Source& source, std::vector<Datum> inputs,
                                                   const CompileFlags& flags, Context& context,
                                                   decltype(ReadyOptions::observe) observe = {});

  const runtime::Program& program() const { return ready_->program(); }
  const CompiledModel* compiled() const { return compiled_; }

  Expected<std::vector<Datum>> run() { return ready_->session->run(inputs_); }
  /// Milliseconds of each of so many runs, into the same memory where that is possible.
  Expected<std::vector<double>> time(int runs);
  /// Milliseconds on a GPU, without the copies of inputs and outputs; see Session::time_steps.
  Expected<std::optional<double>> time_steps();

 private:
  explicit Native(const Context& context) : line_(context) {}
  Expected<Done> run_again();

  ProgressLine line_;
  std::optional<NativeModel> model_;
  std::optional<Ready> saved_;
  Ready* ready_ = nullptr;
  const CompiledModel* compiled_ = nullptr;
  std::vector<Datum> inputs_;
  std::vector<Buffer> outputs_;
  std::vector<const std::byte*> from_;
  std::vector<std::byte*> to_;
  bool in_place_ = true;
};

}  // namespace tessera::cli
