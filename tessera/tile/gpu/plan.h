#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/tile/gpu/layout.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile::gpu {

/// How a block of threads computes a product.
enum class Product : std::uint8_t {
  Half,     // mma.m16n8k16 of f16
  BFloat,   // the same of bf16
  Byte,     // mma.m16n8k32 of i8
  Tf32,     // mma.m16n8k8 of f32, rounded to 10 bits after the point
  Scalars,  // multiplications and additions, in the type of the sum
};
/// What its instructions take at once along k.
inline std::int64_t k_step(Product product) {
  return product == Product::Byte ? 32 : product == Product::Tf32 ? 8 : 16;
}

/// How many threads run one program, and which of them holds which elements of each tile.
///
/// Layouts begin where memory is read and at products, and are handed on. A tile that anyone can
/// compute at no cost, such as a constant, an iota, a broadcast and what follows from such alone,
/// has no home: it is made where it is used, in the layout that is asked for.
class Plan {
 public:
  /// Tiles that are too large for 1024 threads are a diagnostic: `ptx-tile-too-large`.
  struct Target {
    bool warpgroups = true;     // can multiply together: Hopper
    bool tf32 = false;          // products of f32 may be rounded so
    int bytes_per_thread = 64;  // of the largest tile that memory has
    bool together = false;      // rows of several programs: what one has of each, all threads have
  };
  static Expected<Plan> make(const Kernel& kernel, const Target& target);

  int threads() const { return threads_; }
  const std::optional<Layout>& home(ValueId id) const { return homes_[id]; }

  /// For any tile of this shape; for an access to a view, 16 bytes in a row where its strides
  /// allow.
  Layout standard(const Extents& shape) const;
  Layout access(const Type& view, const Extents& shape) const;
  Layout product(const Operation& dot) const;
  Product means(const Operation& dot) const;
  /// Whether warpgroups compute a product, by wgmma; and what speaks against it, if anything.
  bool by_warpgroups(const Operation& dot) const { return against_warpgroups(dot).empty(); }
  std::string_view against_warpgroups(const Operation& dot) const;
  /// Where the first operand of a product can be multiplied from registers. The sums of one
  /// product, two patches beside each other, lie in a thread as the next product wants it: the same
  /// rows, and all columns of them in the four threads of a row.
  std::optional<Layout> fragments(const Operation& dot) const;
  bool any_warpgroups() const { return any_warpgroups_; }

 private:
  Plan(const Kernel& kernel, const Target& target) : kernel_(&kernel), target_(target) {}
  Expected<Done> count_threads();
  int run_of(const Extents& shape) const;
  Layout ordered(const Extents& shape, int fastest) const;
  void visit(const Region& region);
  void visit(const Operation& op);
  void visit_loop(const Operation& op, std::size_t first, const Region& region);
  void settle(const Operation& op);
  std::optional<Layout> joined(const std::vector<ValueId>& ids) const;

  const Kernel* kernel_;
  Target target_;
  int threads_ = 32;
  bool any_warpgroups_ = false;
  bool rows_first_ = false;
  std::map<Extents, int> widths_;  // the narrowest element that memory has in this shape
  std::vector<std::optional<Layout>> homes_;
  std::vector<int> depth_;  // how many operations make a tile without a home
};

/// The layout of a reshaped tile whose registers stay where they are, if there is one.
std::optional<Layout> reshaped(const Layout& layout, const Extents& from, const Extents& to);

/// The axis along which neighbours lie in memory, as far as the type says; else the last.
int contiguous_axis(const Type& view);

/// Elements that one access takes along the axis whose neighbours lie in memory side by side, if
/// its place is aligned: a power of two of up to 16 bytes.
int run_of(const Type& view, const Layout& layout, const Extents& shape);

/// Most elements of a tile that a thread holds.
constexpr int kMostRegisters = 256;

}  // namespace tessera::tile::gpu
