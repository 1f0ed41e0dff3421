#include <algorithm>

#include "tessera/codegen/ptx/emitter.h"
#include "tessera/codegen/ptx/functions.h"
#include "tessera/tile/passes/cut_rows.h"

// Multi-pass reductions for rows that exceed the registers of a block. Each reduction is a pass
// over the parts of the row, and so is the store; a pass reloads its inputs, from the caches.
// Threads reduce their own elements of all parts before they exchange partial results.

namespace tessera::codegen::ptx {

using tile::Code;

std::vector<Emitter::Pass> Emitter::find_passes() const {
  const tile::CutRows& cut = *mapping_.cut;
  std::map<ValueId, std::size_t> depths;    // number of reductions that a value depends on
  std::set<ValueId> moving = {cut.column};  // values that vary between parts
  std::vector<Pass> passes(1);
  std::optional<tile::OpId> store;
  std::vector<tile::OpId> after;
  for (const tile::OpId id : kernel_.body.ops) {
    const Operation& op = kernel_.ops[id];
    if (!op.out.empty() && op.out[0] == cut.column) continue;
    std::size_t depth = 0;
    bool moves = !op.out.empty() && cut.axes.contains(op.out[0]);
    for (const ValueId in : op.in) {
      if (const auto found = depths.find(in); found != depths.end())
        depth = std::max(depth, found->second);
      moves = moves || moving.contains(in);
    }
    if (passes.size() < depth + 1) passes.resize(depth + 1);
    if (op.code == Code::Reduce && moves) {
      passes[depth].folds.push_back(id);
      if (passes.size() < depth + 2) passes.resize(depth + 2);
      depths[op.out[0]] = depth + 1;
      continue;
    }
    for (const ValueId out : op.out) depths[out] = depth;
    if (op.code == Code::Vstore) {
      if (moves) {
        store = id;
      } else {
        after.push_back(id);
      }
    } else if (moves) {
      moving.insert(op.out.begin(), op.out.end());
    } else {
      passes[depth].before.push_back(id);
    }
  }
  // There are no loads after the first store.
  passes.back().store = store;
  passes.back().after = std::move(after);
  for (Pass& pass : passes) {
    std::set<ValueId> needed;
    const auto need = [&](tile::OpId id) {
      const Operation& op = kernel_.ops[id];
      needed.insert(op.in.begin(), op.in.end());
      pass.inside.push_back(id);
    };
    for (auto at = kernel_.body.ops.rbegin(); at != kernel_.body.ops.rend(); ++at) {
      const Operation& op = kernel_.ops[*at];
      const bool is_root = *at == pass.store ||
                           std::find(pass.folds.begin(), pass.folds.end(), *at) != pass.folds.end();
      const bool is_needed = !op.out.empty() && op.out[0] != cut.column &&
                             moving.contains(op.out[0]) && needed.contains(op.out[0]);
      if (is_root || is_needed) need(*at);
    }
    std::reverse(pass.inside.begin(), pass.inside.end());
  }
  return passes;
}

std::optional<int> Emitter::cut_axis(const Operation& op) const {
  if (mapping_.cut == nullptr) return {};
  const auto found = mapping_.cut->axes.find(op.code == Code::Vstore ? op.in.back() : op.out[0]);
  return found == mapping_.cut->axes.end() ? std::nullopt : std::optional(found->second);
}

// Comparison in 32 bits, which needs half of the instructions: rows are shorter, and a position
// before a row is large as an unsigned number.
llvm::Value* Emitter::in_row(const Layout& layout, int axis, int reg) {
  return ir_.CreateAdd(ir_.CreateTrunc(scalar(mapping_.cut->column), ir_.getInt32Ty()),
                       block_.index(layout, axis, reg));
}

llvm::Value* Emitter::within_row(const Layout& layout, int axis, int reg) {
  return ir_.CreateICmpULT(in_row(layout, axis, reg), block_.i32(mapping_.cut->extent));
}

llvm::Value* Emitter::touches_row(const Place& place, int reg, int run) {
  llvm::Value* last =
      ir_.CreateAdd(in_row(place.layout, *cut_axis(*place.op), reg), block_.i32(run - 1));
  return ir_.CreateICmpULT(last, block_.i32(mapping_.cut->extent + run - 1));
}

llvm::Value* Emitter::is_in_row(const Place& place, int reg, int run) {
  return ir_.CreateICmpULE(in_row(place.layout, *cut_axis(*place.op), reg),
                           block_.i32(mapping_.cut->extent - run));
}

llvm::Value* Emitter::fold_part(const Operation& op, llvm::Value* carried) {
  const int axis = static_cast<int>(op.ints[0]);
  const tile::Extents& shape = type(op.in[0]).shape;
  const std::optional<Layout>& given = plan_.home(op.in[0]);
  const Layout layout = given ? *given : plan_.standard(shape);
  Pieces level = tile(op.in[0], layout);
  const DType of = part_type(op);
  if (of != dtype(op.in[0])) level = emit_conversion(ir_, level, dtype(op.in[0]), of);
  if (masked_) {
    llvm::Value* none = neutral(op);
    for (int reg = 0; reg < layout.registers(); ++reg) {
      llvm::Value*& value = level[static_cast<std::size_t>(reg)];
      value = ir_.CreateSelect(within_row(layout, axis, reg), value, none);
    }
  }
  if (const auto factors = masked_ ? std::nullopt : factors_of(op, layout)) {
    Pieces upper;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2)
      upper.push_back(factors->plus(ir_, i, level[i + 1]));
    if (!upper.empty()) level = std::move(upper);
  }
  while (level.size() > 1) {  // a tree: short chains, small errors
    Pieces upper;
    for (std::size_t i = 0; i < level.size(); i += 2)
      upper.push_back(combine(op, {level[i]}, {level[i + 1]}).front());
    level = std::move(upper);
  }
  return combine(op, {carried}, {level.front()}).front();
}

