#include "tessera/tile/passes/carry_offsets.h"

#include <algorithm>
#include <utility>

#include "tessera/tile/passes/affine_tiles.h"

namespace tessera::tile {
namespace {

class Carrying {
 public:
  explicit Carrying(const Kernel& kernel) : kernel_(kernel), source_(kernel), forms_(kernel) {}

  Kernel run() && {
    kernel_.body = walk(kernel_.body);
    return std::move(kernel_);
  }

 private:
  ValueId value(Type type) {
    kernel_.values.push_back({std::move(type), {}});
    return static_cast<ValueId>(kernel_.values.size() - 1);
  }

  ValueId append(std::vector<OpId>& ops, Operation op, Type type) {
    op.out = {value(std::move(type))};
    return append(ops, std::move(op));
  }
  ValueId append(std::vector<OpId>& ops, Operation op) {
    const ValueId out = op.out[0];
    ops.push_back(static_cast<OpId>(kernel_.ops.size()));
    kernel_.ops.push_back(std::move(op));
    return out;
  }

  /// Sum of what is added to `from`, step by step, to get `to`: scalars or constants, broadcast
  /// over the tile. None where it is computed otherwise.
  std::optional<std::vector<const Operation*>> steps(ValueId from, ValueId to) const {
    std::vector<const Operation*> all;
    while (to != from) {
      const Operation* op = forms_.definition(to);
      const bool sum = op != nullptr && (op->code == Code::Offset ||
                                         (op->code == Code::Map && op->function == Function::Add));
      if (!sum) return {};
      const Operation* by = forms_.definition(op->in[1]);
      const bool constant = by != nullptr && by->code == Code::Const;
      const bool spread =
          by != nullptr && by->code == Code::Broadcast && source_.type(by->in[0]).is_scalar();
      if (!constant && !spread) return {};
      all.push_back(by);
      to = op->in[0];
    }
    return all;
  }

  Region walk(const Region& region) {
    Region result{.params = region.params};
    for (const OpId id : region.ops) {
      std::vector<OpId> after;
      if (kernel_.ops[id].code == Code::For) loop(id, result.ops, after);
      for (std::size_t i = 0; i < kernel_.ops[id].regions.size(); ++i) {
        Region inner = walk(kernel_.ops[id].regions[i]);
        kernel_.ops[id].regions[i] = std::move(inner);
      }
      result.ops.push_back(id);
      result.ops.insert(result.ops.end(), after.begin(), after.end());
    }
    return result;
  }

  void loop(OpId id, std::vector<OpId>& before, std::vector<OpId>& after) {
    const Operation op = kernel_.ops[id];
    for (std::size_t i = 0; i < op.out.size(); ++i) {
      const ValueId start = op.in[3 + i], param = op.regions[0].params[1 + i];
      const Type& type = source_.type(start);
      if (!type.is_tile() || !(type.is_pointer() || is_integer(type.dtype))) continue;
      const auto by = steps(param, yields(source_, op.regions[0])[i]);
      if (by && forms_.tile(start)) replace(id, i, *by, before, after);
    }
  }

  void replace(OpId id, std::size_t i, const std::vector<const Operation*>& steps,
               std::vector<OpId>& before, std::vector<OpId>& after) {
    const Type tile = source_.type(kernel_.ops[id].in[3 + i]);
    const Type moved = Type::tile(tile.is_pointer() ? DType::I64 : tile.dtype, tile.shape);
    const Type scalar = moved.shaped({});
    const ValueId start = kernel_.ops[id].in[3 + i];
    /// The tile advanced by an offset.
    const auto place = [&](std::vector<OpId>& ops, ValueId by, ValueId as) {
      const ValueId spread = append(ops, {.code = Code::Broadcast, .in = {by}}, moved);
      append(ops, {.code = tile.is_pointer() ? Code::Offset : Code::Map,
                   .function = tile.is_pointer() ? Function::None : Function::Add,
                   .in = {start, spread},
                   .out = {as}});
    };
    kernel_.ops[id].in[3 + i] = append(before, {.code = Code::Const}, scalar);

    const ValueId param = value(scalar);
    std::vector<OpId> body;
    place(body, param, std::exchange(kernel_.ops[id].regions[0].params[1 + i], param));
    const std::vector<OpId> rest = kernel_.ops[id].regions[0].ops;
    body.insert(body.end(), rest.begin(), rest.end() - 1);
    ValueId sum = param;
    for (const Operation* step : steps) {
      const bool constant = step->code == Code::Const;
      ValueId by = constant ? append(body, {.code = Code::Const, .literal = step->literal}, scalar)
                            : step->in[0];
      if (kernel_.type(by).dtype != scalar.dtype)
        by = append(body, {.code = Code::Cast, .in = {by}}, scalar);
      sum = append(body, {.code = Code::Map, .function = Function::Add, .in = {sum, by}}, scalar);
    }
    body.push_back(rest.back());
    kernel_.ops[rest.back()].in[i] = sum;
    kernel_.ops[id].regions[0].ops = std::move(body);

    const ValueId out = value(scalar);
    place(after, out, std::exchange(kernel_.ops[id].out[i], out));
  }

  Kernel kernel_;
  const Kernel& source_;
  AffineTiles forms_;  // of the source
};

}  // namespace

Kernel carry_offsets(const Kernel& kernel) {
  return Carrying(kernel).run();
}

}  // namespace tessera::tile
