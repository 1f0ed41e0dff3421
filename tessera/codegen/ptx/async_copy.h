#pragma once

#include <functional>
#include <map>
#include <vector>

#include "tessera/codegen/ptx/evaluator.h"
#include "tessera/codegen/ptx/loop_range.h"

namespace tessera::codegen::ptx {

/// Writer of copies from global memory into the stages of a multi-stage buffer: by cp.async, by
/// TMA, or through registers.
class AsyncCopy : public CodeWriter {
 public:
  AsyncCopy(const Context& context, Evaluator& evaluator, LoopBounds& bounds)
      : CodeWriter(context), evaluator_(evaluator), bounds_(bounds) {}

  /// Start of the multi-stage buffer of each operand: of the threads that copy, or of all groups of
  /// threads in common.
  void place_stages(const tile::gpu::Stages& stages);
  void place_common_stages(const tile::gpu::Stages& stages);
  /// Makes the operands of a stage available to matmuls.
  void bind_stage(const LoopPipeline& pipeline, llvm::Value* stage);

  /// Run-time properties of the copies of all iterations: 16-byte aligned, and all in bounds too.
  struct Conditions {
    llvm::Value *aligned = nullptr, *whole = nullptr;
  };
  Conditions conditions_of(const Operation& loop, const LoopPipeline& pipeline);
  using Operands = std::vector<StagedOperand>;
  struct Copy {
    llvm::Value* index;
    llvm::Value* stage;  // byte offset
    Conditions fits;
  };
  /// Starts the copies of an iteration, if there is one. `is_published`: matmuls by wgmma will
  /// read them.
  void prefetch_iteration(const Operation& loop, const Operands& operands, const Copy& copy,
                          bool is_published);
  /// Ends the group of copies of an iteration.
  void commit();
  enum class CopiedBy : std::uint8_t { Chunks, Elements };
  /// `then` runs after all copies are issued.
  void copy_iteration(const Operation& loop, const Operands& operands, const Copy& copy,
                      const std::function<void(CopiedBy)>& then);
  /// Copies by TMA: one thread issues the copies of these operands, and arrives at the mbarrier
  /// with the last ones of a stage.
  struct BoxCopy {
    const Operands& operands;
    llvm::Value* mbarrier = nullptr;
    bool is_last = true;
  };
  void copy_boxes(const Operation& loop, const LoopPipeline& pipeline, const Copy& copy,
                  const BoxCopy& boxes);

  /// Copies the tile of a load, whose positions are known here, to a place in shared memory: by the
  /// tensor map of this number, whose bytes complete at an mbarrier, or by all threads, of any
  /// alignment.
  void copy_tile_by_map(const StagedOperand& staged, llvm::Value* base, std::size_t map,
                        llvm::Value* mbarrier);
  void copy_tile_by_threads(const StagedOperand& staged, llvm::Value* base);

 private:
  /// Source and destination of the copies of one iteration.
  struct Origin {
    const View& view;
    tile::Extents shape;             // padded: powers of two
    std::vector<llvm::Value*> ends;  // end of the view or the tile, on each axis
    SharedOperand operand;           // base: of the stage
    std::size_t column;
    std::vector<llvm::Value*> start;  // on each axis
    std::vector<bool> inside;         // by axis: all that is copied is known to be in bounds
    bool even;                        // no chunk crosses the end of a row

    std::int64_t per_row() const { return operand.row_bytes() / kChunk; }
    std::int64_t chunks() const { return operand.rows * per_row(); }
    std::int64_t elements() const { return kChunk / operand.width; }
    /// Shift of an axis in the row number.
    int shift(std::size_t axis) const {
      int bits = 0;
      for (std::size_t i = shape.size(); i-- > axis + 1;)
        if (i != column) bits += index_bits(shape[i]);
      return bits;
    }
  };
  Origin origin_of(const Operation& loop, const StagedOperand& staged, const Copy& copy);
  /// `start`: position of the tile on each axis.
  Origin origin_of(const StagedOperand& staged, std::vector<llvm::Value*> start, llvm::Value* base);
  Origin origin_here(const StagedOperand& staged, llvm::Value* base);
  /// Number of a tensor map, and the order of its axes.
  struct MapOfBox {
    std::size_t number = 0;
    std::vector<int> order = {};
  };
  void copy_box(const Origin& source, const MapOfBox& of, llvm::Value* mbarrier);
  void copy_chunks(const Origin& source, bool whole);
  void copy_elements(const Origin& source);
  void copy_in_turn(const Origin& source);

  Evaluator& evaluator_;
  LoopBounds& bounds_;
  std::map<OpId, llvm::Value*> stage_offsets_;  // by load: start of its multi-stage buffer
};

}  // namespace tessera::codegen::ptx
