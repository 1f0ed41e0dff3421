#include "tessera/tile/passes/cut_rows.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile {
namespace {

class Cut {
 public:
  Cut(const Kernel& kernel, std::int64_t extent, std::int64_t part)
      : kernel_(kernel), result_{.extent = extent, .part = part} {}

  std::optional<CutRows> run() {
    bool first = true;
    result_.kernel = Rewrite::run(kernel_, [&](Rewrite& out, const Operation& op) {
      if (std::exchange(first, false)) result_.column = out.index(0);
      if (fits_) fits_ = visit(out, op);
      // The result is discarded after a failure, but operands have to be valid.
      if (!fits_) out.copy(op);
    });
    if (!fits_ || stores_ > 1 || !reduces_) return {};
    return std::move(result_);
  }

 private:
  const Type& type(ValueId id) const { return kernel_.type(id); }
  std::optional<int> axis(ValueId id) const {
    const auto found = axes_.find(id);
    return found == axes_.end() ? std::nullopt : std::optional(found->second);
  }

  /// Axis of a tile that is a row and nothing else.
  std::optional<int> long_axis(const Type& type) const {
    if (!type.is_tile() || type.count() != result_.extent) return {};
    for (int i = 0; i < type.rank(); ++i)
      if (type.shape[static_cast<std::size_t>(i)] == result_.extent) return i;
    return {};
  }

  /// The operation on parts: its result is cut along an axis.
  bool emit(Rewrite& out, Operation op, std::vector<ValueId> in, int along) {
    const ValueId old = op.out[0];
    Type cut = type(old);
    cut.shape[static_cast<std::size_t>(along)] = result_.part;
    op.in = std::move(in);
    const ValueId now = out.emit(std::move(op), std::move(cut));
    out.set(old, now);
    axes_[old] = along;
    result_.axes[now] = along;
    return true;
  }

  bool visit(Rewrite& out, const Operation& op) {
    if (op.code == Code::Vstore) return store(out, op);
    const bool any_cut =
        std::any_of(op.in.begin(), op.in.end(), [&](ValueId id) { return axis(id).has_value(); });
    if (op.code == Code::Reduce && any_cut) {
      reduces_ = true;
      const bool along_row = op.ints[0] == *axis(op.in[0]);
      if (!along_row || op.in.size() != 1 || !op.regions.empty()) return false;
      if (!neutral_of(op.function, type(op.in[0]).dtype)) return false;
      reduced_.insert(op.out[0]);
      out.copy(op);
      return true;
    }
    if (std::any_of(op.in.begin(), op.in.end(), [&](ValueId id) { return reduced_.contains(id); }))
      reduced_.insert(op.out.begin(), op.out.end());
    const std::optional<int> along = op.out.size() == 1 ? long_axis(type(op.out[0])) : std::nullopt;
    if (!along) {
      const bool happens = has_effect(op.code) && op.code != Code::Assume;
      if (any_cut || happens || !op.regions.empty()) return false;
      if (wrote_ && reads_memory(op.code)) return false;
      out.copy(op);
      return true;
    }
    switch (op.code) {
      case Code::Vload: {
        if (wrote_ || !may_access(op, *along)) return false;
        return emit(out, moved(op, *along), at_column(out, op, *along), *along);
      }
      case Code::Iota: {
        const Type whole = type(op.out[0]);
        Type part = whole;
        part.shape = {result_.part};
        const ValueId own = out.emit({.code = Code::Iota}, part);
        const ValueId from = out.emit(
            {.code = Code::Broadcast, .in = {out.cast(result_.column, whole.dtype)}}, part);
        return emit(out, {.code = Code::Map, .function = Function::Add, .out = op.out}, {own, from},
                    *along);
      }
      case Code::Const: return emit(out, op, {}, *along);
      case Code::Broadcast: return emit(out, op, out.of(op.in), *along);
      case Code::Map:
      case Code::Cast:
      case Code::Bitcast:
      case Code::Reshape:
        for (const ValueId in : op.in)
          if (!axis(in)) return false;
        return emit(out, op, out.of(op.in), *along);
      case Code::Permute: return axis(op.in[0]) && emit(out, op, out.of(op.in), *along);
      default: return false;
    }
  }

