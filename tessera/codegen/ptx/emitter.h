#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tessera/codegen/ptx/block.h"
#include "tessera/codegen/ptx/fold.h"
#include "tessera/codegen/ptx/ptx.h"
#include "tessera/codegen/ptx/shared_operand.h"
#include "tessera/support/expected.h"
#include "tessera/tile/gpu/programs.h"
#include "tessera/tile/gpu/schedule.h"
#include "tessera/tile/kernel.h"
#include "tessera/tile/passes/facts.h"

namespace tessera::codegen::ptx {

using tile::gpu::contiguous_axis;
using tile::gpu::KnownAccess;
using tile::gpu::LoopPipeline;
using tile::gpu::MatmulInstruction;
using tile::gpu::Plan;
using tile::gpu::PlannedKernel;
using tile::gpu::run_of;
using tile::gpu::StagedOperand;

/// Integer dtype of a width in bytes.
inline DType word_type(int width) {
  return width == 1 ? DType::I8 : width == 2 ? DType::I16 : DType::I32;
}

/// Emitter of LLVM IR for a GPU kernel: the code of each thread, one method per kind of operation.
///
/// Scalars are uniform over the block; branches and loops depend on scalars only, so control flow
/// is uniform and barriers may be placed between any two operations.
class Emitter {
 public:
  Emitter(const tile::gpu::ScheduledKernel& scheduled, const PtxOptions& options,
          llvm::Function& function);

  Expected<Done> emit();
  /// Shared memory that the emitted code uses.
  tile::gpu::SharedMemoryUse shared_memory_use() const {
    return {.bytes = block_.shared_bytes() + more_bytes_,
            .own_bytes = own_bytes_,
            .exchanges = block_.exchanges()};
  }

 private:
  using ValueId = tile::ValueId;
  using Operation = tile::Operation;
  struct View {
    llvm::Value* base = nullptr;  // i64
    std::vector<llvm::Value*> extents, strides;
  };

  // values
  llvm::Value* scalar(ValueId id) const { return scalars_[id]; }
  const View& view(ValueId id) const { return views_.at(id); }
  const tile::Type& type(ValueId id) const { return kernel_.type(id); }
  DType dtype(ValueId id) const;
  /// Registers of a tile in a layout: existing, converted, or rematerialized.
  Pieces tile(ValueId id, const Layout& layout);
  Pieces tile_at_home(ValueId id) { return tile(id, home(id)); }
  Layout home(ValueId id) const;
  void define(ValueId id, const Layout& layout, Pieces registers);
  void define(ValueId id, llvm::Value* number) { scalars_[id] = number; }
  Pieces made(ValueId id, const Layout& layout);
  /// Result of an elementwise operation on registers of its operands.
  Pieces computed(const Operation& op, const std::function<Pieces(ValueId)>& operand);
  llvm::Value* constant(const tile::Type& type, const tile::Literal& literal);
  llvm::Value* pid(tile::Code code, std::int64_t axis);
  llvm::Value* kernel_programs();  // along axis 0; npid is those of the grid

  // epilogues: tiles that are computed element by element for one store
  void find_epilogues(const tile::Region& region);
  bool is_in_epilogue(ValueId id) const;
  /// Makes the operands that an epilogue reads available in a layout.
  void prepare(ValueId id, const Layout& layout);
  /// Some registers of an epilogue's tile that has been prepared; `known`: cache of intermediate
  /// values.
  Pieces part(ValueId id, const Layout& layout, const std::vector<std::size_t>& registers,
              std::map<ValueId, Pieces>& known);

  // regions
  void open_scope() { scopes_.emplace_back(); }
  void close_scope();
  void bind_params();
  void region(const tile::Region& region);
  void operation(const Operation& op);
  Pieces elementwise(const Operation& op, std::vector<Pieces> operands);
  void fail(const Operation& op, const std::string& message);

  // control
  /// Registers of several values, concatenated, with tiles in the layouts of other values; and
  /// back.
  Pieces flat(const std::vector<ValueId>& values, const std::vector<ValueId>& homes);
  void bind(const std::vector<ValueId>& ids, const Pieces& registers);
  std::vector<llvm::PHINode*> carry(const Pieces& start, llvm::BasicBlock* from);
  Pieces yields(const tile::Region& region, const std::vector<ValueId>& homes);
  /// Emits two branches and merges their results.
  using BranchBody = std::function<Pieces()>;
  Pieces either(llvm::Value* condition, const BranchBody& then, const BranchBody& otherwise);
  void loop(const Operation& op);
  void while_loop(const Operation& op);
  void branch(const Operation& op);

