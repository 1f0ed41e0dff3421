#include "tessera/codegen/llvm/row.h"

#include <algorithm>
#include <functional>

#include "tessera/support/check.h"
#include "tessera/tile/cpu/placement.h"

namespace tessera::codegen {

using tile::Code;
using tile::Operation;
using tile::OpId;
using tile::ValueId;
using tile::cpu::Nest;
using tile::cpu::Root;

Row::Row(Emitter& emitter, const Nest& nest, int lane, const std::vector<llvm::Value*>& outer)
    : e_(emitter),
      nest_(nest),
      lane_(lane),
      fold_(nest.fold && *nest.fold != lane ? *nest.fold : -1),
      start_(emitter.block("row")),
      row_(emitter.ir.GetInsertBlock()),
      outer_(outer) {
  e_.ir.SetInsertPoint(start_);
}

Positions Row::identity() const {
  Positions positions;
  for (std::size_t i = 0; i < nest_.space.size(); ++i) {
    const auto axis = static_cast<int>(i);
    Position position{.uniform = e_.index(0), .lane = axis == lane_, .fold = axis == fold_};
    if (!position.lane && !position.fold) position.uniform = outer_[i];
    positions.push_back(position);
  }
  return positions;
}

llvm::Value* Row::single(ValueId id) {
  mode_ = {};
  llvm::Value* result = evaluate(id, identity()).pieces.front();
  row_.CreateBr(start_);
  return result;
}

void Row::compute_from_registers(const RegisterInput& input, llvm::Value* lane) {
  mode_ = {1, nest_.width, false};
  input_ = input;
  lane_index_ = lane;
  delayed_ = computed(false);
}

llvm::Value* Row::vector(ValueId id, const tile::cpu::IndexMap& at, llvm::Value* lane) {
  mode_ = {1, nest_.width, false};
  lane_index_ = lane;
  local_.clear();
  return spread(evaluate(id, mapped(at, identity()))).front();
}

void Row::write_computed() {
  write(delayed_);
}

/// Elements before and after the vectors, in one loop; but for padding, which is computed by
/// vectors too.
void Row::emit_rest(const Range& range) {
  const int width = nest_.width;
  llvm::Value *done = row_.CreateSub(range.vector_end, range.vectors), *padding = range.to,
              *padded = e_.index(0);
  if (padding_from_ != nullptr && may_pad_ && unmasked_ == nullptr && !e_.options.checked) {
    padding = least_of(row_, greatest_of(row_, padding_from_, range.vector_end), range.to);
    padded = greatest_of(row_, row_.CreateSub(range.to, padding), e_.index(0));
    padded = row_.CreateMul(row_.CreateUDiv(padded, e_.index(width)), e_.index(width));
    Mode beyond{1, width, false};
    beyond.beyond = true;
    e_.loop(padding, row_.CreateAdd(padding, padded), width, [&](llvm::Value* i) {
      lane_index_ = i;
      body(beyond);
    });
  }
  const auto skip = [&](llvm::Value* i, llvm::Value* begin, llvm::Value* count) {
    return e_.ir.CreateSelect(e_.ir.CreateICmpSGE(i, begin), e_.ir.CreateAdd(i, count), i);
  };
  llvm::Value* others = row_.CreateSub(row_.CreateSub(range.to, done), padded);
  e_.loop(range.from, others, 1, [&](llvm::Value* i) {
    lane_index_ = skip(skip(i, range.vectors, done), padding, padded);
    body({1, 1, true});
  });
}

void Row::emit(llvm::Value* from, llvm::Value* to) {
  for (const Root& root : nest_.roots) {
    if (root.kind == Root::Kind::Write) {
      collect(root.value, identity());
    } else {
      for (const ValueId in : e_.op(root.op).in) collect(in, identity());
    }
  }
  if (lane_ < 0) {
    body({});
  } else {
    const int width = nest_.width, all = width * nest_.unroll;
    const Mode whole{nest_.unroll, width, false}, one{1, width, false}, element{1, 1, true};
    if (folds_lanes()) {
      for (const Root& root : nest_.roots) {
        if (root.kind == Root::Kind::Reduce) start_fold(e_.op(root.op), whole);
      }
    }
    const auto do_loop = [&](llvm::Value* first, llvm::Value* last, const Mode& mode) {
      e_.loop(first, last, mode.pieces * mode.width, [&](llvm::Value* i) {
        lane_index_ = i;
        body(mode);
      });
    };
    if (width == 1) {
      do_loop(from, to, element);
    } else {
      llvm::Value *first = from, *last = to;
      if (fast_from_ != nullptr) {
        const auto clamp = [&](llvm::Value* x, llvm::Value* least) {
          x = greatest_of(row_, x, least);
          return least_of(row_, x, to);
        };
        first = clamp(fast_from_, from);
        last = clamp(fast_to_, first);
      }
      llvm::Value* span = row_.CreateSub(last, first);
      // An empty range may have its ends reversed.
      span = greatest_of(row_, span, e_.index(0));
      const auto end_by = [&](int step) {
        return row_.CreateAdd(
            first, row_.CreateMul(row_.CreateUDiv(span, e_.index(step)), e_.index(step)));
      };
      llvm::Value *main_end = end_by(all), *vector_end = end_by(width);
      const bool has_tail = ends_in_vector(from, to);
      Mode tail{1, width, false, unmasked_ != nullptr};
      std::vector<DelayedWrite> delayed;
      const auto at_tail = [&] {
        mode_ = tail;
        lane_index_ = row_.CreateSub(to, e_.index(width));
      };
      if (has_tail) {
        const auto lanes = llvm::cast<llvm::ConstantInt>(span)->getSExtValue();
        tail.repeated = width - static_cast<int>(lanes % width);
        at_tail();
        // Before any store, in case it overwrites the loaded elements.
        if (fold_ < 0) delayed = computed(false);
      }
      const auto vectors = [&](bool is_masked) {
        Mode many = whole, single = one;
        many.masked = single.masked = is_masked;
        do_loop(first, main_end, many);
        if (nest_.unroll > 1) do_loop(main_end, vector_end, single);
      };
      const auto* always = llvm::dyn_cast_or_null<llvm::ConstantInt>(unmasked_);
      if (unmasked_ == nullptr || always != nullptr)
        vectors(always != nullptr && always->isZero());
      else
        e_.branch(
            unmasked_, [&] { vectors(false); }, [&] { vectors(true); });
      if (has_tail) {
        at_tail();
        fold_ < 0 ? write(delayed) : body(tail);
      } else if (fast_from_ == nullptr) {
        do_loop(vector_end, to, element);
      } else {
        emit_rest({from, first, vector_end, to});
      }
    }
    if (folds_lanes()) {
      for (const Root& root : nest_.roots) {
        if (root.kind == Root::Kind::Reduce) finish_fold(e_.op(root.op));
      }
    }
  }
  row_.CreateBr(start_);
}

void Row::body(const Mode& mode) {
  mode_ = mode;
  if (fold_ < 0) return step(false);
  const std::int64_t extent = nest_.space[static_cast<std::size_t>(fold_)];
  bool has_neutral = true, reverse = false;
  for (const Root& root : nest_.roots) {
    if (root.kind != Root::Kind::Reduce && root.kind != Root::Kind::Scan) continue;
    const Operation& op = e_.op(root.op);
    start_fold(op, mode);
    has_neutral = has_neutral && op.regions.empty();
    reverse = reverse || (op.code == Code::Scan && op.ints[1] != 0);
  }
  llvm::Value *lanes = lane_index_, *last = e_.index(extent - 1);
  if (!has_neutral) {
    fold_index_ = reverse ? last : e_.index(0);
    step(true);
  }
  e_.loop(e_.index(has_neutral ? 0 : 1), e_.index(extent), 1, [&](llvm::Value* i) {
    mode_ = mode;
    lane_index_ = lanes;
    fold_index_ = reverse ? e_.ir.CreateSub(last, i) : i;
    step(false);
  });
  for (const Root& root : nest_.roots) {
    if (root.kind == Root::Kind::Reduce) finish_fold(e_.op(root.op));
  }
}

Row::Lanes Row::root_value(const Root& root) {
  const auto definition =
      root.value < e_.definition.size() ? e_.definition[root.value] : std::optional<OpId>();
  const bool is_own = e_.scheduled.buffer_of[root.value] == root.buffer;
  if (is_own && definition && tile::cpu::is_inline(e_.kernel, e_.op(*definition))) {
    const Lanes x = compute(root.value, e_.op(*definition), identity());
    local_[key(root.value, identity())] = x;
    return x;
  }
  return evaluate(root.value, identity());
}

void Row::evaluate_by_levels() {
  struct Part {
    int level;
    ValueId id;
    Positions positions;
  };
  std::vector<Part> parts;
  std::map<Key, int> levels;
  const std::function<int(ValueId, const Positions&)> visit =
      [&](ValueId id, const Positions& positions) -> int {
    if (!e_.type(id).is_tile() || id >= e_.definition.size() || !e_.definition[id]) return 0;
    if (e_.scheduled.buffer_of[id] >= 0) return 0;
    const Key k = key(id, positions);
    if (const auto found = levels.find(k); found != levels.end()) return found->second;
    const Operation& op = e_.op(*e_.definition[id]);
    int level = 0;
    if (op.code == Code::Map || op.code == Code::Cast) {
      for (const ValueId in : op.in) level = std::max(level, visit(in, positions) + 1);
      parts.push_back({level, id, positions});
    } else if (tile::cpu::operand_map(e_.kernel, op, tile::cpu::identity_map(positions.size())) &&
               e_.type(op.in[0]).is_tile()) {
      level = visit(op.in[0], moved(op, positions));
    }
    return levels[k] = level;
  };
  for (const Root& root : nest_.roots) {
    if (root.kind == Root::Kind::Effect) visit(e_.op(root.op).in.back(), identity());
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.level < b.level; });
  for (const Part& part : parts) evaluate(part.id, part.positions);
}

