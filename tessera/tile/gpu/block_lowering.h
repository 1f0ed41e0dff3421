#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tessera/tile/gpu/access_order.h"
#include "tessera/tile/gpu/block_program.h"
#include "tessera/tile/gpu/schedule.h"
#include "tessera/tile/gpu/shared_stack.h"

namespace tessera::tile::gpu {

/// Lowering of a scheduled kernel to the program of a block: T => S.
///
/// A tile is made where it is first used: loaded, computed, rematerialized or converted to the
/// layout of the use. Shared memory is a stack (SharedStack), and barriers stand where it is
/// reused, and between accesses to global memory that may conflict (AccessOrder).
class BlockLowering {
 public:
  explicit BlockLowering(const ScheduledKernel& scheduled);
  Expected<BlockProgram> run();

 private:
  const Operation& operation(OpId id) const { return kernel_.ops[id]; }
  const Type& type(ValueId id) const { return kernel_.type(id); }
  DType dtype(ValueId id) const;
  Layout home(ValueId id) const { return planned_.home(id); }
  void fail(const Operation& op, const std::string& message);

  // instructions
  void add(Instruction instruction) {
    if (has_turn_ && !keeps_turn(instruction)) end_turn();
    body_->push_back(std::move(instruction));
  }
  /// Instructions that `lower` adds.
  template <class Lower>
  Body body_of(const Lower& lower) {
    Body made;
    Body* outer = std::exchange(body_, &made);
    lower();
    body_ = outer;
    return made;
  }
  /// Instructions of one program of a persistent block, in a scope of its own.
  template <class Lower>
  Body program_body(const Lower& lower) {
    return body_of([&] {
      open_scope();
      shared_.use_scratch();
      lower();
      close_scope();
      accesses_.clear();
    });
  }
  void barrier();
  /// Scratch for an exchange of these tiles, after the barrier that it needs.
  void place_in_scratch(std::vector<SharedTile>& tiles);
  SharedTile in_scratch(const Extents& extents, DType dtype);
  /// An exchange is complete: its scratch is read from now on.
  void exchanged();

  // fragments
  bool has(ValueId id, const Layout& layout) const { return fragments_.contains({id, layout}); }
  void define(ValueId id, const Layout& layout);
  void open_scope() { scopes_.emplace_back(); }
  void close_scope();
  /// Makes a tile available in a layout: converted or rematerialized where it is not.
  void require(ValueId id, const Layout& layout);
  void require_at_home(ValueId id) { require(id, home(id)); }
  void convert(ValueId id, const Layout& from, const Layout& to);
  void rematerialize(ValueId id, const Layout& layout);
  /// Operands of an elementwise operation: those that it is evaluated from.
  Compute elementwise(OpId id, const std::optional<Layout>& layout);
  bool is_in_epilogue(ValueId id) const;

  // operations
  void lower(const Region& region);
  void lower(OpId id);
  void lower_operation(OpId id);
  void lower_value(OpId id);
  void gather(OpId id);
  void concat(OpId id);
  void slice(OpId id);
  void reshape(OpId id);
  void scan(OpId id);

  // reductions
  struct OpenReduction {
    OpId op = 0;
    Layout layout;                  // of the operands
    std::vector<DType> types = {};  // of a partial result
  };
  Layout layout_of_reduction(const Operation& op) const;
  std::vector<DType> types_of_partial_result(const Operation& op, const Layout& layout) const;
  /// Requires the factors of a sum of products, which is computed by fma; false: it is none.
  bool require_factors(const Operation& sum, const Layout& layout);
  void reduce(OpId id);
  void finish_reductions();
  void unpack_again();

  // memory
  void order(const AccessOrder::Access& access);
  int run_of_access(OpId id) const;
  /// Adds the addresses of an access.
  AddressView address_of(OpId id);
  const KnownAccess* known_access_of(OpId id) const;
  bool keeps_packed(ValueId id, const Layout& layout, DType dtype, int run);
  void load_view(OpId id);
  void take_prefetched(OpId id, const PrefetchBuffer& buffer);
  void store_view(OpId id);
  void store_in_boxes(StoreView& store, const WarpBox& box);
  void prepare_epilogue(ValueId id, const Layout& layout);
  void epilogue(ValueId id, const Layout& layout, std::set<ValueId>& known, Body& body);
  void load_pointers(OpId id);
  void store_pointers(OpId id);
  void atomic(OpId id);

