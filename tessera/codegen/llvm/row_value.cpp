#include <algorithm>

#include "tessera/codegen/llvm/flow.h"
#include "tessera/codegen/llvm/row.h"
#include "tessera/support/check.h"
#include "tessera/tile/cpu/bounds.h"
#include "tessera/tile/cpu/placement.h"
#include "tessera/tile/function.h"

namespace tessera::codegen {

using tile::Code;
using tile::Extents;
using tile::Operation;
using tile::OpId;
using tile::ValueId;

namespace {

bool is_one(const llvm::Value* value) {
  const auto* constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(value);
  return constant != nullptr && constant->isOne();
}

bool is_two(const llvm::Value* value) {
  const auto* constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(value);
  return constant != nullptr && constant->equalsInt(2);
}

/// Removes a constant addend from a sum.
llvm::Value* without_constant(llvm::Value* value, std::int64_t& constant) {
  for (;;) {
    auto* sum = llvm::dyn_cast<llvm::BinaryOperator>(value);
    if (sum == nullptr || sum->getOpcode() != llvm::Instruction::Add) return value;
    const auto* number = llvm::dyn_cast<llvm::ConstantInt>(sum->getOperand(1));
    if (number == nullptr) return value;
    constant += number->getSExtValue();
    value = sum->getOperand(0);
  }
}

}  // namespace

Row::Key Row::key(ValueId id, const Positions& positions) {
  Key key{id, {}};
  for (const Position& position : positions) key.second.push_back(position.key());
  return key;
}

bool Row::is_uniform(const Positions& positions) const {
  return std::none_of(positions.begin(), positions.end(),
                      [](const Position& p) { return p.lane || p.fold; });
}

DType Row::element_dtype(ValueId id) const {
  return e_.type(id).is_pointer() ? DType::I64 : e_.type(id).dtype;
}

/// Positions of the operand of a data movement, by its index map.
Positions Row::moved(const Operation& op, const Positions& positions) {
  const auto map = tile::cpu::operand_map(e_.kernel, op, tile::cpu::identity_map(positions.size()));
  TESSERA_CHECK(map.has_value(), "{} moves no elements", to_string(op.code));
  return mapped(*map, positions);
}

Positions Row::mapped(const tile::cpu::IndexMap& map, const Positions& positions) {
  Positions result;
  for (const tile::cpu::AxisMap& axis : map) {
    Position position{.uniform = e_.index(0)};
    if (axis.axis >= 0) position = positions[static_cast<std::size_t>(axis.axis)];
    if (axis.offset != 0) position.uniform = sum_of(row_, position.uniform, e_.index(axis.offset));
    result.push_back(position);
  }
  return result;
}

Pieces Row::spread(const Lanes& x) {
  if (!x.uniform) return x.pieces;
  llvm::Value* scalar = x.pieces.front();
  llvm::Value* wide = scalar;
  if (mode_.width > 1) {
    if (x.early) {
      llvm::Value*& made = spread_[{scalar, mode_.width}];
      if (made == nullptr)
        made = row_.CreateVectorSplat(static_cast<unsigned>(mode_.width), scalar);
      wide = made;
    } else {
      wide = e_.ir.CreateVectorSplat(static_cast<unsigned>(mode_.width), scalar);
    }
  }
  return Pieces(static_cast<std::size_t>(mode_.pieces), wide);
}

Row::Lanes Row::evaluate(ValueId id, const Positions& positions) {
  if (e_.type(id).is_scalar()) return {{e_.scalars[id]}, true, true};
  const Key k = key(id, positions);
  if (const auto found = local_.find(k); found != local_.end()) return found->second;
  if (const auto found = uniform_.find(k); found != uniform_.end()) return found->second;
  Lanes x;
  const int buffer = e_.scheduled.buffer_of[id];
  if (input_.total ? id == *input_.total : buffer >= 0 && buffer == input_.buffer) {
    x = {{input_.vector}, false, false};
  } else if (buffer >= 0) {
    const DType dtype = element_dtype(id);
    x = read(dtype, buffer_place(buffer, dtype, e_.type(id).shape, positions));
    if (e_.type(id).is_pointer()) {
      llvm::IRBuilderBase& at = x.early ? static_cast<llvm::IRBuilderBase&>(row_) : e_.ir;
      for (llvm::Value*& piece : x.pieces)
        piece = at.CreateIntToPtr(piece, piece->getType()->getWithNewType(at.getPtrTy()));
    }
  } else {
    x = compute(id, e_.op(*e_.definition[id]), positions);
  }
  (x.early ? uniform_ : local_)[k] = x;
  return x;
}

Row::Lanes Row::compute(ValueId id, const Operation& op, const Positions& positions) {
  switch (op.code) {
    case Code::Const: return {{e_.literal(e_.type(id).dtype, op.literal)}, true, true};
    case Code::Iota: return iota(e_.type(id).dtype, positions.front());
    case Code::Vload: return vload(*e_.definition[id], positions);
    case Code::Load: {
      const auto element = [&](std::size_t i) -> llvm::Value* {
        return i < op.in.size() ? spread(evaluate(op.in[i], positions)).front() : nullptr;
      };
      llvm::Value *pointer = element(0), *mask = element(1), *other = element(2);
      return {{e_.emit_scalar_load(op, *e_.definition[id], pointer, mask, other)}, false, false};
    }
    case Code::Gather: return gather(*e_.definition[id], positions);
    case Code::Map:
    case Code::Cast:
    case Code::Bitcast:
    case Code::Offset: {
      std::vector<Lanes> operands;
      for (const ValueId in : op.in) operands.push_back(evaluate(in, positions));
      return map(op, operands);
    }
    default:
      if (!e_.type(op.in[0]).is_tile()) return {{e_.scalars[op.in[0]]}, true, true};
      return evaluate(op.in[0], moved(op, positions));
  }
}

Row::Lanes Row::map(const Operation& op, const std::vector<Lanes>& operands) {
  const bool uniform =
      std::all_of(operands.begin(), operands.end(), [](const Lanes& x) { return x.uniform; });
  const bool early = uniform && std::all_of(operands.begin(), operands.end(),
                                            [](const Lanes& x) { return x.early; });
  llvm::IRBuilderBase& at = early ? static_cast<llvm::IRBuilderBase&>(row_) : e_.ir;
  std::vector<Pieces> pieces;
  for (const Lanes& x : operands) pieces.push_back(uniform ? x.pieces : spread(x));
  const DType from = e_.type(op.in.back()).dtype, to = e_.type(op.out[0]).dtype;
  Pieces result;
  switch (op.code) {
    case Code::Map: {
      const bool low = tile::is_transcendental(op.function) &&
                       tile::cpu::is_never_positive(e_.kernel, e_.definition, op.in[0]);
      result = emit_map(at, op.function, from, pieces, e_.options.precision,
                        low ? Sign::NotPositive : Sign::Any);
      break;
    }
    case Code::Cast: result = emit_cast(at, pieces[0], from, to); break;
    case Code::Bitcast:
      for (llvm::Value* piece : pieces[0]) {
        llvm::Type* element =
            e_.type(op.out[0]).is_pointer() ? at.getPtrTy() : e_.register_type(to);
        result.push_back(
            at.CreateBitOrPointerCast(piece, piece->getType()->getWithNewType(element)));
      }
      break;
    case Code::Offset:
      for (std::size_t i = 0; i < pieces[0].size(); ++i) {
        llvm::Value* by =
            at.CreateIntCast(pieces[1][i], pieces[1][i]->getType()->getWithNewType(at.getInt64Ty()),
                             !is_unsigned(from));
        result.push_back(at.CreateGEP(e_.memory_type(e_.type(op.in[0]).dtype), pieces[0][i], by));
      }
      break;
    default: TESSERA_CHECK(false, "{} is no map", to_string(op.code));
  }
  return {std::move(result), uniform, early};
}

Row::Lanes Row::iota(DType dtype, const Position& position) {
  llvm::Type* element = e_.register_type(dtype);
  if (!position.lane) {
    llvm::IRBuilderBase& at = position.fold ? e_.ir : static_cast<llvm::IRBuilderBase&>(row_);
    llvm::Value* value =
        position.fold ? sum_of(at, position.uniform, fold_index_) : position.uniform;
    return {{at.CreateIntCast(value, element, false)}, true, !position.fold};
  }
  llvm::Value* first =
      e_.ir.CreateIntCast(sum_of(e_.ir, position.uniform, lane_index_), element, false);
  Pieces pieces;
  for (int piece = 0; piece < mode_.pieces; ++piece) {
    if (mode_.width == 1) {
      pieces.push_back(first);
      continue;
    }
    std::vector<llvm::Constant*> steps;
    const int first_lane = piece * mode_.width;
    for (int lane = first_lane; lane < first_lane + mode_.width; ++lane) {
      steps.push_back(llvm::ConstantInt::get(element, static_cast<std::uint64_t>(lane)));
    }
    llvm::Value* base = e_.ir.CreateVectorSplat(static_cast<unsigned>(mode_.width), first);
    pieces.push_back(e_.ir.CreateAdd(base, llvm::ConstantVector::get(steps)));
  }
  return {std::move(pieces), false, false};
}

Row::Place Row::view_place(const ViewParts& view, DType dtype, const std::vector<llvm::Value*>& at,
                           const Positions& positions) {
  // All modes of the row prefetch the same addresses.
  Key asked = key(0, positions);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    asked.second.emplace_back(at[i], false, false);
    asked.second.emplace_back(view.strides[i], false, false);
  }
  asked.second.emplace_back(view.base, false, false);
  if (const auto found = places_.find(asked); found != places_.end()) return found->second;
  Place place;
  llvm::Value* offset = e_.index(0);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    std::int64_t beyond = 0;
    const auto* stride = llvm::dyn_cast<llvm::ConstantInt>(view.strides[i]);
    llvm::Value *start = at[i], *position = positions[i].uniform;
    if (stride != nullptr) {
      start = without_constant(start, beyond);
      position = without_constant(position, beyond);
      place.beyond += beyond * stride->getSExtValue();
    }
    start = sum_of(row_, start, position);
    offset = sum_of(row_, offset, product_of(row_, start, view.strides[i]));
    const auto add = [&](llvm::Value*& stride) {
      stride = stride == nullptr ? view.strides[i] : sum_of(row_, stride, view.strides[i]);
    };
    if (positions[i].lane) add(place.lane_stride);
    if (positions[i].fold) add(place.fold_stride);
  }
  place.pointer = row_.CreateGEP(e_.memory_type(dtype), view.base, offset);
  places_[asked] = place;
  return place;
}

