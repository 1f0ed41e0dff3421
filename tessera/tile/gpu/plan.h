#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/tile/gpu/layout.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile::gpu {

/// Instruction that computes a matmul.
enum class MatmulInstruction : std::uint8_t {
  Half,     // mma.m16n8k16 of f16
  BFloat,   // mma.m16n8k16 of bf16
  Byte,     // mma.m16n8k32 of i8
  Tf32,     // mma.m16n8k8 of f32 rounded to tf32 (10 mantissa bits)
  Scalars,  // scalar fma, in the type of the accumulator
};
/// Extent along k of one instruction.
inline std::int64_t k_step(MatmulInstruction instruction) {
  return instruction == MatmulInstruction::Byte   ? 32
         : instruction == MatmulInstruction::Tf32 ? 8
                                                  : 16;
}

/// Layout assignment of a kernel: the number of threads that run one program, and the distributed
/// layout of each tile.
///
/// Layouts originate at loads, stores and matmuls, and propagate along operations. A tile that
/// every thread can recompute at no cost (a constant, an iota, a broadcast, and elementwise
/// operations on those) is assigned none: it is rematerialized at each use, in the layout of that
/// use.
class Plan {
 public:
  /// Target features and tuning parameters.
  struct Target {
    bool wgmma = true;          // the target has wgmma (Hopper)
    bool tf32 = false;          // f32 matmuls may round their factors to tf32
    int bytes_per_thread = 64;  // bytes of the largest loaded or stored tile that a thread holds
    bool coarsening = false;    // tiles hold rows of several programs
    bool rows = false;          // rows are reduced (row_schedule.h)
    /// Threads of a program: at least, where it multiplies matrices; 0: as its tiles need.
    int threads = 0;
    /// Whether a kernel with matmuls has exactly so many; the caller checks that they have
    /// registers enough.
    bool exact_threads = false;
  };
  /// Assigns layouts; a tile that is too large for 1024 threads is a diagnostic:
  /// `ptx-tile-too-large`.
  static Expected<Plan> make(const Kernel& kernel, const Target& target);

  int threads() const { return threads_; }
  /// Layout of a value; none where it is rematerialized.
  const std::optional<Layout>& home(ValueId id) const { return homes_[id]; }

  /// Default layout of a tile of this shape; of an access to a view: with vector accesses of 16
  /// bytes where its strides allow.
  Layout standard(const Extents& shape) const;
  Layout access(const Type& view, const Extents& shape) const;
  /// Layout of the tile that a Vload or a Vstore accesses.
  Layout access(const Operation& op) const;
  Layout accumulator_layout(const Operation& dot) const;
  MatmulInstruction instruction_of(const Operation& dot) const;
  /// Whether a matmul uses wgmma; and the reason where it does not, empty otherwise.
  bool uses_wgmma(const Operation& dot) const { return why_not_wgmma(dot).empty(); }
  std::string_view why_not_wgmma(const Operation& dot) const;
  /// Columns of the wgmma instruction: those that a warpgroup's part of the result has.
  std::int64_t wgmma_columns(const Operation& dot) const;
  /// Register layout of the first operand of a matmul, where it can be multiplied from registers:
  /// the accumulators of one matmul are then the operand of the next one without exchange (flash
  /// attention), because each thread holds the same rows and the four threads of a row hold all
  /// columns.
  std::optional<Layout> fragments(const Operation& dot) const;
  bool any_wgmma() const { return any_wgmma_; }

 private:
  Plan(const Kernel& kernel, const Target& target) : kernel_(&kernel), target_(target) {}
  Expected<Done> count_threads();
  int run_of(const Extents& shape, int fastest) const;
  /// Lanes along the fastest axis. Short rows lie side by side in a warp: a reduction then has
  /// fewer steps, and takes them for several rows at once.
  int lanes_along(const Extents& shape, int fastest, std::int64_t run) const;
  Layout ordered(const Extents& shape, int fastest) const;
  void visit(const Region& region);
  void visit(const Operation& op);
  void visit_loop(const Operation& op, std::size_t first, const Region& region);
  void settle(const Operation& op);
  /// Requests, for loads that elementwise operations use, as they are or broadcast, the layout of
  /// those: every thread loads what it needs, and nothing is exchanged. Whether there is such a
  /// load.
  bool request_layouts();
  std::optional<Layout> joined(const std::vector<ValueId>& ids) const;

  const Kernel* kernel_;
  Target target_;
  int threads_ = 32;
  bool any_wgmma_ = false;
  bool rows_first_ = false;
  std::map<Extents, int>
      widths_;  // by shape: bytes of the narrowest element that is loaded or stored
  std::vector<std::optional<Layout>> homes_;
  std::map<ValueId, Layout> requested_;  // by loaded tile
  std::vector<int> depth_;               // by value: number of operations to rematerialize it
};

/// Layout of the result of a reshape that moves no element between registers, if there is one.
std::optional<Layout> reshaped(const Layout& layout, const Extents& from, const Extents& to);

/// Axis of a view with stride 1, as far as the type says; else the last.
int contiguous_axis(const Type& view);

/// Elements per vector access along the contiguous axis, where the address is aligned: a power of
/// two of up to 16 bytes.
int run_of(const Type& view, const Layout& layout, const Extents& shape);

/// Accumulators of tensor-core matmuls that a thread holds, of its 255 registers.
constexpr std::int64_t kMatrixRegisters = 160;
/// Maximum number of elements of a tile per thread.
constexpr int kMostRegisters = 256;

}  // namespace tessera::tile::gpu