  // matmuls
  void dot(OpId id);
  void dot_scalars(OpId id);
  bool has_fragments(const Operation& dot);
  bool ends_in_registers(const Operation& dot) const;
  void place_operands(Matmul& matmul);
  bool names_buffer(OpId id);
  void require_fragments(const Operation& loop);
  std::vector<HoldOperand> room_for_operands(const Operation& loop);
  void wait_for(ValueId id);
  void wait_for_all();

  // control
  std::vector<Fragment> at_home(const std::vector<ValueId>& ids) const;
  std::vector<Fragment> handed_on(const std::vector<ValueId>& values,
                                  const std::vector<ValueId>& homes);
  void bind(const std::vector<ValueId>& ids);
  void yield(const Region& region, const std::vector<ValueId>& homes,
             const std::optional<ReleaseStage>& release = {});
  bool any_writes(const Operation& op) const;
  void join_paths(bool writes);
  bool is_filled_by_producers(OpId loop) const;
  void prefetch_next(OpId loop);
  void for_loop(OpId id);
  void while_loop(OpId id);
  void branch(OpId id);

  // shapes of programs
  void arithmetic(ProgramDependence by, std::set<OpId>& done);
  void versions();
  void persistent();
  void prefetch_program(int ahead, bool is_prologue, bool is_first);
  void passes();
  void row_properties(const std::vector<RowPass>& passes);
  void row_version(const std::vector<RowPass>& passes, RowAlignment alignment);
  void cache_rows(const RowPass& pass);
  void part_loop(const RowPass& pass, PartLoop loop, bool is_masked, bool is_in_turn);
  void finish_parts(const RowPass& pass);
  void warp_specialized();
  void consume_program();
  void with_tile_pipelines();
  /// Copies of the tiles that a region loads, and the scalars that their addresses depend on.
  void produce_tiles(const Region& region);
  bool is_in_pipeline(OpId load) const;
  /// Whether two warpgroups issue their matmuls in turn.
  bool takes_turns() const;
  void end_turn();
  /// Whether a warpgroup may keep its turn during an instruction, which waits for no other
  /// warpgroup.
  static bool keeps_turn(const Instruction& instruction);
  /// Releases the tiles whose last matmuls have been waited for.
  void release_tiles_after(OpId id);
  void release_tiles_of(const std::vector<Fragment>& matmuls);

  const ScheduledKernel& scheduled_;
  const PlannedKernel& planned_;
  const Kernel& kernel_;
  const Plan& plan_;
  const BlockMapping& mapping_;

  Body* body_ = nullptr;
  SharedStack shared_;
  AccessOrder accesses_;
  bool is_unordered_ = false;  // accesses of rows in parts are ordered by their passes
  std::set<std::pair<ValueId, Layout>> fragments_;
  /// What is available until the end of a region.
  struct Scope {
    std::vector<std::pair<ValueId, Layout>> fragments = {};
    std::vector<ValueId> held = {};
    std::int64_t held_bytes = 0;
  };
  std::vector<Scope> scopes_;
  std::set<OpId> epilogue_;
  std::map<ValueId, Layout> packed_;  // tiles that stay packed until a reduction
  std::vector<OpenReduction> open_reductions_;

  struct PendingMatmul {
    ValueId id = 0;
    Layout layout;
    std::size_t group = 0;  // number of groups committed up to this one
  };
  std::vector<PendingMatmul> pending_matmuls_;
  std::size_t groups_ = 0;
  std::set<OpId> next_iteration_;  // matmuls of this loop that overlap with its next iteration
  std::optional<OpId> prefetching_loop_;  // this loop, if its copies start after such a matmul
  std::set<ValueId> in_buffers_;          // tiles that are in shared memory only
  std::set<ValueId> held_;                // first operands of matmuls that are there too
  std::vector<OpId> loops_;               // that are being lowered, the innermost one last
  bool has_turn_ = false;                 // of the warpgroups that issue matmuls

  ProgramDependences dependences_;
  std::map<OpId, KnownAccess> known_accesses_;
  std::map<OpId, PrefetchBuffer> prefetch_buffers_;
  std::set<OpId> constants_;  // loads of read-only memory
  bool is_masked_ = false;
  std::optional<std::pair<OpId, RowCache>> cache_;
  std::optional<std::int64_t> cache_offset_;
  std::int64_t own_bytes_ = 0, more_bytes_ = 0;
  std::optional<Diagnostic> error_;
};

}  // namespace tessera::tile::gpu
