#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/codegen/ptx/code_writer.h"

namespace tessera::codegen::ptx {

/// Swizzled byte offset of a chunk of a row.
llvm::Value* swizzled(Block& block, const SharedOperand& operand, llvm::Value* row,
                      llvm::Value* chunk);

/// Writer of matmuls: by wgmma, by mma, or by scalar fma.
class MatmulWriter : public CodeWriter {
 public:
  using CodeWriter::CodeWriter;
  void write(const tile::gpu::Matmul& matmul);
  void write(const tile::gpu::HoldOperand& hold);
  void write(const tile::gpu::RenameBuffer& rename);
  void write(const tile::gpu::WaitMatmul& wait);

 private:
  void by_scalars(const tile::gpu::Matmul& matmul);
  void by_warps(const tile::gpu::Matmul& matmul);
  void by_warpgroups(const tile::gpu::Matmul& matmul);
  Pieces passed_through(const std::string& name, const Pieces& registers);
  /// Registers after all matmuls of this thread but the last `pending` are complete.
  Pieces finished(const Pieces& registers, std::size_t pending);
  /// First operand as register fragments, if it is in registers.
  std::optional<Pieces> fragments(const tile::gpu::Matmul& matmul);
  /// First operand in the layout of its fragments, with zeros in the padding: it is multiplied.
  Pieces padded_fragments(const Operation& dot, const Layout& layout);
  /// Operands in shared memory; copied there from registers if needed.
  std::vector<SharedOperand> operands_in_shared(const tile::gpu::Matmul& matmul);
  void clear(const SharedOperand& operand);
  void put_operand(const SharedOperand& operand, const Layout& layout, const Pieces& registers,
                   const tile::Extents* shape);
  struct Fragments;
  struct MmaTile;

  /// Register operands of matmuls in flight, by result: they must not be overwritten until then.
  std::map<ValueId, Pieces> held_;
};

}  // namespace tessera::codegen::ptx