/// Whether the rest of the row after whole vectors can be computed by a vector that ends with it.
bool Row::ends_in_vector(const llvm::Value* from, const llvm::Value* to) const {
  const auto* first = llvm::dyn_cast<llvm::ConstantInt>(from);
  const auto* last = llvm::dyn_cast<llvm::ConstantInt>(to);
  if (fast_from_ != nullptr || first == nullptr || last == nullptr) return false;
  const std::int64_t lanes = last->getSExtValue() - first->getSExtValue();
  if (lanes < nest_.width || lanes % nest_.width == 0) return false;
  return std::all_of(nest_.roots.begin(), nest_.roots.end(), [&](const Root& root) {
    if (root.kind == Root::Kind::Reduce) return !folds_lanes() || e_.op(root.op).regions.empty();
    if (fold_ >= 0) return false;
    return root.kind == Root::Kind::Write ||
           (root.kind == Root::Kind::Effect && e_.op(root.op).code == Code::Vstore);
  });
}

void Row::step(bool first) {
  write(computed(first));
}

void Row::write(const std::vector<DelayedWrite>& delayed) {
  for (const DelayedWrite& w : delayed) write(w.dtype, w.place, w.x);
}

std::vector<Row::DelayedWrite> Row::computed(bool first) {
  local_.clear();
  const bool is_stores = std::all_of(nest_.roots.begin(), nest_.roots.end(), [&](const Root& root) {
    return root.kind == Root::Kind::Effect && e_.op(root.op).code == Code::Vstore;
  });
  if (is_stores && nest_.roots.size() > 1) evaluate_by_levels();
  std::vector<DelayedWrite> delayed;
  for (const Root& root : nest_.roots) {
    switch (root.kind) {
      case Root::Kind::Write: {
        const auto& buffer = e_.scheduled.buffers[static_cast<std::size_t>(root.buffer)];
        Lanes stored = root_value(root);
        if (e_.type(root.value).is_pointer()) {
          for (llvm::Value*& piece : stored.pieces)
            piece =
                e_.ir.CreatePtrToInt(piece, piece->getType()->getWithNewType(e_.ir.getInt64Ty()));
          stored.early = false;
        }
        delayed.push_back(
            {buffer.dtype,
             buffer_place(root.buffer, buffer.dtype, buffer.shape, identity(), root.at),
             std::move(stored)});
        break;
      }
      case Root::Kind::Reduce:
      case Root::Kind::Scan: fold(root, first); break;
      case Root::Kind::Effect: effect(root.op, delayed); break;
      case Root::Kind::Check:
        if (e_.options.checked) {
          e_.check(spread(evaluate(e_.op(root.op).in[0], identity())).front(), root.op);
        }
        break;
    }
  }
  return delayed;
}

