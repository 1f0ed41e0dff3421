#pragma once

#include "tessera/codegen/ptx/code_writer.h"

namespace tessera::codegen::ptx {

/// Range of a loop. A step of 0 or less leaves no iteration.
struct LoopRange {
  llvm::Value *from = nullptr, *to = nullptr, *step = nullptr;
  bool may_wrap = false;  // whether an index beyond the end may be too large for its type
};

/// Writer of loop bounds.
class LoopBounds : public CodeWriter {
 public:
  using CodeWriter::CodeWriter;
  LoopRange range_of(const Operation& loop);
  /// Index some iterations later; the end of the loop where that is beyond it and might wrap.
  llvm::Value* later(const LoopRange& range, llvm::Value* index, int iterations);

 private:
  int most_bits(ValueId id) const;
};

}  // namespace tessera::codegen::ptx
