#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/codegen/llvm/emitter.h"

namespace tessera::codegen {

/// Position along one axis of a value: a part that is uniform over a row of the nest, plus the lane
/// index, plus the fold index.
struct Position {
  llvm::Value* uniform = nullptr;
  bool lane = false, fold = false;
  auto key() const { return std::make_tuple(uniform, lane, fold); }
};
using Positions = std::vector<Position>;

/// Innermost loops of a nest: all positions of the lane axis and of the fold axis, for fixed outer
/// ones. Values that depend on neither are computed once, before the row.
///
/// The lanes are processed by unrolled vectors as far as every load is in bounds, then by single
/// vectors, then element by element with bounds checks; or, where no check is needed, by one last
/// vector that ends with the row and recomputes some lanes. Loads that may be out of bounds for all
/// lanes alike (a row of padding above an image) are masked in a second version of the vector loop.
class Row {
 public:
  /// `outer` has an index for every axis but the lane's and the fold's. lane < 0: there is none.
  Row(Emitter& emitter, const tile::cpu::Nest& nest, int lane,
      const std::vector<llvm::Value*>& outer);

  /// Emits the lanes in [from, to).
  void emit(llvm::Value* from, llvm::Value* to);
  /// Value at the only position of the row.
  llvm::Value* single(tile::ValueId id);

  /// Alternative to emit() for a row without bounds checks: one vector at a time, starting at a
  /// lane. `held` provides the contents of a buffer there, or a value computed from it. Results are
  /// written afterwards; `close` ends the row.
  struct RegisterInput {
    int buffer = -1;
    std::optional<tile::ValueId> total = {};
    llvm::Value* vector = nullptr;
  };
  void compute_from_registers(const RegisterInput& input, llvm::Value* lane);
  void write_computed();
  /// Value at positions of the nest's space.
  llvm::Value* vector(tile::ValueId id, const tile::cpu::IndexMap& at, llvm::Value* lane);
  void close() { row_.CreateBr(start_); }

 private:
  /// Value of the current lanes: vectors, or one scalar for all of them.
  struct Lanes {
    Pieces pieces = {};
    bool uniform = false;  // one scalar for all lanes
    bool early = false;    // and loop-invariant: computed before the row
  };
  /// Vectorization of the current lanes.
  struct Mode {
    int pieces = 1, width = 1;
    bool guarded = true;
    bool masked = false;  // loads out of bounds in all lanes give their padding value
    int repeated = 0;     // lanes that another vector computes as well: folds leave them out
    bool beyond = false;  // the lanes are beyond the end of every view that ends in the row
  };
  /// Lanes of a row: those of whole vectors lie in [vectors, vector_end).
  struct Range {
    llvm::Value *from = nullptr, *vectors = nullptr, *vector_end = nullptr, *to = nullptr;
  };
  void emit_rest(const Range& range);
  /// Address of the elements of a load or store.
  struct Place {
    llvm::Value* pointer = nullptr;                              // for lane and fold 0
    llvm::Value *lane_stride = nullptr, *fold_stride = nullptr;  // null: does not depend on it
    std::int64_t beyond = 0;  // elements: accesses that differ only by this share an address
    int buffer = -1;          // -1: access to a view
  };
  /// Accumulator of a fold; folds along the lanes have an additional scalar for the elements that
  /// are processed one by one.
  struct Accumulator {
    std::vector<llvm::AllocaInst*> pieces = {};
    llvm::AllocaInst* scalar = nullptr;
    DType dtype = DType::F32;
  };

  Positions identity() const;
  Positions moved(const tile::Operation& op, const Positions& positions);
  Positions mapped(const tile::cpu::IndexMap& map, const Positions& positions);

