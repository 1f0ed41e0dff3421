#pragma once

#include <list>
#include <span>
#include <vector>

#include "tessera/driver/compile_model.h"
#include "tessera/driver/runnable_program.h"

namespace tessera {

/// Model compiled just in time for the input shapes it is run with; the most recently used programs
/// are cached.
class NativeModel {
 public:
  static constexpr std::size_t kMostPrograms = 8;

  NativeModel(const Model& model, CompileModelOptions compile, ExecutionOptions run)
      : model_(model), compile_(std::move(compile)), run_(std::move(run)) {}

  struct Entry {
    InputShapes shapes;
    CompiledModel compiled;  // without its program, which is in `runnable`
    RunnableProgram runnable;
  };
  /// Program for inputs of these shapes; valid until kMostPrograms others were requested.
  Expected<Entry*> program_for(std::span<const Datum> inputs);
  Expected<std::vector<Datum>> run(std::span<const Datum> inputs);

  std::size_t programs() const { return programs_.size(); }

 private:
  const Model& model_;
  CompileModelOptions compile_;
  ExecutionOptions run_;
  std::list<Entry> programs_;  // most recently used first
};

}  // namespace tessera
