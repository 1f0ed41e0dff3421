#include "tessera/tile/passes/exponents.h"

#include <cmath>
#include <numbers>
#include <optional>

#include "tessera/tile/builder.h"
#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile {
namespace {

class ExponentFusion {
 public:
  void visit(Rewrite& out, const Operation& op) {
    if (op.code == Code::Map && op.function == Function::Exp && exp_of_difference(out, op)) return;
    if (op.code == Code::Reduce && op.regions.empty() && maximum_of_product(out, op)) return;
    out.copy(op);
  }

 private:
  struct Scaled {
    ValueId x = 0;
    double factor = 1;
  };

  /// x * c with a constant c.
  static std::optional<Scaled> scaled(const Rewrite& out, ValueId id) {
    const Operation* op = out.definition(id);
    if (op == nullptr || op->code != Code::Map || op->function != Function::Mul) return {};
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
      if (const auto factor = out.literal(op->in[i])) return Scaled{op->in[1 - i], factor->number};
    return {};
  }

  static ValueId constant(Rewrite& out, const Type& type, double number) {
    return out.constant(type, literal_of(type.dtype, number));
  }

  static bool exp_of_difference(Rewrite& out, const Operation& op) {
    const Type type = out.source().type(op.out[0]);
    if (!type.is_tile() || type.dtype != DType::F32) return false;
    const Operation* difference = out.definition(out.of(op.in[0]));
    if (difference == nullptr || difference->code != Code::Map ||
        difference->function != Function::Sub)
      return false;
    const ValueId from = difference->in[0], row = difference->in[1];
    // A row is broadcast along some axis: fewer elements than the tile has.
    const Operation* broadcast = out.definition(row);
    if (broadcast == nullptr || broadcast->code != Code::Broadcast) return false;
    const ValueId narrow = broadcast->in[0];
    const Scaled x = scaled(out, from).value_or(Scaled{from, 1});
    const Type row_type = out.type(narrow);
    const ValueId shift =
        out.map(Function::Mul, {narrow, constant(out, row_type, -std::numbers::log2e)});
    const ValueId wide = out.emit({.code = Code::Broadcast, .in = {shift}}, type);
    out.set(op.out[0],
            out.map(Function::Exp2,
                    {out.map(Function::Fma,
                             {x.x, constant(out, type, x.factor * std::numbers::log2e), wide})}));
    return true;
  }

  static bool maximum_of_product(Rewrite& out, const Operation& op) {
    if ((op.function != Function::Max && op.function != Function::Maximum) || op.in.size() != 1)
      return false;
    const Type type = out.source().type(op.out[0]);
    if (type.dtype != DType::F32) return false;
    const auto x = scaled(out, out.of(op.in[0]));
    if (!x || !(x->factor > 0) || !std::isfinite(x->factor)) return false;
    Operation reduce = op;
    reduce.in = {x->x};
    reduce.out.clear();
    const ValueId greatest = out.emit(std::move(reduce), type);
    out.set(op.out[0], out.map(Function::Mul, {greatest, constant(out, type, x->factor)}));
    return true;
  }
};

bool simplify_real(Rewrite& out, const Operation& op) {
  if (op.code != Code::Map || op.in.size() != 2 || out.source().type(op.out[0]).dtype != DType::F32)
    return false;
  const ValueId a = out.of(op.in[0]), b = out.of(op.in[1]);
  const auto is = [&](ValueId id, double number) {
    const std::optional<Literal> literal = out.literal(id);
    return literal && literal->number == number;
  };
  if (op.function == Function::Add && (is(a, 0) || is(b, 0))) {
    out.set(op.out[0], is(b, 0) ? a : b);
    return true;
  }
  const Operation* root = out.definition(b);
  if (op.function != Function::Div || !is(a, 1) || root == nullptr || root->code != Code::Map ||
      root->function != Function::Sqrt)
    return false;
  out.set(op.out[0], out.map(Function::Rsqrt, {root->in[0]}));
  return true;
}

}  // namespace

Kernel simplify_reals(const Kernel& kernel) {
  return Rewrite::run(kernel, [](Rewrite& out, const Operation& op) {
    if (!simplify_real(out, op)) out.copy(op);
  });
}

Kernel fuse_exponents(const Kernel& kernel) {
  ExponentFusion fusion;
  return Rewrite::run(kernel, [&](Rewrite& out, const Operation& op) { fusion.visit(out, op); });
}

}  // namespace tessera::tile
