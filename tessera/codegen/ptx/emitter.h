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

namespace tessera::codegen::ptx {

using tile::gpu::Ahead;
using tile::gpu::contiguous_axis;
using tile::gpu::Plan;
using tile::gpu::Planned;
using tile::gpu::Product;
using tile::gpu::Ring;
using tile::gpu::run_of;
using tile::gpu::Sure;

/// The integers of so many bytes.
inline DType word_type(int width) {
  return width == 1 ? DType::I8 : width == 2 ? DType::I16 : DType::I32;
}

/// Emits the body of a kernel: what each thread does. One method per kind of operation.
///
/// Numbers are the same in every thread; branches and loops depend on numbers alone, so that all
/// threads of a block take the same way, and barriers may stand anywhere between operations.
class Emitter {
 public:
  Emitter(const tile::gpu::Scheduled& scheduled, const PtxOptions& options,
          llvm::Function& function);

  Expected<Done> emit();
  /// Of shared memory, by what was emitted.
  tile::gpu::Taken taken() const {
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
  /// The registers of a tile in a layout: those at hand, converted, or made anew.
  Pieces tile(ValueId id, const Layout& layout);
  Pieces tile_at_home(ValueId id) { return tile(id, home(id)); }
  Layout home(ValueId id) const;
  void define(ValueId id, const Layout& layout, Pieces registers);
  void define(ValueId id, llvm::Value* number) { scalars_[id] = number; }
  Pieces made(ValueId id, const Layout& layout);
  /// The result of an operation that is done element by element, from some registers of operands.
  Pieces computed(const Operation& op, const std::function<Pieces(ValueId)>& operand);
  llvm::Value* constant(const tile::Type& type, const tile::Literal& literal);
  llvm::Value* pid(tile::Code code, std::int64_t axis);
  llvm::Value* kernel_programs();  // along axis 0; npid is those of the grid

  // what is made where one store wants it
  void find_late(const tile::Region& region);
  bool is_late(ValueId id) const;
  /// Has at hand, in a layout, all that a tile is made of there.
  void prepare(ValueId id, const Layout& layout);
  /// Some registers of a tile that has been prepared; `known`: of others, computed on the way.
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
  /// All registers of several values, tiles in the homes of others; and back.
  Pieces flat(const std::vector<ValueId>& values, const std::vector<ValueId>& homes);
  void bind(const std::vector<ValueId>& ids, const Pieces& registers);
  std::vector<llvm::PHINode*> carry(const Pieces& start, llvm::BasicBlock* from);
  Pieces yields(const tile::Region& region, const std::vector<ValueId>& homes);
  /// What the one or the other computes.
  using Way = std::function<Pieces()>;
  Pieces either(llvm::Value* condition, const Way& then, const Way& otherwise);
  void loop(const Operation& op);
  void while_loop(const Operation& op);
  void branch(const Operation& op);

  // loops that copy ahead
  /// Whether 16 bytes can be copied at once in every round, and whether none leaves its view too.
  struct Fits {
    llvm::Value *aligned = nullptr, *whole = nullptr;
  };
  Fits how_it_fits(const Operation& op, const Ahead& ahead);
  struct Copy {
    llvm::Value* index;
    llvm::Value* stage;
    Fits fits;
  };
  void copy_ahead(const Operation& op, const Ahead& ahead, const Copy& copy);
  enum class CopiedBy : std::uint8_t { Chunks, Elements };
  void copy_round(const Operation& op, const Ahead& ahead, const Copy& copy,
                  const std::function<void(CopiedBy)>& then);
  /// Where the copies of a round begin.
  struct Origin {
    const View& view;
    tile::Extents shape;             // as it is held: powers of two
    std::vector<llvm::Value*> ends;  // where the view or the tile ends, on each axis
    SharedOperand operand;           // base: of the stage
    std::size_t column;
    std::vector<llvm::Value*> start;  // on each axis
    std::vector<bool> inside;         // known to be, all that is held
    bool even;                        // no chunk lies across the end of a row

    std::int64_t per_row() const { return operand.row_bytes() / kChunk; }
    std::int64_t chunks() const { return operand.rows * per_row(); }
    std::int64_t elements() const { return kChunk / operand.width; }
    /// Bits of a row's number below those of an axis.
    int shift(std::size_t axis) const {
      int bits = 0;
      for (std::size_t i = shape.size(); i-- > axis + 1;)
        if (i != column) bits += index_bits(shape[i]);
      return bits;
    }
  };
  Origin origin_of(const Operation& op, const Ring& ring, const Copy& copy);
  void copy_chunks(const Origin& source, bool whole);
  void copy_elements(const Origin& source);
  void copy_in_turn(const Origin& source);
  llvm::Value* scalar_at(const Operation& loop, ValueId id, llvm::Value* index);
  /// From where to where a loop goes. A step of 0 or less leaves no round.
  struct Span {
    llvm::Value *from, *to, *step;
    bool may_wrap;  // whether an index beyond the end may be too large for its type
  };
  Span span_of(const Operation& loop);
  int most_bits(ValueId id) const;
  /// The index some rounds later; the end of the loop where that is beyond it and might wrap.
  llvm::Value* later(const Span& span, llvm::Value* index, int rounds);
  Pieces rounds(const Operation& op, const Ahead* ahead);
  Pieces all_finished(const Operation& op, const Ahead& ahead, Pieces carried);

  // blocks that run program after program
  /// Programs from the `first` on, each `step`-th, below `count`: i64.
  struct Turns {
    llvm::Value *count, *first, *step;
  };
  /// One after the other, each as program_; the function ends after the last.
  void for_programs(const Turns& turns, const std::function<void()>& body);

  // threads that copy, and threads that compute
  /// A ring that some threads fill while the others read it. What tells both where they are are two
  /// barriers for each stage: all has arrived, and all have left.
  struct Roles : tile::gpu::Roles {
    llvm::Value* mapped = nullptr;       // whether the maps could be made; null: there are none
    std::int64_t arrived = 0, left = 0;  // barriers in shared memory
    std::int64_t turns = 0;              // barriers of teams
    llvm::Value *stage = nullptr, *phase = nullptr, *turn = nullptr;  // slots
  };
  void by_roles(llvm::Value* count);
  void skip_rounds(llvm::Value* program);
  void place_ring(std::int64_t offset);
  void fill_ring();
  void copy_boxes(const Operation& op, const Copy& copy, llvm::Value* arrived);
  void compute_program();
  void compute(const Turns& all);
  llvm::Value* stage_barrier(std::int64_t first, llvm::Value* stage);
  llvm::Value* arrived_stage();
  void leave_stage(llvm::Value* condition);
  void to_next_stage();
  /// Teams go through the ring one after the other.
  void await_turn();
  void pass_turn();
  bool filled_by_others(const Operation& loop) const;

  /// Where an access to a view lies.
  struct Place {
    const Operation* op;
    Layout layout;
    tile::Extents shape;
    DType dtype;
    int axis = 0, run = 1;  // elements that one access takes along an axis, if `aligned`
    llvm::Value* aligned = nullptr;
    llvm::Value* address = nullptr;  // of the thread's first register, i64
    llvm::Value* base = nullptr;     // of the view
    std::vector<llvm::Value*> start, first, extents, strides;  // of the tile, of the thread
  };

  // blocks that copy the rows of their next programs
  /// A load that is copied for the next program (tile/gpu/programs.h).
  struct Stream {
    std::int64_t offset = 0, slot = 0;  // in shared memory; bytes of one program
    bool fixed = false;
  };
  void each_program(llvm::Value* count);
  std::set<tile::OpId> arithmetic(tile::gpu::ByProgram by);
  void copy_stream(const Operation& op, const Stream& stream);
  void take_stream(const Operation& op, const Stream& stream);
  llvm::Value* own_slot(const Stream& stream, const Place& place, int reg);

  /// All twice: for accesses that are aligned and inside of their views, without branches, so that
  /// loads are in flight together; and for others.
  void by_versions();
  std::map<tile::OpId, Sure> sure_;
  const Sure* sure_of(const Operation& op) const;
  /// Rows of 16-bit numbers as memory has them: half of the registers that they would take in f32.
  struct Packed {
    Layout layout;
    Pieces runs;
    DType dtype;
    int run;
    llvm::Value* base;  // of the view
  };
  std::map<ValueId, Packed> packed_;
  void keep_packed(ValueId id, const Packed& packed);
  /// What is at hand of them in other types is forgotten and made anew where it is used.
  void unpack_again();
  llvm::Value* is_aligned(const Operation& op, int run);

  // rows that are read in parts
  /// What is done with each part of a row before the next reduction is known.
  struct Pass {
    std::vector<tile::OpId> before = {};  // once, for all parts
    std::vector<tile::OpId> inside = {};  // for each part
    std::vector<tile::OpId> folds = {};   // of those, what joins parts
    std::optional<tile::OpId> store = {};
    std::vector<tile::OpId> after = {};  // what is written beside the row
  };
  std::vector<Pass> find_passes() const;
  /// How the rows of a program lie: accesses are aligned; those of rows that the program alone has
  /// are, if parts begin a few elements before the row; nothing is known.
  enum class Lies : std::uint8_t { Aligned, Alike, Anyhow };
  /// `before`: those elements. `meets`: what is written lies, in part, on what is read.
  struct RowPlaces {
    llvm::Value *aligned = nullptr, *alike = nullptr, *whole = nullptr, *before = nullptr;
    llvm::Value *meets = nullptr, *backwards = nullptr;
  };
  struct Row {
    llvm::Value *first = nullptr, *end = nullptr;  // addresses
    int width = 0;
  };
  RowPlaces row_places(const std::vector<Pass>& passes);
  llvm::Value* row_address(const Operation& op);
  llvm::Value* is_multiple_of(llvm::Value* number, int power);
  bool is_fixed(const Operation& op) const;  // the same for all programs
  std::set<tile::OpId> constants_;           // loads of what nobody writes
  std::map<tile::OpId, Row> rows_;
  void by_passes();
  void run_passes(const std::vector<Pass>& passes, const RowPlaces& places, Lies how);
  /// Parts first, first + step, … `masked`: some elements may lie outside of the row. `in_turn`:
  /// all threads read before any writes.
  struct PartRounds {
    llvm::Value *first, *step, *count;  // i32
    bool masked = false, in_turn = false;
    llvm::Value* before = nullptr;
  };
  Pieces part_rounds(const Pass& pass, const PartRounds& rounds, const Pieces& start);
  std::map<tile::OpId, Sure> sure_of_parts(const Pass& pass, Lies how, bool whole);
  /// A load whose runs stay in shared memory for the passes after the first: how many parts.
  struct Kept {
    tile::OpId load = 0;
    std::int64_t parts = 0;
    bool all = false, filled = false;
  };
  std::optional<Kept> kept_;
  std::optional<std::int64_t> kept_offset_;
  void keep_rows(const Pass& pass);
  /// A part joined with what a thread has of those before; and what all threads have, joined.
  llvm::Value* fold_part(const Operation& op, llvm::Value* carried);
  void finish_parts(const Pass& pass, const Pieces& joined);
  llvm::Value* neutral(const Operation& op);
  DType part_type(const Operation& fold) const;  // sums of 16-bit floats are carried in f32
  /// The axis of an access along which it is cut.
  std::optional<int> cut_axis(const Operation& op) const;
  llvm::Value* in_row(const Layout& layout, int axis, int reg);  // which element of it
  llvm::Value* within_row(const Layout& layout, int axis, int reg);
  llvm::Value* part_ = nullptr;  // its number, i32
  bool masked_ = false, unordered_ = false;

  // memory
  void vload(const Operation& op);
  void vstore(const Operation& op);
  void load(const Operation& op);
  void store(const Operation& op);
  void atomic(const Operation& op);
  Place place_of(const Operation& op, const tile::Extents& shape);
  bool goes_through_shared(const Place& place, ValueId x) const;
  void store_through_shared(const Place& place, ValueId x);
  /// What a warp holds of a tile, when it has whole boxes of it that are one line of memory wide.
  struct WarpBox {
    Layout held;                         // the box in a warp, and its part in each register
    std::vector<std::size_t> bits = {};  // of registers that are not the box's: which box
    std::int64_t rows = 0, columns = 0;
  };
  std::optional<WarpBox> warp_box(const Place& place, const Layout& from) const;
  void store_by_warps(const Place& place, const WarpBox& box, ValueId x);
  /// Whether the kernel says that no element leaves the view along an axis.
  static bool is_known_inside(const Place& place, std::size_t axis);
  llvm::Value* within(const Place& place, int reg);
  llvm::Value* address(const Place& place, int reg);
  /// Both ways of an access: by runs, where it is aligned, and by elements.
  Pieces by_runs(const Place& place, const std::function<Pieces(int run)>& access);
  llvm::Value* loaded_run(const Place& place, int reg, int run, llvm::Value* pad);
  /// Whether some of a run is in the row; whether all of it is.
  llvm::Value* touches_row(const Place& place, int reg, int run);
  llvm::Value* is_in_row(const Place& place, int reg, int run);
  /// Runs as memory has them, from shared memory where they are kept there.
  Pieces kept_runs(const Place& place, const Way& from_memory);
  /// Runs of 16 bytes at places that are aligned for one element alone.
  bool may_lie_anywhere(const Place& place) const;
  llvm::Value* loaded_anywhere(const Place& place, int reg);
  llvm::Value* from_two_words(llvm::Value* low, llvm::Value* high, llvm::Value* bytes, int width);
  llvm::Value* global(llvm::Value* address);
  llvm::Value* nowhere();
  /// What an operation does to global memory. `known`: to a view of one axis, without gaps, so that
  /// a thread's elements follow from `at` and the layout.
  struct Access {
    bool writes = false, known = false;
    ValueId view = {};
    std::vector<ValueId> at = {};
    std::optional<Layout> layout = {};
    bool operator==(const Access&) const = default;
  };
  Access access_of(const Operation& op) const;
  /// Writes a barrier before an access that may meet an earlier one of another thread.
  void in_order(const Access& access);
  /// To follow an access before which, after in_order, barriers may have been written.
  void accessed(const Access& access);
  /// Whether two known accesses of the same indices meet where threads hold different ones.
  llvm::Value* overlap(const Access& a, const Access& b);
  void forget_accesses(bool writes);
  bool any_writes(const Operation& op) const;

  // along axes
  void reduce(const Operation& op);
  /// Reductions whose parts are exchanged between warps together.
  std::vector<Fold> folds_;
  void finish_folds();
  void fold_lanes(Fold& fold, int bit);
  void scan(const Operation& op);
  using Elements = std::vector<llvm::Value*>;
  void exchange_parts(std::map<int, Elements>& parts, const std::vector<DType>& types, int bit);
  /// What a sum adds up, where that is products: one is added to another without being rounded.
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

  // products
  void dot(const Operation& op);
  void dot_scalars(const Operation& op);
  void dot_matrix(const Operation& op, Product product);
  void dot_warpgroups(const Operation& op, Product product);
  /// Before others read by wgmma what this thread wrote: to be followed by a barrier.
  void publish() { block_.special("fence.proxy.async", {}); }
  /// The registers once all products of this thread but the last `pending` are done.
  Pieces finished(const Pieces& registers, std::size_t pending);
  /// Products by warpgroups that have begun: their sums are waited for where they are read.
  struct Flight {
    ValueId id = 0;
    Layout layout;
    std::size_t group = 0;  // how many had begun, this one included
    Pieces held = {};       // what it reads in registers
  };
  void settle(ValueId id);
  void settle_all();
  /// The operand where it lies in shared memory, or from registers put there.
  std::vector<SharedOperand> operands_in_shared(const Operation& op, Product product,
                                                bool first_in_registers);
  /// Whether it only names, in another way, a tile that is in shared memory: then the result is
  /// too.
  bool names_shared(const Operation& op);
  /// The first operand in the layout of fragments, if it is at home there or has been brought
  /// there; null otherwise. `bring`: before a loop that multiplies it again and again.
  std::optional<Pieces> fragments(const Operation& dot);
  void bring(const Operation& loop);
  void clear(const SharedOperand& operand);
  void put_operand(const SharedOperand& operand, const Layout& layout, const Pieces& registers,
                   const tile::Extents* shape);
  llvm::Value* swizzled(const SharedOperand& operand, llvm::Value* row, llvm::Value* chunk);
  struct Fragments;

  const Planned& planned_;
  const tile::Kernel& kernel_;
  const Plan& plan_;
  const PtxOptions& options_;
  const tile::gpu::Shape& shape_;
  Block block_;
  llvm::IRBuilder<>& ir_;
  const std::vector<std::optional<tile::OpId>>& definitions_;
  const std::vector<int>& uses_;
  std::set<tile::OpId> late_;  // done element by element, for one store
  std::vector<llvm::Value*> scalars_;
  std::map<ValueId, View> views_;
  std::map<std::pair<ValueId, Layout>, Pieces> tiles_;
  std::map<ValueId, SharedOperand> operands_;  // tiles that are in shared memory alone
  std::map<tile::OpId, llvm::Value*> rings_;   // by load: where its ring begins
  std::vector<std::vector<std::pair<ValueId, Layout>>> scopes_;
  std::vector<Access> accesses_;  // since the last barrier
  int ordered_at_ = 0;            // barriers when the first of them was written
  bool wrote_ = false;
  int stages_ = 0;
  std::set<tile::OpId> pending_;  // of the loop that is written
  std::vector<Flight> flights_;
  std::size_t groups_ = 0;  // of products that have begun
  std::int64_t own_bytes_ = 0, more_bytes_ = 0;
  llvm::Value* program_ = nullptr;  // of a block that loops
  llvm::Value* slot_ = nullptr;     // where its loads lie
  std::map<tile::OpId, Stream> streams_;
  std::optional<Roles> roles_;
  tile::gpu::Courses courses_;
  std::optional<Diagnostic> error_;
};

}  // namespace tessera::codegen::ptx