  bool store(Rewrite& out, const Operation& op) {
    wrote_ = true;
    const std::optional<int> along = axis(op.in.back());
    if (!along) {
      wrote_beside_ = true;
      out.copy(op);
      return true;
    }
    // Stores besides the row come after it.
    if (wrote_beside_ || !may_access(op, *along)) return false;
    ++stores_;
    Operation now = moved(op, *along);
    now.in = at_column(out, op, *along);
    out.emit(std::move(now));
    return true;
  }

  /// Elements of the row are contiguous, as known before any reduction.
  bool may_access(const Operation& op, int along) const {
    const int rank = type(op.in[0]).rank();
    return type(op.in[0]).strides[static_cast<std::size_t>(along)] == 1 &&
           std::none_of(op.in.begin(), op.in.begin() + 1 + rank,
                        [&](ValueId id) { return reduced_.contains(id); });
  }

  /// Access to the row as an access to a part, without in-bounds marks along the row.
  static Operation moved(Operation op, int along) {
    if (static_cast<std::size_t>(along) < op.ints.size())
      op.ints[static_cast<std::size_t>(along)] = 0;
    return op;
  }
  std::vector<ValueId> at_column(Rewrite& out, const Operation& op, int along) const {
    std::vector<ValueId> in = out.of(op.in);
    ValueId& start = in[1 + static_cast<std::size_t>(along)];
    start = out.map(Function::Add, {out.cast(start, DType::I64), result_.column});
    return in;
  }

  const Kernel& kernel_;
  CutRows result_;
  bool fits_ = true, reduces_ = false, wrote_ = false, wrote_beside_ = false;
  int stores_ = 0;
  std::map<ValueId, int> axes_;  // by value of the source
  std::set<ValueId> reduced_;    // values that depend on a reduction
};

template <class T>
Literal limit(bool least) {
  return {0, static_cast<std::int64_t>(least ? std::numeric_limits<T>::min()
                                             : std::numeric_limits<T>::max())};
}

std::optional<Literal> limit_of(DType dtype, bool least) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (dtype) {
    case DType::F16:
    case DType::BF16:
    case DType::F32:
    case DType::F64: return Literal{least ? -kInfinity : kInfinity, 0};
    case DType::I8: return limit<std::int8_t>(least);
    case DType::I16: return limit<std::int16_t>(least);
    case DType::I32: return limit<std::int32_t>(least);
    case DType::I64: return limit<std::int64_t>(least);
    case DType::U8: return limit<std::uint8_t>(least);
    case DType::U16: return limit<std::uint16_t>(least);
    case DType::U32: return limit<std::uint32_t>(least);
    case DType::U64: return limit<std::uint64_t>(least);
    default: return {};
  }
}

}  // namespace

std::optional<Literal> neutral_of(Function function, DType dtype) {
  const bool floats = is_float(dtype);
  const std::optional<Literal> least = limit_of(dtype, true);
  if (!least) return {};
  switch (function) {
    case Function::Add: return Literal{-0.0, 0};  // -0 + -0 is -0
    case Function::Mul: return Literal{1, 1};
    case Function::Max:
    case Function::Min:
      if (floats) return Literal{std::numeric_limits<double>::quiet_NaN(), 0};
      return limit_of(dtype, function == Function::Max);
    case Function::Maximum: return least;
    case Function::Minimum: return limit_of(dtype, false);
    default: return {};
  }
}

std::optional<CutRows> cut_rows(const Kernel& kernel, std::int64_t extent, std::int64_t part) {
  return Cut(kernel, extent, part).run();
}

}  // namespace tessera::tile