  // software-pipelined loops
  /// Run-time properties of the copies of all iterations: 16-byte aligned, and all in bounds too.
  struct CopyConditions {
    llvm::Value *aligned = nullptr, *whole = nullptr;
  };
  CopyConditions copy_conditions(const Operation& op, const LoopPipeline& pipeline);
  struct Copy {
    llvm::Value* index;
    llvm::Value* stage;
    CopyConditions fits;
  };
  void prefetch_iteration(const Operation& op, const LoopPipeline& pipeline, const Copy& copy);
  enum class CopiedBy : std::uint8_t { Chunks, Elements };
  void copy_iteration(const Operation& op, const LoopPipeline& pipeline, const Copy& copy,
                      const std::function<void(CopiedBy)>& then);
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
  Origin origin_of(const Operation& op, const StagedOperand& staged, const Copy& copy);
  void copy_chunks(const Origin& source, bool whole);
  void copy_elements(const Origin& source);
  void copy_in_turn(const Origin& source);
  llvm::Value* scalar_at(const Operation& loop, ValueId id, llvm::Value* index);
  /// Range of a loop. A step of 0 or less leaves no iteration.
  struct LoopRange {
    llvm::Value *from, *to, *step;
    bool may_wrap;  // whether an index beyond the end may be too large for its type
  };
  LoopRange loop_range(const Operation& loop);
  int most_bits(ValueId id) const;
  /// Index some iterations later; the end of the loop where that is beyond it and might wrap.
  llvm::Value* later(const LoopRange& range, llvm::Value* index, int iterations);
  Pieces emit_iterations(const Operation& op, const LoopPipeline* pipeline);
  Pieces all_finished(const Operation& op, const LoopPipeline& pipeline, Pieces carried);

  // persistent blocks
  /// Programs of a persistent block: from `first` on, each `step`-th, below `count`; i64.
  struct ProgramRange {
    llvm::Value *count, *first, *step;
  };
  /// Emits the loop over programs, each as program_; the function ends after the last.
  void for_programs(const ProgramRange& programs, const std::function<void()>& body);

  // warp specialization
  /// Warp specialization of the kernel: producers fill the multi-stage buffers while consumers read
  /// them. Two mbarriers per stage synchronize them: full (data arrived) and empty (consumers
  /// left).
  struct WarpSpecialization : tile::gpu::WarpSpecialization {
    llvm::Value* mapped = nullptr;     // whether tensor maps could be encoded; null: no maps
    std::int64_t full = 0, empty = 0;  // mbarriers in shared memory: full, empty
    std::int64_t order = 0;            // mbarriers that order the consumer groups
    llvm::Value *stage = nullptr, *phase = nullptr, *order_phase = nullptr;  // slots
  };
  void emit_warp_specialized(llvm::Value* count);
  void skip_iterations(llvm::Value* program);
  void place_stages(std::int64_t offset);
  void fill_stages();
  void copy_boxes(const Operation& op, const Copy& copy, llvm::Value* arrived);
  void compute_program();
  void compute(const ProgramRange& all);
  llvm::Value* stage_barrier(std::int64_t first, llvm::Value* stage);
  llvm::Value* full_stage();
  void release_stage(llvm::Value* condition);
  void to_next_stage();
  /// Orders the consumer groups, which run the loop one after the other (ping-pong).
  void wait_for_order();
  void signal_next_group();
  bool filled_by_producers(const Operation& loop) const;

  /// Address computation of an access to a view.
  struct Place {
    const Operation* op;
    Layout layout;
    tile::Extents shape;
    DType dtype;
    int axis = 0, run = 1;  // elements per vector access along an axis, if `aligned`
    llvm::Value* aligned = nullptr;
    llvm::Value* address = nullptr;  // of the thread's first register, i64
    llvm::Value* base = nullptr;     // of the view
    std::vector<llvm::Value*> start, first, extents, strides;  // of the tile, of the thread
  };