void Row::effect(OpId id, std::vector<DelayedWrite>& delayed) {
  const Operation& op = e_.op(id);
  if (op.code != Code::Vstore) return effect_of_elements(id);
  const ValueId stored = op.in.back();
  const ViewParts& view = e_.views[op.in[0]];
  const DType dtype = e_.type(stored).dtype;
  const Place place = view_place(view, dtype, starts_of(op), identity());
  if (prefetches_stored()) prefetch(op, dtype, place);
  Lanes x = evaluate(stored, identity());
  if (e_.options.checked) {
    e_.check_address(address(dtype, place), byte_width(dtype), id);
  }
  delayed.push_back({dtype, place, std::move(x)});
}

/// Stores through pointers and atomics: one element at a time.
void Row::effect_of_elements(OpId id) {
  const Operation& op = e_.op(id);
  const auto element = [&](std::size_t i) { return evaluate(op.in[i], identity()).pieces.front(); };
  const bool is_cas = op.code == Code::Cas;
  llvm::Value *pointer = element(0), *x = element(1);
  llvm::Value* third = op.in.size() > 2 ? element(2) : nullptr;
  const DType dtype = e_.type(op.in[1]).dtype;
  llvm::AllocaInst* old = nullptr;
  if (!op.out.empty()) {
    old = e_.slot(e_.register_type(dtype));
    e_.ir.CreateStore(llvm::Constant::getNullValue(old->getAllocatedType()), old);
  }
  const auto change = [&] {
    e_.check_address(pointer, byte_width(dtype), id);
    if (op.code == Code::Store) {
      e_.store(e_.ir, dtype, pointer, x);
    } else {
      e_.ir.CreateStore(is_cas ? e_.emit_cas(pointer, x, third) : e_.emit_atomic(op, pointer, x),
                        old);
    }
  };
  third != nullptr && !is_cas ? e_.branch(third, change) : change();
  if (old != nullptr) {
    const int buffer = e_.scheduled.buffer_of[op.out[0]];
    const Lanes value{{e_.ir.CreateLoad(old->getAllocatedType(), old)}, false, false};
    write(dtype, buffer_place(buffer, dtype, e_.type(op.out[0]).shape, identity()), value);
  }
}

}  // namespace tessera::codegen
