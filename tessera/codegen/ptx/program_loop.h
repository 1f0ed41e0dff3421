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

 protected:
  /// Ends the producer threads that have no copies where tensor maps are used: one thread issues
  /// all TMA copies. `mapped`: whether they are, i1.
  void end_idle_producers(llvm::Value* mapped);
  /// The same, with a step that `step` writes after each program.
  void for_programs(const ProgramRange& programs, const std::function<llvm::Value*()>& step,
                    const std::function<void()>& body);
};

}  // namespace tessera::codegen::ptx