  // persistent blocks that prefetch the rows of their next programs
  /// A load that is prefetched for the next program (tile/gpu/programs.h).
  struct PrefetchBuffer {
    std::int64_t offset = 0, slot = 0;  // in shared memory; bytes of one program
    bool fixed = false;
  };
  void each_program(llvm::Value* count);
  std::set<tile::OpId> arithmetic(tile::gpu::ProgramDependence by);
  void prefetch_load(const Operation& op, const PrefetchBuffer& buffer);
  void take_prefetched(const Operation& op, const PrefetchBuffer& buffer);
  llvm::Value* own_slot(const PrefetchBuffer& buffer, const Place& place, int reg);

  /// Emits two versions of the kernel: for accesses that are aligned and in bounds, without
  /// branches, so that loads overlap; and the general one.
  void by_versions();
  std::map<tile::OpId, KnownAccess> known_accesses_;
  const KnownAccess* known_access_of(const Operation& op) const;
  /// Rows of 16-bit elements kept packed as loaded: half of the registers that they need in f32.
  struct Packed {
    Layout layout;
    Pieces runs;
    DType dtype;
    int run;
    llvm::Value* base;  // of the view
  };
  std::map<ValueId, Packed> packed_;
  void keep_packed(ValueId id, const Packed& packed);
  /// Drops unpacked copies of packed rows; they are unpacked again where they are used.
  void unpack_again();
  llvm::Value* is_aligned(const Operation& op, int run);

  // rows that are processed in several passes over parts
  /// One pass over the parts of a row, up to the next reduction result.
  struct Pass {
    std::vector<tile::OpId> before = {};  // once, before the parts
    std::vector<tile::OpId> inside = {};  // for each part
    std::vector<tile::OpId> folds = {};   // reductions among those, combined over the parts
    std::optional<tile::OpId> store = {};
    std::vector<tile::OpId> after = {};  // stores besides the row
  };
  std::vector<Pass> find_passes() const;
  /// Alignment of the rows of a program: all accesses are aligned; accesses to rows of this program
  /// alone are aligned if parts start a few elements before the row; unknown.
  enum class RowAlignment : std::uint8_t { Aligned, Shifted, Unknown };
  /// Run-time properties of the rows. `before`: number of those elements. `meets`: stored and
  /// loaded memory overlap.
  struct RowProperties {
    llvm::Value *aligned = nullptr, *shifted = nullptr, *whole = nullptr, *before = nullptr;
    llvm::Value *overlaps = nullptr, *backwards = nullptr;
  };
  struct Row {
    llvm::Value *first = nullptr, *end = nullptr;  // addresses
    int width = 0;
  };
  RowProperties row_properties(const std::vector<Pass>& passes);
  llvm::Value* row_address(const Operation& op);
  llvm::Value* is_multiple_of(llvm::Value* number, int power);
  bool is_fixed(const Operation& op) const;  // the same for all programs
  std::set<tile::OpId> constants_;           // loads of read-only memory
  std::map<tile::OpId, Row> rows_;
  void by_passes();
  void run_passes(const std::vector<Pass>& passes, const RowProperties& places, RowAlignment how);
  /// Iteration over the parts first, first + step, … `masked`: some elements may be outside of the
  /// row. `in_turn`: all threads load before any stores.
  struct PartLoop {
    llvm::Value *first, *step, *count;  // i32
    bool masked = false, in_turn = false;
    llvm::Value* before = nullptr;
  };
  Pieces part_loop(const Pass& pass, const PartLoop& range, const Pieces& start);
  std::map<tile::OpId, KnownAccess> known_accesses_of_parts(const Pass& pass, RowAlignment how,
                                                            bool whole);
  /// A load cached in shared memory for the passes after the first: how many parts.
  struct CachedRows {
    tile::OpId load = 0;
    std::int64_t parts = 0;
    bool all = false, filled = false;
  };
  std::optional<CachedRows> cached_;
  std::optional<std::int64_t> cached_offset_;
  void cache_rows(const Pass& pass);
  /// Combines a part with a thread's partial result; combines the partial results of all threads.
  llvm::Value* fold_part(const Operation& op, llvm::Value* carried);
  void finish_parts(const Pass& pass, const Pieces& joined);
  llvm::Value* neutral(const Operation& op);
  DType part_type(const Operation& fold) const;  // 16-bit floats are summed in f32
  /// Axis of an access that is cut into parts.
  std::optional<int> cut_axis(const Operation& op) const;
  llvm::Value* in_row(const Layout& layout, int axis, int reg);  // index of the element in the row
  llvm::Value* within_row(const Layout& layout, int axis, int reg);
  llvm::Value* part_ = nullptr;  // index of the part, i32
  bool masked_ = false, unordered_ = false;