llvm::Value* Emitter::neutral(const Operation& op) {
  const DType of = part_type(op);
  return constant(tile::Type::scalar(of), *tile::neutral_of(op.function, of));
}

Pieces Emitter::part_loop(const Pass& pass, const PartLoop& range, const Pieces& start) {
  const tile::CutRows& cut = *mapping_.cut;
  llvm::BasicBlock *before = ir_.GetInsertBlock(), *header = block_.block("parts"),
                   *body = block_.block("part"), *after = block_.block("row");
  ir_.CreateBr(header);
  ir_.SetInsertPoint(header);
  llvm::PHINode* number = ir_.CreatePHI(ir_.getInt32Ty(), 2);
  number->addIncoming(block_.i32(0), before);
  const std::vector<llvm::PHINode*> carried = carry(start, before);
  ir_.CreateCondBr(ir_.CreateICmpULT(number, range.count), body, after);

  ir_.SetInsertPoint(body);
  open_scope();
  const std::vector<llvm::Value*> scalars = scalars_;
  masked_ = range.masked;
  part_ = ir_.CreateAdd(range.first, ir_.CreateMul(number, range.step));
  llvm::Value* column =
      ir_.CreateMul(ir_.CreateSExt(part_, ir_.getInt64Ty()), block_.i64(cut.part));
  define(cut.column, range.before == nullptr ? column : ir_.CreateSub(column, range.before));
  Pieces next(carried.begin(), carried.end());
  for (const tile::OpId id : pass.inside) {
    if (error_) break;
    const Operation& op = kernel_.ops[id];
    if (op.code == Code::Reduce) {
      const auto which = std::find(pass.folds.begin(), pass.folds.end(), id) - pass.folds.begin();
      llvm::Value*& joined = next[static_cast<std::size_t>(which)];
      joined = fold_part(op, joined);
      continue;
    }
    const bool in_turn = op.code == Code::Vstore && range.in_turn;
    if (in_turn) block_.barrier();
    operation(op);
    if (in_turn) block_.barrier();
  }
  close_scope();
  accesses_.clear();
  scalars_ = scalars;
  masked_ = false;
  for (std::size_t i = 0; i < next.size(); ++i)
    carried[i]->addIncoming(next[i], ir_.GetInsertBlock());
  number->addIncoming(ir_.CreateAdd(number, block_.i32(1)), ir_.GetInsertBlock());
  ir_.CreateBr(header);
  ir_.SetInsertPoint(after);
  block_.forget();
  return {carried.begin(), carried.end()};
}

void Emitter::finish_parts(const Pass& pass, const Pieces& joined) {
  for (std::size_t i = 0; i < pass.folds.size(); ++i) {
    const Operation& op = kernel_.ops[pass.folds[i]];
    const int axis = static_cast<int>(op.ints[0]);
    const std::optional<Layout>& given = plan_.home(op.in[0]);
    const Layout layout = given ? *given : plan_.standard(type(op.in[0]).shape);
    const DType of = part_type(op);
    Fold fold{&op, layout.without(axis), {}, {}, {of}, {{joined[i]}}, false, of != dtype(op.in[0])};
    const std::vector<IndexBit>& bits = layout.thread_bits();
    for (int bit = 0; bit < static_cast<int>(bits.size()); ++bit)
      if (bits[static_cast<std::size_t>(bit)].axis == axis)
        (bit < kLaneBits ? fold.lane_bits : fold.warp_bits).push_back(bit);
    folds_.push_back(std::move(fold));
  }
  finish_folds();
}

