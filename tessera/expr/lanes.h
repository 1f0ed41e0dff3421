#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "tessera/expr/eval.h"
#include "tessera/expr/plan.h"

namespace tessera {

/// Vectorized interpreter of an evaluation plan: runs a block of positions at once, one lane for
/// each. Every instruction is a loop over lanes, which amortizes the cost of interpretation; values
/// that do not depend on the position within the block are computed once.
///
/// An axis that varies within the block has a table of positions relative to the block's first
/// lane. The tables, and the relative offsets of affine reads, are the same for all blocks.
template <class T>
class Lanes {
 public:
  struct Setup {
    const Plan& plan;
    const std::vector<Operand>& operands;
    std::span<const ConstArray> inputs;
    const std::atomic<bool>* stop = nullptr;
    int lanes = 1;
    int partial = -1;   // first axis that varies within a row of a block; later ones vary too
    int rows = 1;       // rows of a block, one after the other
    int row_axis = -1;  // axis along which they are taken, before the partial one
    bool in_order = false;
  };
  explicit Lanes(const Setup& setup);

  void set_slot(int slot, std::int64_t position) {
    position_[static_cast<std::size_t>(slot)] = position;
  }
  /// Computes the plan's results for the first `count` lanes.
  Expected<Done> run(int count);

  std::int64_t integer(int reg, int lane) const;
  /// Range of lanes.
  struct Stretch {
    int first = 0, count = 0;
  };
  void store(int reg, const MutableArray& into, std::int64_t position, Stretch lanes) const;
  /// Writes one lane, combined with the stored element.
  void write(int reg, int lane, std::optional<Fn> combine, const MutableArray& into,
             std::int64_t position) const;

 private:
  /// Register: one value per lane, or a single value for all lanes.
  struct Register {
    std::vector<T> values;
    std::vector<std::int64_t> integers;
    bool varies = false;
  };
  /// Affine index relative to the start of the block: how it varies over the lanes.
  struct Relative {
    enum class Shape { Uniform, Consecutive, Table };
    Shape shape = Shape::Uniform;
    std::vector<std::int64_t> table;
    std::int64_t least = 0, most = 0;  // of the lanes
  };
  struct AccessState {
    Relative offset;
    std::vector<Relative> checked;
    bool varies = false;
  };
  struct Run {
    int begin, end;
  };
  /// Range of lanes in which one factor of a contraction is the same element and the other one has
  /// them at equal distances.
  struct Segment {
    int begin, end;
    std::int64_t same = 0, consecutive = 0;  // offsets of the first lane
    std::int64_t pitch = 1;                  // distance of the elements of two lanes
    int which = 0;                           // the factor that is the same
  };
  /// Lanes of a block for which a contraction adds terms.
  struct Reach {
    std::vector<Run> runs;
    std::vector<Segment> segments;
  };
  enum class Storage { None, F32, F64, Lifted };

  bool mark(const Code& code);
  bool varies(const Access& access) const;
  Relative relative(const AffinePosition& affine) const;
  std::int64_t uniform_part(const AffinePosition& affine) const;
  int width(const Register& reg) const { return reg.varies ? count_ : 1; }
  Register& reg(int number) { return registers_[static_cast<std::size_t>(number)]; }
  const Register& reg(int number) const { return registers_[static_cast<std::size_t>(number)]; }

  bool execute(const Code& code);
  void execute_index(const Instruction& instruction);
  bool execute_read(const Instruction& instruction);
  /// Sets the offsets that lanes read at, and which of them are in range; false: one is not that
  /// has to be.
  bool locate(const Access& access, const AccessState& state, int width);
  void execute_apply(const Instruction& instruction);
  void execute_convert(const Instruction& instruction);
  void execute_cast(const Instruction& instruction);
  bool execute_fold(const FoldPlan& fold);

  bool fold_step(const FoldPlan& fold, std::size_t depth);
  std::int64_t extent_of(const FoldPlan::Loop& loop) const;
  std::int64_t computed_steps(const FoldPlan& fold) const;
  /// Lane mask; empty means that all lanes are active.
  using Mask = std::vector<std::uint8_t>;
  Mask within_bounds(const FoldPlan& fold) const;
  void take_in(const FoldPlan& fold, const Mask& within);
  // In lanes_contraction.cpp.
  bool sums_products(const FoldPlan& fold) const;
  bool sum_of_products(const FoldPlan& fold);
  void valid_runs(const FoldPlan& fold, std::vector<Run>& runs);
  bool decides(const FoldPlan& fold, int slot) const;
  Storage storage_of(const FoldPlan& fold) const;
  template <class S>
  bool sum_of_products_as(const FoldPlan& fold);
  std::vector<Segment> segments(const FoldPlan& fold, const std::vector<Run>& runs) const;
  /// Reach at the current position, computed once for all positions that are equally far from the
  /// ends of the axes.
  const Reach& reach(const FoldPlan& fold);

  void apply_values(const Instruction& instruction, Register& out);
  void apply_integers(const Instruction& instruction, Register& out);
  bool stopped() const {
    return setup_.stop != nullptr && setup_.stop->load(std::memory_order_relaxed);
  }

  Setup setup_;
  int count_ = 0;
  std::vector<std::int64_t> position_;  // by slot
  std::vector<std::vector<std::int64_t>>
      within_;  // by slot: relative positions; empty: does not vary
  std::vector<Register> registers_;
  std::vector<AccessState> accesses_;
  std::vector<std::int64_t> offsets_;                   // scratch
  Mask valid_;                                          // scratch
  std::map<std::vector<std::int64_t>, Reach> reaches_;  // by fold, lanes and position
  const Mask* active_ = nullptr;  // active lanes of the folds that are running
  std::optional<Diagnostic> error_;
};

#define TESSERA_DECLARE(T) extern template class Lanes<T>;
TESSERA_NUMBER_TYPES(TESSERA_DECLARE)
#undef TESSERA_DECLARE

}  // namespace tessera