  // values
  Lanes evaluate(tile::ValueId id, const Positions& positions);
  Lanes compute(tile::ValueId id, const tile::Operation& op, const Positions& positions);
  Lanes map(const tile::Operation& op, const std::vector<Lanes>& operands);
  Lanes iota(DType dtype, const Position& position);
  Lanes vload(tile::OpId id, const Positions& positions);
  /// Prefetches what the next program loads or stores there, where a program is one row. x86-64
  /// prefetchers stop at page boundaries, and stores stall.
  void prefetch(const tile::Operation& op, DType dtype, const Place& place);
  bool prefetches_stored() const {
    return e_.machine.architecture == machine::Architecture::X86_64;
  }
  std::vector<llvm::Value*> starts_of(const tile::Operation& op);
  Lanes gather(tile::OpId id, const Positions& positions);
  Lanes read(DType dtype, const Place& place);
  void write(DType dtype, const Place& place, const Lanes& x);
  Pieces spread(const Lanes& x);
  DType element_dtype(tile::ValueId id) const;
  Place view_place(const ViewParts& view, DType dtype, const std::vector<llvm::Value*>& at,
                   const Positions& positions);
  Place buffer_place(int buffer, DType dtype, const tile::Extents& shape,
                     const Positions& positions, const tile::Extents& at = {});
  llvm::Value* element_index(const Place& place);
  llvm::Value* address(DType dtype, const Place& place);
  bool is_uniform(const Positions& positions) const;

  // guards
  void collect(tile::ValueId id, const Positions& positions);
  void limit(tile::OpId id, const Positions& positions);
  bool is_maskable(const tile::Operation& op, const Positions& positions, std::size_t axis) const;
  Lanes masked(const tile::Operation& op, const Positions& positions, std::vector<llvm::Value*> at);
  llvm::Value* is_inside(tile::OpId id, const Positions& positions);

  // roots
  void body(const Mode& mode);
  /// Emits all roots at one position of the fold; the first position initializes folds without a
  /// neutral element.
  void step(bool first);
  bool ends_in_vector(const llvm::Value* from, const llvm::Value* to) const;
  /// Evaluates shared operands of several roots in an order that keeps few values live: level by
  /// level from the loads, each with the loads that it is the first to need.
  void evaluate_by_levels();
  /// Delayed write: all roots are computed before any of them writes, because one may read what
  /// another replaces.
  struct DelayedWrite {
    DType dtype = DType::F32;
    Place place = {};
    Lanes x = {};
  };
  std::vector<DelayedWrite> computed(bool first);
  void write(const std::vector<DelayedWrite>& delayed);
  void effect(tile::OpId id, std::vector<DelayedWrite>& delayed);
  void effect_of_elements(tile::OpId id);
  Lanes root_value(const tile::cpu::Root& root);
  void fold(const tile::cpu::Root& root, bool first);
  const tile::Operation* summed_product(const tile::Operation& op) const;
  void start_fold(const tile::Operation& op, const Mode& mode);
  void finish_fold(const tile::Operation& op);
  std::vector<llvm::AllocaInst*> slots_of(const Accumulator& accumulator) const;
  std::vector<Pieces> combined(const tile::Operation& op, const std::vector<Pieces>& left,
                               const std::vector<Pieces>& right);
  void leave_out_repeated(Pieces& x, llvm::Constant* by) const;
  llvm::Value* across(const tile::Operation& op, llvm::Value* vector, DType dtype);
  void write_result(const tile::Operation& op, std::size_t which, const Pieces& folded);
  bool folds_lanes() const { return nest_.fold && *nest_.fold == lane_; }

  Emitter& e_;
  const tile::cpu::Nest& nest_;
  int lane_, fold_;  // -1: none, or the same axis as the lane
  llvm::BasicBlock* start_;
  llvm::IRBuilder<> row_;  // insertion point before the row
  std::vector<llvm::Value*> outer_;

  Mode mode_;
  llvm::Value *lane_index_ = nullptr, *fold_index_ = nullptr;
  using Key = std::pair<tile::ValueId, std::vector<std::tuple<llvm::Value*, bool, bool>>>;
  static Key key(tile::ValueId id, const Positions& positions);
  std::map<Key, Lanes> uniform_, local_;
  std::map<std::pair<llvm::Value*, int>, llvm::Value*> spread_;
  std::map<Key, Place> places_;  // by everything that they depend on
  std::map<Key, bool> collected_;
  llvm::Value *fast_from_ = nullptr, *fast_to_ = nullptr;  // null: everywhere
  /// First lane beyond the end of every view that ends in the row, where loads give their padding;
  /// null: there is none, or something else decides over a load.
  llvm::Value* padding_from_ = nullptr;
  bool may_pad_ = true;
  llvm::Value* unmasked_ = nullptr;                    // whether all loads are in bounds; null: yes
  std::map<tile::ValueId, Accumulator> accumulators_;  // by result
  RegisterInput input_;
  std::vector<DelayedWrite> delayed_;
};

}  // namespace tessera::codegen
