#pragma once

#include <memory>
#include <vector>

#include "tessera/codegen/llvm/dot.h"
#include "tessera/codegen/llvm/row.h"

namespace tessera::codegen {

/// Dot epilogue given by a loop nest: all axes but the last enumerate the rows of the accumulators,
/// in order, and the last axis is their columns.
class NestEpilogue final : public DotEpilogue {
 public:
  NestEpilogue(Emitter& emitter, const tile::cpu::DotStep& step) : e_(emitter), step_(step) {}

  std::vector<llvm::Value*> start(const DotPart& part) override;
  void finish(const DotPart& part, llvm::ArrayRef<llvm::Value*> sums, bool started) override;

 private:
  using Rows = std::vector<std::unique_ptr<Row>>;
  Rows rows_of(const DotPart& part) const;
  llvm::Value* lane(const DotPart& part, int vector) const;
  const tile::cpu::Nest& nest() const { return *step_.epilogue; }

  Emitter& e_;
  const tile::cpu::DotStep& step_;
};

}  // namespace tessera::codegen
