#pragma once

#include <functional>
#include <set>

#include "tessera/codegen/ptx/code_writer.h"

namespace tessera::codegen::ptx {

/// Writer of computations: scalars, views, and tiles element by element.
class Evaluator : public CodeWriter {
 public:
  explicit Evaluator(const Context& context);

  /// Defines the parameters of the kernel.
  void bind_params();
  void write(const tile::gpu::Compute& compute);
  /// Result of an elementwise operation on registers of its operands.
  Pieces computed(const tile::gpu::Compute& compute, const std::function<Pieces(ValueId)>& operand);
  /// Scalar operation of a combiner.
  void evaluate(const Operation& op);
  /// Scalar of a loop in the iteration of an index.
  llvm::Value* scalar_at(const Operation& loop, ValueId id, llvm::Value* index);

  llvm::Value* pid(tile::Code code, std::int64_t axis);
  llvm::Value* kernel_programs();  // along axis 0; npid is those of the grid

 private:
  Pieces elementwise(const Operation& op, std::vector<Pieces> operands);
  Pieces moved(const tile::gpu::Compute& compute);
  void define_view(const Operation& op);

  bool fast_quotients_ = false;  // f32 quotients within 2 ulp
  std::set<ValueId> halves_;     // of which only 16 bits are used
};

}  // namespace tessera::codegen::ptx