  // memory
  void vload(const Operation& op);
  void vstore(const Operation& op);
  const std::vector<tile::Facts>& facts();
  std::int64_t view_alignment(ValueId view);
  /// Elements per vector access of a load or store through pointers.
  int pointer_run(const Operation& op, const Layout& layout);
  void load(const Operation& op);
  void store(const Operation& op);
  void atomic(const Operation& op);
  Place place_of(const Operation& op, const tile::Extents& shape);
  bool goes_through_shared(const Place& place, ValueId x) const;
  void store_through_shared(const Place& place, ValueId x);
  /// Box of a tile that a warp holds, where its rows are one cache line wide.
  struct WarpBox {
    Layout held;                         // layout of the box in a warp
    std::vector<std::size_t> bits = {};  // register bits that select the box
    std::int64_t rows = 0, columns = 0;
  };
  std::optional<WarpBox> warp_box(const Place& place, const Layout& from) const;
  void store_by_warps(const Place& place, const WarpBox& box, ValueId x);
  struct WarpStore;
  /// Whether the kernel marks the access as in bounds along an axis.
  static bool is_known_inside(const Place& place, std::size_t axis);
  llvm::Value* within(const Place& place, int reg);
  llvm::Value* address(const Place& place, int reg);
  /// Emits both versions of an access: by vectors, where it is aligned, and by elements.
  Pieces by_runs(const Place& place, const std::function<Pieces(int run)>& access);
  llvm::Value* loaded_run(const Place& place, int reg, int run, llvm::Value* pad);
  /// Whether some elements of a vector are in the row; whether all are.
  llvm::Value* touches_row(const Place& place, int reg, int run);
  llvm::Value* is_in_row(const Place& place, int reg, int run);
  /// Vectors as loaded, from shared memory where they are cached there.
  Pieces cached_runs(const Place& place, const BranchBody& from_memory);
  /// Vectors of 16 bytes at addresses that are aligned to one element only.
  bool may_be_unaligned(const Place& place) const;
  llvm::Value* load_unaligned(const Place& place, int reg);
  llvm::Value* from_two_words(llvm::Value* low, llvm::Value* high, llvm::Value* bytes, int width);
  llvm::Value* global(llvm::Value* address);
  llvm::Value* nowhere();
  /// Effect of an operation on global memory. `known`: on a contiguous view of one axis, so that a
  /// thread's elements follow from `at` and the layout.
  struct Access {
    bool writes = false, known = false;
    ValueId view = {};
    std::vector<ValueId> at = {};
    std::optional<Layout> layout = {};
    bool operator==(const Access&) const = default;
  };
  Access access_of(const Operation& op) const;
  /// Emits a barrier before an access that may conflict with an earlier one of another thread.
  void in_order(const Access& access);
  /// Records an access, after in_order.
  void accessed(const Access& access);
  /// Whether two known accesses with the same indices overlap where different threads hold the
  /// elements.
  llvm::Value* overlap(const Access& a, const Access& b);
  void forget_accesses(bool writes);
  bool any_writes(const Operation& op) const;

  // reductions, scans and data movement
  void reduce(const Operation& op);
  /// Reductions whose partial results are exchanged between warps together.
  std::vector<Fold> folds_;
  void finish_folds();
  void fold_lanes(Fold& fold, int bit);
  void scan(const Operation& op);
  struct Scan;
  using Elements = std::vector<llvm::Value*>;
  void exchange_parts(std::map<int, Elements>& parts, const std::vector<DType>& types, int bit);
  /// Factors of a sum of products, which is computed by fma.
  struct Factors {
    Pieces a, b;
    llvm::Value* plus(llvm::IRBuilderBase& ir, std::size_t reg, llvm::Value* other) const {
      return ir.CreateIntrinsic(llvm::Intrinsic::fma, {other->getType()}, {a[reg], b[reg], other});
    }
  };
  std::optional<Factors> factors_of(const Operation& sum, const Layout& layout);
  Elements combine(const Operation& op, const Elements& left, const Elements& right);
  Elements joined(const Operation& op, bool padded, const Elements& left, const Elements& right);
  void gather(const Operation& op);
  void concat(const Operation& op);
  void slice(const Operation& op);
  void reshape(const Operation& op);

