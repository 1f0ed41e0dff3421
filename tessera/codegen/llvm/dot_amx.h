#pragma once

#include "tessera/codegen/llvm/dot_parts.h"

namespace tessera::codegen {

/// Dots by AMX, whose instructions multiply tiles of at most 16 rows of 64 bytes
/// (Instruction::Form::Tiles). 2 x 2 tiles of c stay in tile registers while k advances.
///
/// A tile of a has rows of a, each 64 bytes along k; a tile of b has 16 groups of k, each of 16
/// columns: the panel layout of the other instructions. Tiles are padded with zeros at the end of a
/// matrix; all tiles of a have the same number of rows, to keep the padding small.
DotPlan plan_amx_dot(const DotShape& shape, const Instruction& instruction,
                     const machine::Machine& machine, std::int64_t packed_b);

/// Loops around the AMX micro-kernel: packing, cache blocking and the epilogue.
class AmxLoops {
 public:
  AmxLoops(llvm::IRBuilder<>& ir, const DotCall& call, const machine::Machine& machine,
           const DotArguments& in);

  /// Number of leading columns that the epilogue can process.
  std::int64_t epilogue_columns() const;
  void emit();

 private:
  /// Block of rows or columns that is computed together: the valid ones, and the number of tiles.
  struct Piece {
    llvm::Value *first, *live;
    int tiles;
  };
  using PieceBody = llvm::function_ref<void(const Piece&)>;
  struct PanelOfB {
    llvm::Value *base, *stride, *rest;  // bytes between groups; the last tile, if it is partial
  };

  void each_piece(llvm::Value* extent, int tile, int tiles, PieceBody body);
  void each_rows(PieceBody body) { each_piece(m_size_, height_, plan_.mr / height_, body); }
  void pack_rows_of_a(const Piece& rows);
  void pack_columns_of_b(const Piece& columns);
  PanelOfB panel_of_b(const Piece& columns);
  void multiply(const Piece& rows, const Piece& columns, const PanelOfB& b);
  void finish(const Piece& rows, const Piece& columns);

  llvm::Value* constant(std::int64_t value);
  llvm::Value* at_most(llvm::Value* value, std::int64_t most);
  llvm::Value* at_least(llvm::Value* value, std::int64_t least);
  llvm::Value* bytes_at(llvm::Value* base, llvm::Value* offset);

  llvm::IRBuilder<>& ir_;
  const DotCall& call_;
  const DotPlan& plan_;
  DotArguments in_;
  Instruction instruction_;
  llvm::Module& module_;
  int height_ = 16;  // rows of the tiles of a
  int chunk_ = 0;    // k's per tile

  // Current block of the loops that are being emitted: start and size.
  llvm::Value *k_ = nullptr, *k_size_ = nullptr, *k_padded_ = nullptr;
  llvm::Value *n_ = nullptr, *n_size_ = nullptr, *m_ = nullptr, *m_size_ = nullptr;
  llvm::Value* accumulate_ = nullptr;
  llvm::Value *panels_a_ = nullptr, *panels_b_ = nullptr, *tile_ = nullptr, *rest_ = nullptr;
};

}  // namespace tessera::codegen
