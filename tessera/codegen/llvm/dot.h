#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <vector>

#include "tessera/machine/machine.h"
#include "tessera/support/dtype.h"

namespace tessera::codegen {

/// A matrix in memory: element (row, column) is at base + row * row_stride + column *
/// column_stride, in elements. A stride that is an llvm::ConstantInt is a fact that code is chosen
/// by.
///
/// b may come packed: cut into panels of `panel` columns with `panel_stride` elements between them.
/// Inside of a panel element (k, j) is at ((k / g) * panel + j) * g + k % g, where g is the plan's
/// k_group; so for f32 the columns lie side by side and k runs slowly. The last panel, and the last
/// group of k, are filled up with zeros. Then the strides are not used.
struct DotOperand {
  llvm::Value* base = nullptr;
  llvm::Value* row_stride = nullptr;
  llvm::Value* column_stride = nullptr;
  std::int64_t panel = 0;  // 0: not packed
  llvm::Value* panel_stride = nullptr;
};

/// What is known of a dot before code is made: types, and the largest extents it will have. c is
/// F32, F64 or an integer, and what is multiplied and added; for sums of F16 and BF16 it is F32.
struct DotShape {
  DType a = DType::F32, b = DType::F32, c = DType::F32;
  std::int64_t m = 0, n = 0, k = 0;
};

/// How a dot is computed: the register tile, the blocks that stay in caches, what is packed.
struct DotPlan {
  int mr = 0, nr = 0;                   // register tile
  int k_group = 1;                      // k's that one instruction adds up: 4 of bf16, 8 of i8
  std::int64_t mc = 0, nc = 0, kc = 0;  // rows, columns and k's of a block
  bool pack_a = true, pack_b = true;    // where the strides of the operands let one choose
  std::int64_t scratch_bytes = 0;

  bool operator==(const DotPlan&) const = default;
};

/// The plan that suits the machine; with `packed_b`, b comes in panels of that many columns.
DotPlan plan_dot(const DotShape& shape, const machine::Machine& machine, std::int64_t packed_b = 0);

/// Columns in a panel of b that is packed ahead for products with m rows, and its element type.
std::int64_t panel_columns(const DotShape& shape, const machine::Machine& machine);
DType panel_dtype(const DotShape& shape, const machine::Machine& machine);

/// Whether a dot can take what it adds to from elsewhere than c: where one block of k holds the
/// sums.
bool can_add_from(const DotShape& shape, const DotPlan& plan, const machine::Machine& machine);

/// The extents of one execution, i64 each and at most those of the shape; any may be 0.
struct DotExtents {
  llvm::Value *m = nullptr, *n = nullptr, *k = nullptr;
};

/// Rows and vectors along n of c, from a row and a column on.
struct DotPart {
  llvm::Value *row = nullptr, *column = nullptr;
  int rows = 0, vectors = 0;
};
/// What is made of sums while they are in registers: emitted before the products are added, for
/// what they start from (in the order [row][vector]; nothing: zeros), and after. Only some
/// instructions can start from anything.
class DotFinish {
 public:
  virtual ~DotFinish() = default;
  virtual std::vector<llvm::Value*> start(const DotPart& part) = 0;
  virtual void finish(const DotPart& part, llvm::ArrayRef<llvm::Value*> sums, bool started) = 0;
};

/// Emits c += a·b (or c = a·b) at the insertion point, where c has unit column stride.
/// Micro-kernels, packers and the loops around them become functions of the module, shared by equal
/// dots. `scratch` has the plan's bytes, aligned to 128.
///
/// With `finish`, as many of the first columns as can be go there and not to c: returns how many.
/// The loops and micro-kernels are then written in place.
struct DotCall {
  DotShape shape = {};
  DotPlan plan = {};
  DotExtents extents = {};
  DotOperand a = {}, b = {};
  llvm::Value* c = nullptr;
  llvm::Value* c_row_stride = nullptr;
  bool accumulate = true;
  /// Where c is what lies elsewhere and the product: see can_add_from. With `adds` (i1), only if
  /// that holds; else c is the product alone.
  llvm::Value *from = nullptr, *from_row_stride = nullptr, *adds = nullptr;
  llvm::Value* scratch = nullptr;
  DotFinish* finish = nullptr;
};
std::int64_t emit_dot(llvm::IRBuilder<>& ir, const DotCall& call, const machine::Machine& machine);

}  // namespace tessera::codegen
