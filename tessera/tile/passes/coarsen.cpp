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
  /// Axis along which a tile holds the elements of `count` programs: one that has extent 1 in a
  /// program, or one that a program does not have.
  struct RowAxis {
    std::size_t at = 0;
    bool is_new = false;
    bool operator==(const RowAxis&) const = default;
  };
  std::optional<RowAxis> axis(ValueId id) const {
    const auto found = axes_.find(id);
    return found == axes_.end() ? std::nullopt : std::optional(found->second);
  }
  const Type& type(ValueId id) const { return kernel_.type(id); }
  static Type with_axis(const Type& type, RowAxis axis, std::int64_t extent) {
    Extents shape = type.shape;
    if (axis.is_new)
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis.at), extent);
    else
      shape[axis.at] = extent;
    return Type::tile(type.dtype, std::move(shape));
  }

  /// Operand as tiles of `count` programs.
  ValueId spread(Rewrite& out, ValueId id, RowAxis along) const {
    if (axis(id)) return out.of(id);
    ValueId one = out.of(id);
    if (along.is_new && type(id).is_tile())
      one = out.emit({.code = Code::Reshape, .in = {one}}, with_axis(type(id), along, 1));
    return out.emit({.code = Code::Broadcast, .in = {one}}, with_axis(type(id), along, count_));
  }

  /// The operation on tiles of `count` programs; its result has them along `along`.
  bool emit(Rewrite& out, Operation now, RowAxis along) {
    if (now.out.size() != 1) return false;
    const ValueId old = now.out[0];
    const Type& result = type(old);
    if (along.at >= result.shape.size() + (along.is_new ? 1 : 0)) return false;
    if (!along.is_new && result.shape[along.at] != 1) return false;
    // In-bounds marks of a load were for one row.
    if (now.code == Code::Vload && along.at < now.ints.size()) now.ints[along.at] = 0;
    out.set(old, out.emit(std::move(now), with_axis(result, along, count_)));
    axes_[old] = along;
    return true;
  }
  bool emit(Rewrite& out, const Operation& op, std::vector<ValueId> in, RowAxis along) {
    Operation now = op;
    now.in = std::move(in);
    return emit(out, std::move(now), along);
  }

  bool visit(Rewrite& out, const Operation& op) {
    if (op.code == Code::Pid && op.ints[0] == 0) {
      const ValueId group = out.emit(op, type(op.out[0]));
      out.set(op.out[0], out.map(Function::Mul, {group, out.index(count_)}));
      rows_.push_back(op.out[0]);
      return any_ = true;
    }
    if (std::any_of(op.in.begin(), op.in.end(), [&](ValueId id) { return is_of_row(id); }))
      return op.code == Code::Assume || number_of_row(out, op);
    if (op.code == Code::Vload || op.code == Code::Vstore) return access(out, op);
    if (std::any_of(op.in.begin(), op.in.end(), [&](ValueId id) { return is_row(id); }))
      return number_of_row(out, op);
    const auto wide =
        std::find_if(op.in.begin(), op.in.end(), [&](ValueId id) { return axis(id).has_value(); });
    if (wide == op.in.end()) {
      const bool happens = has_effect(op.code) && op.code != Code::Assume;
      if (happens || !op.regions.empty()) return false;
      out.copy(op);
      return true;
    }
    return of_rows(out, op, *axis(*wide));
  }

  /// Arithmetic on the number of a program, for what is assumed of it. Other uses are rejected.
  bool number_of_row(Rewrite& out, const Operation& op) {
    if (!is_pure(kernel_, op) || !op.regions.empty()) return false;
    out.copy(op);
    for (const ValueId id : op.out) {
      if (type(id).is_tile() || type(id).is_view()) return false;
      of_rows_.push_back(id);
    }
    return true;
  }

  bool of_rows(Rewrite& out, const Operation& op, RowAxis along) {
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
      case Code::Broadcast: {
        if (type(op.in[0]).is_tile()) return emit(out, op, out.of(op.in), along);
        Extents ones(1 + type(op.out[0]).shape.size(), 1);
        ones[0] = count_;
        const ValueId column = out.emit({.code = Code::Reshape, .in = {out.of(op.in[0])}},
                                        Type::tile(type(op.in[0]).dtype, ones));
        return emit(out, op, {column}, along);
      }
      case Code::Reshape: {
        const auto to = reshaped(type(op.in[0]).shape, type(op.out[0]).shape, along.at);
        return to && emit(out, op, out.of(op.in), *to);
      }
      case Code::Permute: return permute(out, op, along);
      case Code::Reduce: {
        const auto reduced = static_cast<std::size_t>(op.ints[0]);
        if (!op.regions.empty() || (!along.is_new && reduced == along.at)) return false;
        Operation now = op;
        now.in = out.of(op.in);
        if (along.is_new && along.at <= reduced) ++now.ints[0];
        if (reduced < along.at) --along.at;
        return emit(out, std::move(now), along);
      }
      default: return false;
    }
  }

  bool permute(Rewrite& out, const Operation& op, RowAxis along) {
    Operation now = op;
    now.in = out.of(op.in);
    const auto at = static_cast<std::int64_t>(along.at);
    if (along.is_new) {
      for (std::int64_t& from : now.ints) from += from >= at ? 1 : 0;
      now.ints.insert(now.ints.begin(), at);
      return emit(out, std::move(now), RowAxis{.at = 0, .is_new = true});
    }
    along.at =
        static_cast<std::size_t>(std::find(op.ints.begin(), op.ints.end(), at) - op.ints.begin());
    return emit(out, std::move(now), along);
  }

  /// Axis of rows after a reshape: after as many elements. One of extent 1, or else a new one.
  static std::optional<RowAxis> reshaped(const Extents& from, const Extents& to,
                                         std::size_t along) {
    const auto before = [](const Extents& shape, std::size_t axis) {
      std::int64_t count = 1;
      for (std::size_t i = 0; i < axis; ++i) count *= shape[i];
      return count;
    };
    const std::int64_t elements = before(from, along);
    const auto fits = [&](std::size_t axis) {
      return axis < to.size() && to[axis] == 1 && before(to, axis) == elements;
    };
    if (fits(along)) return RowAxis{along};
    for (std::size_t i = 0; i < to.size(); ++i)
      if (fits(i)) return RowAxis{i};
    for (std::size_t i = 0; i <= to.size(); ++i)
      if (before(to, i) == elements) return RowAxis{.at = i, .is_new = true};
    return {};
  }

  bool access(Rewrite& out, const Operation& op) {
    const bool writes = op.code == Code::Vstore;
    std::optional<RowAxis> along;
    for (std::size_t i = 1; i < op.in.size() - (writes ? 1 : 0); ++i) {
      if (!is_row(op.in[i])) continue;
      if (along) return false;
      along = RowAxis{i - 1};
    }
    if (!writes) {
      if (along) return emit(out, op, out.of(op.in), *along);
      out.copy(op);
      return true;
    }
    const ValueId x = op.in.back();
    if (!along || type(x).shape[along->at] != 1 || axis(x).value_or(*along) != *along) return false;
    Operation now = op;
    now.in = out.of(op.in);
    now.in.front() = within_grid(out, op.in.front(), along->at);
    now.in.back() = spread(out, x, *along);
    if (along->at < now.ints.size()) now.ints[along->at] = 0;
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
  bool is_of_row(ValueId id) const {
    return std::find(of_rows_.begin(), of_rows_.end(), id) != of_rows_.end();
  }

  const Kernel& kernel_;
  std::int64_t count_;
  bool fits_ = true, any_ = false;
  std::vector<ValueId> rows_;     // program ids
  std::vector<ValueId> of_rows_;  // numbers that are computed from them
  std::map<ValueId, RowAxis> axes_;
};

}  // namespace

std::optional<Kernel> coarsen(const Kernel& kernel, std::int64_t count) {
  return Coarsen(kernel, count).run();
}

}  // namespace tessera::tile