  // matmuls
  void dot(const Operation& op);
  void dot_scalars(const Operation& op);
  void dot_matrix(const Operation& op, MatmulInstruction instruction);
  void dot_warpgroups(const Operation& op, MatmulInstruction instruction);
  /// Makes this thread's writes visible to wgmma; a barrier has to follow.
  void publish() { block_.special("fence.proxy.async", {}); }
  Pieces passed_through(const std::string& name, const Pieces& registers);
  /// Registers after all matmuls of this thread but the last `pending` are complete.
  Pieces finished(const Pieces& registers, std::size_t pending);
  /// An asynchronous wgmma in flight: its accumulators are waited for where they are read.
  struct PendingMatmul {
    ValueId id = 0;
    Layout layout;
    std::size_t group = 0;  // number of groups committed up to this one
    Pieces held = {};       // its operand in registers
  };
  void wait_for(ValueId id);
  void wait_for_all();
  /// Operands in shared memory; copied there from registers if needed.
  std::vector<SharedOperand> operands_in_shared(const Operation& op, MatmulInstruction instruction,
                                                bool first_in_registers);
  /// Whether an operation only reinterprets a tile in shared memory, so that the result is there
  /// too.
  bool names_shared(const Operation& op);
  /// First operand as register fragments, if its layout is that or it has been converted; none
  /// otherwise. `bring` converts it before a loop that reuses it.
  std::optional<Pieces> fragments(const Operation& dot);
  void bring(const Operation& loop);
  void clear(const SharedOperand& operand);
  void put_operand(const SharedOperand& operand, const Layout& layout, const Pieces& registers,
                   const tile::Extents* shape);
  llvm::Value* swizzled(const SharedOperand& operand, llvm::Value* row, llvm::Value* chunk);
  struct Fragments;
  struct MmaTile;

  const PlannedKernel& planned_;
  const tile::Kernel& kernel_;
  const Plan& plan_;
  const PtxOptions& options_;
  const tile::gpu::BlockMapping& mapping_;
  Block block_;
  llvm::IRBuilder<>& ir_;
  const std::vector<std::optional<tile::OpId>>& definitions_;
  const std::vector<int>& uses_;
  std::set<tile::OpId>
      epilogue_;  // epilogue operations: computed element by element, for one store
  std::vector<llvm::Value*> scalars_;
  std::vector<tile::Facts> facts_;  // by value, once one is asked for
  std::map<ValueId, View> views_;
  std::map<std::pair<ValueId, Layout>, Pieces> tiles_;
  std::map<ValueId, SharedOperand> operands_;         // tiles that are in shared memory only
  std::map<tile::OpId, llvm::Value*> stage_offsets_;  // by load: start of its multi-stage buffer
  std::vector<std::vector<std::pair<ValueId, Layout>>> scopes_;
  std::vector<Access> accesses_;  // since the last barrier
  int ordered_at_ = 0;            // number of barriers when the first of them was emitted
  bool wrote_ = false;
  int stages_ = 0;
  bool fast_quotients_ = false;   // f32 quotients within 2 ulp
  std::set<tile::OpId> pending_;  // matmuls in flight of the loop that is being emitted
  std::vector<PendingMatmul> pending_matmuls_;
  std::size_t groups_ = 0;  // number of wgmma groups committed
  std::int64_t own_bytes_ = 0, more_bytes_ = 0;
  llvm::Value* program_ = nullptr;  // current program of a persistent block
  llvm::Value* slot_ = nullptr;     // slot of its prefetched loads
  std::map<tile::OpId, PrefetchBuffer> prefetch_buffers_;
  std::optional<WarpSpecialization> specialization_;
  tile::gpu::ProgramDependences dependences_;
  std::optional<Diagnostic> error_;
};

}  // namespace tessera::codegen::ptx
