#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/codegen/llvm/emitter.h"

namespace tessera::codegen {

/// A position along one axis of a value: a part that is the same for a whole row of the nest, plus
/// the running index of the lanes, plus that of the fold.
struct Position {
  llvm::Value* uniform = nullptr;
  bool lane = false, fold = false;
  auto key() const { return std::make_tuple(uniform, lane, fold); }
};
using Positions = std::vector<Position>;

/// The innermost part of a nest: all positions of the lane axis, and of the fold axis, for fixed
/// outer ones. What does not depend on either is computed once, before the row.
///
/// The lanes are done by whole unrolled vectors as far as every load is inside of its view, then by
/// single vectors, then element by element with guards; or, where nothing needs a guard, by one
/// vector that ends with the row and does some lanes again. Loads that may be outside of their view
/// for all lanes alike (a row of padding above an image) are masked in a second version of the
/// vectors, which runs where there are such.
class Row {
 public:
  /// `outer` has an index for every axis but the lane's and the fold's. lane < 0: there is none.
  Row(Emitter& emitter, const tile::cpu::Nest& nest, int lane,
      const std::vector<llvm::Value*>& outer);

  /// Lanes from `from` to below `to`.
  void emit(llvm::Value* from, llvm::Value* to);
  /// The value at the row's only position.
  llvm::Value* single(tile::ValueId id);

  /// In place of emit(), for a row that needs no guards: one vector at a time, beginning at a lane.
  /// `held` stands for what a buffer would hold there, or for a value that is made of it. What is
  /// computed is written afterwards; `close` ends the row.
  struct Held {
    int buffer = -1;
    std::optional<tile::ValueId> total = {};
    llvm::Value* vector = nullptr;
  };
  void compute_held(const Held& held, llvm::Value* lane);
  void write_held();
  /// A value at positions of the nest's space.
  llvm::Value* vector(tile::ValueId id, const tile::cpu::IndexMap& at, llvm::Value* lane);
  void close() { row_.CreateBr(start_); }

 private:
  /// A value for the lanes at hand: pieces of vectors, or one scalar for all of them.
  struct Lanes {
    Pieces pieces = {};
    bool uniform = false;  // one scalar for all lanes
    bool early = false;    // and computed before the row
  };
  /// How the lanes at hand are cut.
  struct Mode {
    int pieces = 1, width = 1;
    bool guarded = true;
    bool masked = false;  // loads that are outside as a whole give their pad
    int repeated = 0;     // lanes that others do as well: folds leave them out
  };
  /// Where the elements of a load or store are.
  struct Place {
    llvm::Value* pointer = nullptr;                              // for lane and fold 0
    llvm::Value *lane_stride = nullptr, *fold_stride = nullptr;  // null: does not depend on it
    std::int64_t beyond = 0;  // elements: accesses that differ by this alone share an address
    int buffer = -1;          // -1: of a view
  };
  /// What a fold has gathered so far; lanes that are folded keep one scalar more for what is done
  /// element by element.
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
  /// Asks for what the next program loads or stores there, where a program is one row. x86-64
  /// foresees loads within a page and stalls on stores.
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
  /// All roots at one position of the fold; the first one starts folds that have no neutral
  /// element.
  void step(bool first);
  bool ends_in_vector(const llvm::Value* from, const llvm::Value* to) const;
  /// What several roots are made of, in an order in which few values are alive: what is equally far
  /// from the loads one after the other, each with the loads that it is the first to need.
  void evaluate_by_levels();
  /// Writes that wait until everything is computed: a root may read what another replaces.
  struct Waiting {
    DType dtype = DType::F32;
    Place place = {};
    Lanes x = {};
  };
  std::vector<Waiting> computed(bool first);
  void write(const std::vector<Waiting>& waiting);
  void effect(tile::OpId id, std::vector<Waiting>& waiting);
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
  llvm::IRBuilder<> row_;  // before the row
  std::vector<llvm::Value*> outer_;

  Mode mode_;
  llvm::Value *lane_index_ = nullptr, *fold_index_ = nullptr;
  using Key = std::pair<tile::ValueId, std::vector<std::tuple<llvm::Value*, bool, bool>>>;
  static Key key(tile::ValueId id, const Positions& positions);
  std::map<Key, Lanes> uniform_, local_;
  std::map<std::pair<llvm::Value*, int>, llvm::Value*> spread_;
  std::map<Key, Place> places_;  // by all that they depend on
  std::map<Key, bool> collected_;
  llvm::Value *fast_from_ = nullptr, *fast_to_ = nullptr;  // null: everywhere
  llvm::Value* unmasked_ = nullptr;                        // whether no load is outside; null: yes
  std::map<tile::ValueId, Accumulator> accumulators_;      // by result
  Held held_;
  std::vector<Waiting> waiting_;
};

}  // namespace tessera::codegen