Row::Place Row::buffer_place(int buffer, DType dtype, const Extents& shape,
                             const Positions& positions, const Extents& at) {
  ViewParts view{.base = e_.buffers[static_cast<std::size_t>(buffer)]};
  std::vector<llvm::Value*> start;
  const Extents strides = tile::Type::view(dtype, shape).strides;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    view.strides.push_back(e_.index(strides[i]));
    start.push_back(e_.index(at.empty() ? 0 : at[i]));
  }
  Place place = view_place(view, dtype, start, positions);
  place.buffer = buffer;
  return place;
}

llvm::Value* Row::element_index(const Place& place) {
  llvm::Value* offset = e_.index(0);
  if (place.lane_stride != nullptr && lane_ >= 0) {
    offset = sum_of(e_.ir, offset, product_of(e_.ir, lane_index_, place.lane_stride));
  }
  if (place.fold_stride != nullptr) {
    offset = sum_of(e_.ir, offset, product_of(e_.ir, fold_index_, place.fold_stride));
  }
  return offset;
}

llvm::Value* Row::address(DType dtype, const Place& place) {
  llvm::Type* element = e_.memory_type(dtype);
  llvm::Value* first = e_.ir.CreateGEP(element, place.pointer, element_index(place));
  return place.beyond == 0 ? first : e_.ir.CreateGEP(element, first, e_.index(place.beyond));
}

