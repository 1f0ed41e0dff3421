#pragma once

#include "tessera/codegen/llvm/dot_parts.h"

namespace tessera::codegen {

/// Dots by AMX, whose instructions multiply tiles, of 16 rows of 64 bytes at most: instructions of
/// Form::Tiles. While k runs, 2 x 2 tiles of c stay in registers.
///
/// A tile of a has rows of a, each 64 bytes along k; one of b 16 groups of k, each of 16 columns:
/// as they lie in a panel, so that panels are those of the other instructions. Tiles are filled up
/// with zeros where a matrix ends; all of a have the same number of rows, so that few are.
DotPlan plan_amx_dot(const DotShape& shape, const Instruction& instruction,
                     const machine::Machine& machine, std::int64_t packed_b);

class AmxLoops {
 public:
  AmxLoops(llvm::IRBuilder<>& ir, const DotCall& call, const machine::Machine& machine,
           const DotArguments& in);

  /// As many of the first columns as can be finished.
  std::int64_t finished_columns() const;
  void emit();

 private:
  /// Rows or columns that are computed together: those that exist, and tiles.
  struct Piece {
    llvm::Value *first, *live;
    int tiles;
  };
  using PieceBody = llvm::function_ref<void(const Piece&)>;
  struct PanelOfB {
    llvm::Value *base, *stride, *rest;  // bytes between groups; the last tile, if it is not whole
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
  int chunk_ = 0;    // k's of a tile

  // Of the loop that is being emitted: where the block begins and how much of it there is.
  llvm::Value *k_ = nullptr, *k_size_ = nullptr, *k_padded_ = nullptr;
  llvm::Value *n_ = nullptr, *n_size_ = nullptr, *m_ = nullptr, *m_size_ = nullptr;
  llvm::Value* accumulate_ = nullptr;
  llvm::Value *panels_a_ = nullptr, *panels_b_ = nullptr, *tile_ = nullptr, *rest_ = nullptr;
};

}  // namespace tessera::codegen
