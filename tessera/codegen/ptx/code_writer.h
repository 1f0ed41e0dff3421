#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tessera/codegen/ptx/block.h"
#include "tessera/codegen/ptx/ptx.h"
#include "tessera/codegen/ptx/values.h"
#include "tessera/tile/gpu/schedule.h"

namespace tessera::codegen::ptx {

using tile::gpu::contiguous_axis;
using tile::gpu::KnownAccess;
using tile::gpu::LoopPipeline;
using tile::gpu::MatmulInstruction;
using tile::gpu::Plan;
using tile::gpu::PlannedKernel;
using tile::gpu::StagedOperand;

/// Integer dtype of a width in bytes.
inline DType word_type(int width) {
  return width == 1 ? DType::I8 : width == 2 ? DType::I16 : DType::I32;
}

/// Base of the writers of instructions of form S: the code of one thread, its values so far, and
/// common control flow. Scalars are uniform over the block; branches and loops depend on scalars
/// only, so control flow is uniform.
class CodeWriter {
 public:
  struct Context {
    const tile::gpu::ScheduledKernel& scheduled;
    const PtxOptions& options;
    Block& block;
    Values& values;
  };
  explicit CodeWriter(const Context& context)
      : context_(context),
        planned_(*context.scheduled.planned),
        kernel_(planned_.kernel),
        plan_(planned_.plan),
        options_(context.options),
        mapping_(context.scheduled.mapping),
        block_(context.block),
        ir_(context.block.ir),
        values_(context.values) {}

  using BranchBody = std::function<Pieces()>;
  /// Emits two branches and merges their results.
  Pieces either(llvm::Value* condition, const BranchBody& then, const BranchBody& otherwise);
  /// Phi nodes of a loop header.
  std::vector<llvm::PHINode*> carry(const Pieces& start, llvm::BasicBlock* from);
  llvm::Value* constant(const tile::Type& type, const tile::Literal& literal);
  llvm::Value* global(llvm::Value* address);
  /// Address of zeros that out-of-bounds loads read.
  llvm::Value* nowhere();

 protected:
  using ValueId = tile::ValueId;
  using OpId = tile::OpId;
  using Operation = tile::Operation;
  using View = Values::View;

  const Operation& operation(OpId id) const { return kernel_.ops[id]; }
  const tile::Type& type(ValueId id) const { return kernel_.type(id); }
  DType dtype(ValueId id) const { return type(id).is_pointer() ? DType::U64 : type(id).dtype; }
  llvm::Value* scalar(ValueId id) const { return values_.scalars[id]; }
  const View& view(ValueId id) const { return values_.views.at(id); }
  /// Registers of a fragment; a scalar is in all of them.
  Pieces tile(ValueId id, const Layout& layout) const;
  Pieces tile(const tile::gpu::Fragment& fragment) const;
  void define(ValueId id, const Layout& layout, Pieces registers);
  void define(ValueId id, llvm::Value* number) { values_.scalars[id] = number; }
  /// Registers of several fragments, concatenated, and back.
  Pieces flat(const std::vector<tile::gpu::Fragment>& fragments) const;
  void bind(const std::vector<tile::gpu::Fragment>& fragments, const Pieces& registers);

  const Context& context_;
  const PlannedKernel& planned_;
  const tile::Kernel& kernel_;
  const Plan& plan_;
  const PtxOptions& options_;
  const tile::gpu::BlockMapping& mapping_;
  Block& block_;
  llvm::IRBuilder<>& ir_;
  Values& values_;
};

/// Writer of a list of instructions, for those that contain some.
class BodyWriter {
 public:
  virtual ~BodyWriter() = default;
  /// Writes instructions in order; returns what they yield.
  virtual Pieces write(const tile::gpu::Body& body) = 0;
};

}  // namespace tessera::codegen::ptx