Row::Lanes Row::read(DType dtype, const Place& place) {
  llvm::Type* element = e_.memory_type(dtype);
  if (place.lane_stride == nullptr && place.fold_stride == nullptr) {
    llvm::Value* pointer = row_.CreateGEP(element, place.pointer, e_.index(place.beyond));
    return {{e_.load(row_, dtype, pointer, 1, place.buffer)}, true, true};
  }
  if (place.lane_stride == nullptr)
    return {{e_.load(e_.ir, dtype, address(dtype, place), 1, place.buffer)}, true, false};
  llvm::Value* first = e_.ir.CreateGEP(element, place.pointer, element_index(place));
  const auto at = [&](int lane) {
    llvm::Value* way = product_of(e_.ir, place.lane_stride, e_.index(lane));
    return e_.ir.CreateGEP(element, first, sum_of(e_.ir, way, e_.index(place.beyond)));
  };
  Pieces pieces;
  for (int piece = 0; piece < mode_.pieces; ++piece) {
    const int lane = piece * mode_.width;
    if (mode_.width == 1 || is_one(place.lane_stride)) {
      pieces.push_back(e_.load(e_.ir, dtype, at(lane), mode_.width, place.buffer));
      continue;
    }
    if (is_two(place.lane_stride) && dtype != DType::Bool) {
      // Every other element of two vectors, of which the second ends with the last one.
      llvm::SmallVector<int, 64> every_other;
      for (int i = 0; i < mode_.width; ++i)
        every_other.push_back(2 * i + (2 * i < mode_.width ? 0 : 1));
      const int last = 2 * (mode_.width - 1);
      llvm::Value* start = at(lane);
      llvm::Value* rest = e_.ir.CreateGEP(element, start, e_.index(last + 1 - mode_.width));
      pieces.push_back(e_.ir.CreateShuffleVector(e_.load(e_.ir, dtype, start, mode_.width),
                                                 e_.load(e_.ir, dtype, rest, mode_.width),
                                                 every_other));
      continue;
    }
    llvm::Value* vector = llvm::PoisonValue::get(e_.register_type(dtype, mode_.width));
    for (int i = 0; i < mode_.width; ++i) {
      vector =
          e_.ir.CreateInsertElement(vector, e_.load(e_.ir, dtype, at(lane + i), 1, place.buffer),
                                    static_cast<std::uint64_t>(i));
    }
    pieces.push_back(vector);
  }
  return {std::move(pieces), false, false};
}

