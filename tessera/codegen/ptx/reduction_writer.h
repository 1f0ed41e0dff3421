#pragma once

#include <map>
#include <vector>

#include "tessera/codegen/ptx/evaluator.h"

namespace tessera::codegen::ptx {

/// Partial reduction of a tile after each thread has reduced its own elements.
struct Fold {
  Layout rest;  // layout of the result: without the axis
  std::vector<int>
      lane_bits;  // thread bits along the axis, whose partial results are still to be combined
  std::vector<int> warp_bits;
  std::vector<DType> types;   // element types of a partial result: by operand
  std::vector<Pieces> parts;  // by register of `rest`
  bool padded;                // the last element of a partial result says whether it is valid
  bool wide;                  // 16-bit floats are accumulated in f32
};

/// Writer of reductions: partial results are combined first in a thread, then between the lanes of
/// a warp, then between warps.
class ReductionWriter : public CodeWriter {
 public:
  ReductionWriter(const Context& context, Evaluator& evaluator)
      : CodeWriter(context), evaluator_(evaluator) {}

  void write(const tile::gpu::ReduceInThread& reduce);
  void write(const tile::gpu::ReduceInWarp& reduce);
  void write(const tile::gpu::ReduceInBlock& reduce);
  void write(const tile::gpu::ReduceResult& result);
  void write(const tile::gpu::Unpack& unpack);

  using Elements = std::vector<llvm::Value*>;
  Elements combine(const Operation& op, const Elements& left, const Elements& right);
  DType part_type(const Operation& fold) const;  // 16-bit floats are summed in f32
  llvm::Value* neutral(const Operation& op);     // element of a partial result
  /// One level of a tree over neighbouring elements of a sum of products, by fma.
  Pieces fused_sums(const Operation& sum, const Layout& layout, const Pieces& level,
                    const std::vector<int>& registers);
  /// Partial results of a reduction that were combined elsewhere.
  void start(OpId id, const Layout& layout, Fold fold);

 private:
  Elements joined(const Operation& op, bool padded, const Elements& left, const Elements& right);
  void fold_lanes(const Operation& op, Fold& fold, int bit);

  Evaluator& evaluator_;
  std::map<OpId, Fold> folds_;
};

}  // namespace tessera::codegen::ptx
