#pragma once

#include <list>
#include <span>
#include <vector>

#include "tessera/driver/compile_model.h"
#include "tessera/driver/ready.h"

namespace tessera {

/// A model as machine code for whatever sizes its inputs have: compiled when inputs of new sizes
/// come; the programs used last are kept.
class NativeModel {
 public:
  static constexpr std::size_t kMostPrograms = 8;

  NativeModel(const Model& model, CompileModelOptions compile, ReadyOptions run)
      : model_(model), compile_(std::move(compile)), run_(std::move(run)) {}

  struct Entry {
    InputShapes shapes;
    CompiledModel made;  // its program is in `ready`
    Ready ready;
  };
  /// The program for such inputs; valid until kMostPrograms others were asked for.
  Expected<Entry*> program_for(std::span<const Datum> inputs);
  Expected<std::vector<Datum>> run(std::span<const Datum> inputs);

  std::size_t programs() const { return programs_.size(); }

 private:
  const Model& model_;
  CompileModelOptions compile_;
  ReadyOptions run_;
  std::list<Entry> programs_;  // the one used last first
};

}  // namespace tessera