void Row::write(DType dtype, const Place& place, const Lanes& x) {
  llvm::Type* element = e_.memory_type(dtype);
  llvm::Value* first = address(dtype, place);
  if (place.lane_stride == nullptr) {
    // Every lane writes the same element: the row has one, or the value is uniform.
    return e_.store(e_.ir, dtype, first, x.pieces.front(), place.buffer);
  }
  const Pieces pieces = spread(x);
  for (int piece = 0; piece < mode_.pieces; ++piece) {
    const int lane = piece * mode_.width;
    llvm::Value* value = pieces[static_cast<std::size_t>(piece)];
    const auto at = [&](int i) {
      return e_.ir.CreateGEP(element, first, product_of(e_.ir, place.lane_stride, e_.index(i)));
    };
    if (mode_.width == 1 || is_one(place.lane_stride)) {
      e_.store(e_.ir, dtype, at(lane), value, place.buffer);
      continue;
    }
    for (int i = 0; i < mode_.width; ++i) {
      e_.store(e_.ir, dtype, at(lane + i),
               e_.ir.CreateExtractElement(value, static_cast<std::uint64_t>(i)), place.buffer);
    }
  }
}

Row::Lanes Row::vload(OpId id, const Positions& positions) {
  const Operation& op = e_.op(id);
  const DType dtype = e_.type(op.out[0]).dtype;
  if (e_.turned == id)
    return read(dtype, buffer_place(nest_.roots[0].buffer, dtype, nest_.space, identity()));
  std::vector<llvm::Value*> at = starts_of(op);
  const bool one_for_all = is_uniform(positions);
  if (mode_.beyond) {
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const bool is_proven = i < op.ints.size() && op.ints[i] == 1;
      if (positions[i].lane && !is_proven) return {{e_.literal(dtype, op.literal)}, true, false};
    }
  }
  if (mode_.masked && !one_for_all)
    for (std::size_t i = 0; i < positions.size(); ++i)
      if (is_maskable(op, positions, i)) return masked(op, positions, std::move(at));
  const Place place = view_place(e_.views[op.in[0]], dtype, at, positions);
  const bool early = one_for_all && !e_.options.checked;  // a check comes before its access
  const bool is_marked =
      op.ints.size() == positions.size() &&
      std::all_of(op.ints.begin(), op.ints.end(), [](std::int64_t known) { return known == 1; });
  if ((is_marked && early == one_for_all) || (!one_for_all && !mode_.guarded)) {
    if (e_.options.checked) {
      e_.check_address(address(dtype, place), byte_width(dtype), id);
    }
    if (!prefetches_stored()) prefetch(op, dtype, place);
    return read(dtype, place);
  }
  // Reads another address for an element out of bounds, and does not use the result.
  llvm::IRBuilderBase& builder = early ? static_cast<llvm::IRBuilderBase&>(row_) : e_.ir;
  llvm::Value* inside = is_inside(id, positions);
  llvm::AllocaInst* nothing = e_.slot(e_.memory_type(dtype));
  llvm::Value* pointer =
      early ? row_.CreateGEP(e_.memory_type(dtype), place.pointer, e_.index(place.beyond))
            : address(dtype, place);
  pointer = builder.CreateSelect(inside, pointer, nothing);
  if (e_.options.checked) {
    e_.branch(inside, [&] { e_.check_address(pointer, byte_width(dtype), id); });
  }
  llvm::Value* loaded = e_.load(builder, dtype, pointer);
  llvm::Value* value = builder.CreateSelect(inside, loaded, e_.literal(dtype, op.literal));
  const bool uniform =
      std::none_of(positions.begin(), positions.end(), [](const Position& p) { return p.lane; });
  return {{value}, uniform, early};
}