void Emitter::run_passes(const std::vector<Pass>& passes, const RowProperties& places,
                         RowAlignment how) {
  const tile::CutRows& cut = *mapping_.cut;
  const std::vector<llvm::Value*> scalars = scalars_;
  const bool asks = how == RowAlignment::Unknown;
  const auto parts = [&](std::int64_t elements) {
    return block_.i32((elements + cut.part - 1) / cut.part);
  };
  // Parts in the middle of the row need no bounds checks; the others check each element, or each
  // access where rows start before a part does.
  llvm::Value *all = parts(cut.extent), *one = block_.i32(1), *none = block_.i32(0);
  PartLoop middle{.first = none, .step = one, .count = block_.i32(cut.extent / cut.part)};
  PartLoop rest{.first = middle.count, .step = one, .count = none, .masked = true};
  rest.count = ir_.CreateSub(all, middle.count);
  if (how == RowAlignment::Shifted) {
    llvm::Value* elements = ir_.CreateAdd(places.before, block_.i64(cut.extent + cut.part - 1));
    all = ir_.CreateTrunc(ir_.CreateUDiv(elements, block_.i64(cut.part)), ir_.getInt32Ty());
    middle = {.first = one,
              .step = one,
              .count = ir_.CreateSub(all, block_.i32(2)),
              .before = places.before};
    rest = {.first = none,
            .step = ir_.CreateSub(all, one),
            .count = block_.i32(2),
            .masked = true,
            .before = places.before};
  } else if (asks) {
    middle.count = none;
    rest = {.first = none, .step = one, .count = all, .masked = true, .in_turn = true};
  }
  open_scope();
  cached_.reset();
  for (const Pass& pass : passes) {
    if (error_) break;
    bool reads = false;
    if (&pass != &passes.front())
      for (const tile::OpId id : pass.before) {
        operation(kernel_.ops[id]);
        reads = reads || tile::reads_memory(kernel_.ops[id].code);
      }
    if (reads) block_.barrier();  // before any thread stores there
    if (!pass.inside.empty()) {
      if (!asks) cache_rows(pass);
      Pieces joined;
      for (const tile::OpId id : pass.folds) joined.push_back(neutral(kernel_.ops[id]));
      if (!asks) {
        known_accesses_ = known_accesses_of_parts(pass, how, true);
        joined = part_loop(pass, middle, joined);
        known_accesses_ = known_accesses_of_parts(pass, how, false);
      }
      PartLoop last = rest;
      if (asks && pass.store) {
        last.first = ir_.CreateSelect(places.backwards, ir_.CreateSub(all, one), last.first);
        last.step = ir_.CreateSelect(places.backwards, block_.i32(-1), last.step);
      }
      if (how != RowAlignment::Aligned || cut.extent % cut.part != 0)
        joined = part_loop(pass, last, joined);
      known_accesses_.clear();
      if (!pass.folds.empty()) finish_parts(pass, joined);
    }
    if (!pass.after.empty()) block_.barrier();
    for (const tile::OpId id : pass.after) operation(kernel_.ops[id]);
  }
  close_scope();
  accesses_.clear();
  cached_.reset();
  scalars_ = scalars;
  ir_.CreateRetVoid();
}

// Known properties of the accesses of a pass, for parts that are within the row or not.
std::map<tile::OpId, KnownAccess> Emitter::known_accesses_of_parts(const Pass& pass,
                                                                   RowAlignment how, bool whole) {
  std::map<tile::OpId, KnownAccess> known;
  for (const tile::OpId id : pass.inside) {
    const Operation& op = kernel_.ops[id];
    if (op.code != Code::Vload && op.code != Code::Vstore) continue;
    const bool aligned = how == RowAlignment::Aligned || !is_fixed(op);
    const tile::Type& view = type(op.in[0]);
    const tile::Extents& shape = type(op.code == Code::Vload ? op.out[0] : op.in.back()).shape;
    known[id] = {.run = aligned ? run_of(view, plan_.access(op), shape) : 1,
                 .constant = constants_.contains(id),
                 .unaligned = !aligned,
                 .edge = !whole,
                 .inside = std::vector<bool>(shape.size(), true)};
  }
  return known;
}

void Emitter::by_passes() {
  dependences_ = tile::gpu::program_dependences(kernel_);
  for (const auto& [id, known] : known_accesses(planned_, dependences_))
    if (known.constant) constants_.insert(id);
  const std::vector<Pass> passes = find_passes();
  for (const tile::OpId id : passes[0].before) operation(kernel_.ops[id]);
  unordered_ = true;
  const RowProperties places = row_properties(passes);
  // Memory that all programs read is written by none, if there are several.
  llvm::Value* simple = ir_.CreateAnd(places.whole, ir_.CreateNot(places.overlaps));
  if (!constants_.empty())
    simple = ir_.CreateAnd(simple, ir_.CreateICmpUGT(pid(Code::Npid, 0), block_.i64(1)));
  for (const auto& [how, when] : {std::pair(RowAlignment::Aligned, places.aligned),
                                  std::pair(RowAlignment::Shifted, places.shifted)}) {
    llvm::BasicBlock *here = block_.block("rows"), *others = block_.block("others");
    ir_.CreateCondBr(ir_.CreateAnd(simple, when), here, others);
    ir_.SetInsertPoint(here);
    run_passes(passes, places, how);
    ir_.SetInsertPoint(others);
  }
  run_passes(passes, places, RowAlignment::Unknown);
}

}  // namespace tessera::codegen::ptx
