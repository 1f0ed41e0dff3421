#include "tessera/tile/passes/coarsen.h"

#include <algorithm>
#include <map>

#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile {
namespace {

class Coarsen {
 public:
  Coarsen(const Kernel& kernel, std::int64_t count) : kernel_(kernel), count_(count) {}

  std::optional<Kernel> run() {
    Kernel result = Rewrite::run(kernel_, [&](Rewrite& out, const Operation& op) {
      if (fits_) fits_ = visit(out, op);
      // The result is discarded after a failure, but operands have to be valid.
      if (!fits_) out.copy(op);
    });
    if (!fits_ || !any_) return {};
    return result;
  }

 private:
  /// Axis along which a tile holds the elements of `count` programs; none: it is uniform.
  std::optional<std::size_t> axis(ValueId id) const {
    const auto found = axes_.find(id);
    return found == axes_.end() ? std::nullopt : std::optional(found->second);
  }
  const Type& type(ValueId id) const { return kernel_.type(id); }
  Type widened(Type type, std::size_t axis) const {
    type.shape[axis] = count_;
    return type;
  }

  /// Operand as tiles of `count` programs, along an axis that has extent 1 in one program.
  ValueId spread(Rewrite& out, ValueId id, std::size_t along) const {
    if (axis(id)) return out.of(id);
    return out.emit({.code = Code::Broadcast, .in = {out.of(id)}}, widened(type(id), along));
  }

  /// The operation on tiles of `count` programs; its results have them along `along`.
  bool emit(Rewrite& out, const Operation& op, std::vector<ValueId> in, std::size_t along) {
    const Type& result = type(op.out[0]);
    if (op.out.size() != 1 || along >= result.shape.size() || result.shape[along] != 1)
      return false;
    Operation now = op;
    now.in = std::move(in);
    // In-bounds marks of a load were for one row.
    if (now.code == Code::Vload && along < now.ints.size()) now.ints[along] = 0;
    out.set(op.out[0], out.emit(std::move(now), widened(result, along)));
    axes_[op.out[0]] = along;
    return true;
  }

  bool visit(Rewrite& out, const Operation& op) {
    if (op.code == Code::Pid && op.ints[0] == 0) {
      const ValueId group = out.emit(op, type(op.out[0]));
      out.set(op.out[0], out.map(Function::Mul, {group, out.index(count_)}));
      rows_.push_back(op.out[0]);
      return any_ = true;
    }
    if (op.code == Code::Vload || op.code == Code::Vstore) return access(out, op);
    if (std::any_of(op.in.begin(), op.in.end(), [&](ValueId id) { return is_row(id); }))
      return false;
    const auto wide =
        std::find_if(op.in.begin(), op.in.end(), [&](ValueId id) { return axis(id).has_value(); });
    if (wide == op.in.end()) {
      const bool happens = has_effect(op.code) && op.code != Code::Assume;
      if (happens || !op.regions.empty()) return false;
      out.copy(op);
      return true;
    }
    const std::size_t along = *axis(*wide);
    switch (op.code) {
      case Code::Map:
      case Code::Cast:
      case Code::Bitcast: {
        std::vector<ValueId> in;
        for (const ValueId id : op.in) {
          if (axis(id).value_or(along) != along) return false;
          in.push_back(spread(out, id, along));
        }
        return emit(out, op, std::move(in), along);
      }
      case Code::Broadcast: return emit(out, op, out.of(op.in), along);
      case Code::Reshape: {
        const auto to = reshaped(type(op.in[0]).shape, type(op.out[0]).shape, along);
        return to && emit(out, op, out.of(op.in), *to);
      }
      case Code::Permute: {
        const auto to = std::find(op.ints.begin(), op.ints.end(), static_cast<std::int64_t>(along));
        return emit(out, op, out.of(op.in), static_cast<std::size_t>(to - op.ints.begin()));
      }
      case Code::Reduce: {
        const auto reduced = static_cast<std::size_t>(op.ints[0]);
        if (!op.regions.empty() || reduced == along) return false;
        return emit(out, op, out.of(op.in), along - (reduced < along ? 1 : 0));
      }
      default: return false;
    }
  }

  /// Position of an axis of extent 1 after a reshape: after as many elements.
  static std::optional<std::size_t> reshaped(const Extents& from, const Extents& to,
                                             std::size_t along) {
    const auto before = [](const Extents& shape, std::size_t axis) {
      std::int64_t count = 1;
      for (std::size_t i = 0; i < axis; ++i) count *= shape[i];
      return count;
    };
    const auto fits = [&](std::size_t axis) {
      return axis < to.size() && to[axis] == 1 && before(to, axis) == before(from, along);
    };
    if (fits(along)) return along;
    for (std::size_t i = 0; i < to.size(); ++i)
      if (fits(i)) return i;
    return {};
  }

  bool access(Rewrite& out, const Operation& op) {
    const bool writes = op.code == Code::Vstore;
    std::optional<std::size_t> along;
    for (std::size_t i = 1; i < op.in.size() - (writes ? 1 : 0); ++i) {
      if (!is_row(op.in[i])) continue;
      if (along) return false;
      along = i - 1;
    }
    if (!writes) {
      if (along) return emit(out, op, out.of(op.in), *along);
      out.copy(op);
      return true;
    }
    const ValueId x = op.in.back();
    if (!along || type(x).shape[*along] != 1 || axis(x).value_or(*along) != *along) return false;
    Operation now = op;
    now.in = out.of(op.in);
    now.in.front() = within_grid(out, op.in.front(), *along);
    now.in.back() = spread(out, x, *along);
    if (*along < now.ints.size()) now.ints[*along] = 0;
    out.emit(std::move(now));
    return true;
  }

  /// View without the rows of programs beyond the grid.
  ValueId within_grid(Rewrite& out, ValueId id, std::size_t along) const {
    const ValueId whole = out.of(id);
    Type bounded = type(id);
    bounded.shape[along] = kDynamic;
    const Type number = Type::scalar(DType::I64);
    const auto ask = [&](Code code, std::size_t axis) {
      return out.emit({.code = code, .in = {whole}, .ints = {static_cast<std::int64_t>(axis)}},
                      number);
    };
    std::vector<ValueId> in = {
        out.emit({.code = Code::Base, .in = {whole}}, Type::pointer(bounded.dtype))};
    for (std::size_t i = 0; i < bounded.shape.size(); ++i) {
      if (bounded.shape[i] != kDynamic) continue;
      ValueId extent = ask(Code::Dim, i);
      if (i == along) {
        const ValueId programs = out.emit({.code = Code::Npid, .ints = {0}}, number);
        extent = out.map(Function::Min, {extent, programs});
      }
      in.push_back(extent);
    }
    for (std::size_t i = 0; i < bounded.strides.size(); ++i)
      if (bounded.strides[i] == kDynamic) in.push_back(ask(Code::Stride, i));
    return out.emit({.code = Code::View, .in = std::move(in)}, bounded);
  }

  bool is_row(ValueId id) const { return std::find(rows_.begin(), rows_.end(), id) != rows_.end(); }

  const Kernel& kernel_;
  std::int64_t count_;
  bool fits_ = true, any_ = false;
  std::vector<ValueId> rows_;  // program ids
  std::map<ValueId, std::size_t> axes_;
};

}  // namespace

std::optional<Kernel> coarsen(const Kernel& kernel, std::int64_t count) {
  return Coarsen(kernel, count).run();
}

}  // namespace tessera::tile