/// Whether bounds along an axis are decided for all lanes alike, before the row.
bool Row::is_maskable(const Operation& op, const Positions& positions, std::size_t axis) const {
  const DType dtype = e_.type(op.out[0]).dtype;
  const bool is_proven = axis < op.ints.size() && op.ints[axis] == 1;
  const bool is_known = e_.type(op.in[0]).shape[axis] > 0;  // there is another address to read
  return !is_proven && is_known && !positions[axis].lane && !positions[axis].fold &&
         nest_.width > 1 && !e_.options.checked && dtype != DType::Bool;
}

/// Nearest elements in bounds, as bits, where the load is in bounds; padding elsewhere.
Row::Lanes Row::masked(const Operation& op, const Positions& positions,
                       std::vector<llvm::Value*> at) {
  const ViewParts& view = e_.views[op.in[0]];
  const DType dtype = e_.type(op.out[0]).dtype;
  llvm::Value* inside = row_.getTrue();
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (!is_maskable(op, positions, i)) continue;
    llvm::Value* position = sum_of(row_, at[i], positions[i].uniform);
    inside = row_.CreateAnd(inside, row_.CreateICmpULT(position, view.shape[i]));
    llvm::Value* nearest = greatest_of(row_, position, e_.index(0));
    nearest = least_of(row_, nearest, row_.CreateSub(view.shape[i], e_.index(1)));
    at[i] = row_.CreateSub(nearest, positions[i].uniform);
  }
  Lanes x = read(dtype, view_place(view, dtype, at, positions));
  llvm::Value* pad = e_.literal(dtype, op.literal);
  if (x.uniform) {
    for (llvm::Value*& piece : x.pieces) piece = e_.ir.CreateSelect(inside, piece, pad);
    return x;
  }
  llvm::Type* type = x.pieces.front()->getType();
  llvm::Type* bits = type->getWithNewType(e_.ir.getIntNTy(type->getScalarSizeInBits()));
  const auto all_of = [&](llvm::Value* bit) {
    return row_.CreateVectorSplat(static_cast<unsigned>(mode_.width),
                                  row_.CreateSExt(bit, bits->getScalarType()));
  };
  llvm::Value* keep = all_of(inside);
  llvm::Value* other = row_.CreateVectorSplat(static_cast<unsigned>(mode_.width), pad);
  other = row_.CreateAnd(row_.CreateBitCast(other, bits), all_of(row_.CreateNot(inside)));
  for (llvm::Value*& piece : x.pieces) {
    llvm::Value* kept = e_.ir.CreateAnd(e_.ir.CreateBitCast(piece, bits), keep);
    if (!llvm::cast<llvm::Constant>(pad)->isNullValue()) kept = e_.ir.CreateOr(kept, other);
    piece = e_.ir.CreateBitCast(kept, type);
  }
  return x;
}

