#pragma once

#include <functional>

#include "tessera/codegen/ptx/code_writer.h"

namespace tessera::codegen::ptx {

/// Programs of a persistent block: from `first` on, each `step`-th, below `count`; i64.
struct ProgramRange {
  llvm::Value *count = nullptr, *first = nullptr, *step = nullptr;
};

/// Writer of the loop over the programs of a persistent block.
class ProgramLoopWriter : public CodeWriter {
 public:
  using CodeWriter::CodeWriter;
  /// Writes `body` for each program (Values::program); the function ends after the last.
  void for_programs(const ProgramRange& programs, const std::function<void()>& body);
};

}  // namespace tessera::codegen::ptx
