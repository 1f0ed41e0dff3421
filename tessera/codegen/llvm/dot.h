#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <vector>

#include "tessera/machine/machine.h"
#include "tessera/support/dtype.h"

namespace tessera::codegen {

/// Matrix operand in memory: element (row, column) is at base + row * row_stride + column *
/// column_stride, in elements. Code is specialized for strides that are llvm::ConstantInt.
///
/// b may be prepacked: panels of `panel` columns with `panel_stride` elements between them. Within
/// a panel, element (k, j) is at ((k / g) * panel + j) * g + k % g, where g is the plan's k_group;
/// so for f32 the columns are contiguous and k is the slow axis. The last panel and the last group
/// of k are padded with zeros. Strides are then unused.
struct DotOperand {
  llvm::Value* base = nullptr;
  llvm::Value* row_stride = nullptr;
  llvm::Value* column_stride = nullptr;
  std::int64_t panel = 0;  // 0: not packed
  llvm::Value* panel_stride = nullptr;
};

/// Compile-time description of a dot: types, and upper bounds of its extents. c is the type of
/// multiplication and accumulation: F32, F64 or an integer; for results of F16 and BF16 it is F32.
struct DotShape {
  DType a = DType::F32, b = DType::F32, c = DType::F32;
  std::int64_t m = 0, n = 0, k = 0;
};

/// Blocking of a dot: register tile, cache blocks, and which operands are packed.
struct DotPlan {
  int mr = 0, nr = 0;                   // register tile
  int k_group = 1;                      // k's per instruction: 4 of bf16, 8 of i8
  std::int64_t mc = 0, nc = 0, kc = 0;  // cache block: rows, columns and k's
  bool pack_a = true, pack_b = true;    // where the strides of the operands allow a choice
  std::int64_t scratch_bytes = 0;

  bool operator==(const DotPlan&) const = default;
};

/// Blocking for a machine; with `packed_b`, b comes in panels of that many columns.
DotPlan plan_dot(const DotShape& shape, const machine::Machine& machine, std::int64_t packed_b = 0);

/// Panel width of a b that is prepacked for matmuls with m rows, and its element type.
std::int64_t panel_columns(const DotShape& shape, const machine::Machine& machine);
DType panel_dtype(const DotShape& shape, const machine::Machine& machine);

/// Whether the accumulators may be initialized from other memory than c: where one block covers all
/// of k.
bool can_add_from(const DotShape& shape, const DotPlan& plan, const machine::Machine& machine);

/// Run-time extents, i64 each and at most those of the shape; any may be 0.
struct DotExtents {
  llvm::Value *m = nullptr, *n = nullptr, *k = nullptr;
};

/// A block of accumulators: rows, and vectors along n, from a row and a column on.
struct DotPart {
  llvm::Value *row = nullptr, *column = nullptr;
  int rows = 0, vectors = 0;
};
/// Epilogue of a dot, emitted on accumulators in registers: `start` before the multiplications
/// gives their initial values (in the order [row][vector]; nothing: zeros), `finish` after them
/// uses the sums. Only some instructions support initial values.
class DotEpilogue {
 public:
  virtual ~DotEpilogue() = default;
  virtual std::vector<llvm::Value*> start(const DotPart& part) = 0;
  virtual void finish(const DotPart& part, llvm::ArrayRef<llvm::Value*> sums, bool started) = 0;
};

/// Emits c += a·b (or c = a·b) at the insertion point, where c has unit column stride.
/// Micro-kernels, packers and the loops around them become functions of the module, shared by equal
/// dots. `scratch` has the plan's bytes, aligned to 128.
///
/// With an epilogue, the leading columns that support it are passed to it and not stored to c:
/// returns their number. The loops and micro-kernels are then emitted inline.
struct DotCall {
  DotShape shape = {};
  DotPlan plan = {};
  DotExtents extents = {};
  DotOperand a = {}, b = {};
  llvm::Value* c = nullptr;
  llvm::Value* c_row_stride = nullptr;
  bool accumulate = true;
  /// Initial value of c in other memory: c = from + a·b, see can_add_from. With `adds` (i1), only
  /// if that is true; else c = a·b.
  llvm::Value *from = nullptr, *from_row_stride = nullptr, *adds = nullptr;
  llvm::Value* scratch = nullptr;
  DotEpilogue* epilogue = nullptr;
};
std::int64_t emit_dot(llvm::IRBuilder<>& ir, const DotCall& call, const machine::Machine& machine);

}  // namespace tessera::codegen