/// Start positions of a load or store to a view.
std::vector<llvm::Value*> Row::starts_of(const Operation& op) {
  std::vector<llvm::Value*> at;
  const std::size_t rank = e_.views[op.in[0]].strides.size();
  for (std::size_t i = 1; i <= rank; ++i) at.push_back(e_.as_index(row_, op.in[i]));
  return at;
}

void Row::prefetch(const Operation& op, DType dtype, const Place& place) {
  constexpr std::int64_t kLine = 64;
  if (nest_.roots.empty()) return;  // a tile of one element
  std::int64_t rows = 1;
  for (const std::int64_t extent : nest_.space) rows *= extent;
  const bool is_one_row = lane_ >= 0 && rows == nest_.space[static_cast<std::size_t>(lane_)];
  // A value that is kept in a buffer is read there from then on; else the last nest stores it.
  const tile::cpu::Root::Kind kind = nest_.roots.front().kind;
  const bool reads_last = kind == tile::cpu::Root::Kind::Write ||
                          (kind == tile::cpu::Root::Kind::Effect && nest_.roots.size() == 1);
  if (!is_one_row || !reads_last) return;
  if (mode_.pieces != nest_.unroll || mode_.width == 1 || !is_one(place.lane_stride)) return;
  const ViewParts& view = e_.views[op.in[0]];
  llvm::Value* distance = nullptr;
  for (std::size_t i = 0; i < view.strides.size(); ++i) {
    const std::int64_t factor = e_.per_program(op.in[i + 1]);
    if (factor == 0) continue;
    llvm::Value* part = product_of(row_, view.strides[i], e_.index(factor));
    distance = distance == nullptr ? part : sum_of(row_, distance, part);
  }
  if (distance == nullptr) return;
  llvm::Value* first = e_.ir.CreateGEP(e_.memory_type(dtype), address(dtype, place), distance);
  const std::int64_t bytes = std::int64_t{mode_.pieces} * mode_.width * byte_width(dtype);
  for (std::int64_t at = 0; at < bytes; at += kLine) {
    llvm::Value* line = e_.ir.CreateGEP(e_.ir.getInt8Ty(), first, e_.index(at));
    emit_prefetch(e_.ir, line, {.writes = prefetches_stored()});
  }
}

llvm::Value* Row::is_inside(OpId id, const Positions& positions) {
  const Operation& op = e_.op(id);
  const ViewParts& view = e_.views[op.in[0]];
  llvm::IRBuilderBase& at = is_uniform(positions) ? static_cast<llvm::IRBuilderBase&>(row_) : e_.ir;
  llvm::Value* inside = at.getTrue();
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (i < op.ints.size() && op.ints[i] == 1) continue;
    llvm::Value* position = sum_of(at, e_.as_index(row_, op.in[i + 1]), positions[i].uniform);
    if (positions[i].lane) position = sum_of(at, position, lane_index_);
    if (positions[i].fold) position = sum_of(at, position, fold_index_);
    inside = at.CreateAnd(inside, at.CreateICmpULT(position, view.shape[i]));
  }
  return inside;
}

/// Restricts the part of the row without bounds checks by the loads of an expression.
void Row::collect(ValueId id, const Positions& positions) {
  if (!e_.type(id).is_tile() || id >= e_.definition.size() || !e_.definition[id]) return;
  if (!collected_.emplace(key(id, positions), true).second) return;
  const Operation& op = e_.op(*e_.definition[id]);
  const bool is_own_write =
      std::any_of(nest_.roots.begin(), nest_.roots.end(), [&](const tile::cpu::Root& root) {
        return root.kind == tile::cpu::Root::Kind::Write && root.value == id;
      });
  if (e_.scheduled.buffer_of[id] >= 0 && !is_own_write) return;
  if (!tile::cpu::is_inline(e_.kernel, op)) return;
  if (op.code == Code::Vload) return limit(*e_.definition[id], positions);
  if (tile::cpu::operand_map(e_.kernel, op, tile::cpu::identity_map(positions.size()))) {
    if (e_.type(op.in[0]).is_tile()) collect(op.in[0], moved(op, positions));
    return;
  }
  for (std::size_t i = op.code == Code::Gather ? 1 : 0; i < op.in.size(); ++i)
    collect(op.in[i], positions);
}

void Row::limit(OpId id, const Positions& positions) {
  const Operation& op = e_.op(id);
  if (e_.turned == id || is_uniform(positions)) return;  // all in bounds, or checked before the row
  const ViewParts& view = e_.views[op.in[0]];
  llvm::Value *from = nullptr, *to = nullptr, *fits = nullptr;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (i < op.ints.size() && op.ints[i] == 1) continue;
    llvm::Value* at = sum_of(row_, e_.as_index(row_, op.in[i + 1]), positions[i].uniform);
    if (positions[i].lane) {
      llvm::Value *least = row_.CreateNeg(at), *most = row_.CreateSub(view.shape[i], at);
      from = from == nullptr ? least : greatest_of(row_, from, least);
      to = to == nullptr ? most : least_of(row_, to, most);
      continue;
    }
    if (is_maskable(op, positions, i)) {
      llvm::Value* inside = row_.CreateICmpULT(at, view.shape[i]);
      unmasked_ = unmasked_ == nullptr ? inside : row_.CreateAnd(unmasked_, inside);
      continue;
    }
    const std::int64_t extent =
        positions[i].fold ? nest_.space[static_cast<std::size_t>(fold_)] : 1;
    llvm::Value* inside =
        row_.CreateAnd(row_.CreateICmpSGE(at, e_.index(0)),
                       row_.CreateICmpSLE(at, row_.CreateSub(view.shape[i], e_.index(extent))));
    fits = fits == nullptr ? inside : row_.CreateAnd(fits, inside);
  }
  if (from == nullptr && fits == nullptr) return;
  may_pad_ = may_pad_ && fits == nullptr;
  if (from != nullptr)
    padding_from_ = padding_from_ == nullptr ? to : greatest_of(row_, padding_from_, to);
  const std::int64_t far = std::int64_t{1} << 62;
  if (from == nullptr) from = e_.index(0), to = e_.index(far);
  if (fits != nullptr) to = row_.CreateSelect(fits, to, e_.index(-far));
  fast_from_ = fast_from_ == nullptr ? from : greatest_of(row_, fast_from_, from);
  fast_to_ = fast_to_ == nullptr ? to : least_of(row_, fast_to_, to);
}

Row::Lanes Row::gather(OpId id, const Positions& positions) {
  const Operation& op = e_.op(id);
  const DType dtype = element_dtype(op.in[0]);
  const Extents& shape = e_.type(op.in[0]).shape;
  const auto axis = static_cast<std::size_t>(op.ints[0]);
  // An index out of range is clamped to the nearest element: memory stays safe for any data.
  llvm::Value* index = spread(evaluate(op.in[1], positions)).front();
  index = e_.ir.CreateIntCast(index, e_.ir.getInt64Ty(), !is_unsigned(e_.type(op.in[1]).dtype));
  if (e_.options.checked) e_.check(e_.ir.CreateICmpULT(index, e_.index(shape[axis])), id);
  index = greatest_of(e_.ir, index, e_.index(0));
  index = least_of(e_.ir, index, e_.index(shape[axis] - 1));
  Positions others = positions;
  others[axis] = {.uniform = e_.index(0)};
  const Place place = buffer_place(e_.scheduled.buffer_of[op.in[0]], dtype, shape, others);
  const std::int64_t stride = tile::Type::view(dtype, shape).strides[axis];
  llvm::Value* pointer = e_.ir.CreateGEP(e_.memory_type(dtype), address(dtype, place),
                                         product_of(e_.ir, index, e_.index(stride)));
  return {{e_.load(e_.ir, dtype, pointer)}, false, false};
}

}  // namespace tessera::codegen
