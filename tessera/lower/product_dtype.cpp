#include "tessera/lower/product_dtype.h"

#include <algorithm>

#include "tessera/expr/transform.h"

namespace tessera::lower {
namespace {

/// Whether every value of an expression is a number of a 16-bit float type.
bool is_exact_in(DType dtype, const Scalar& scalar, const tile::Stage& stage) {
  const auto exact = [&](const Scalar& part) { return is_exact_in(dtype, part, stage); };
  if (const auto* cast = std::get_if<node::Cast>(&scalar.node()))
    return cast->to == dtype || (cast->to == DType::F32 && exact(*cast->arg));
  if (const auto* read = std::get_if<node::Read>(&scalar.node())) {
    const auto operand = std::ranges::find(stage.operands, read->operand, &Operand::name);
    return operand != stage.operands.end() && operand->dtype == dtype &&
           (read->otherwise == nullptr || exact(*read->otherwise));
  }
  if (const auto* constant = std::get_if<node::Constant>(&scalar.node()))
    return constant->sort == Sort::Value && (constant->number == 0 || constant->number == 1);
  if (const auto* apply = std::get_if<node::Apply>(&scalar.node())) {
    if (apply->fn == Fn::Neg) return exact(apply->args[0]);
    if (apply->fn == Fn::Select) return exact(apply->args[1]) && exact(apply->args[2]);
  }
  return false;
}

/// The two factors of a sum of products; none for other stages.
const node::Apply* factors_of(const tile::Stage& stage, std::shared_ptr<const Fold>& fold) {
  fold = tile::main_fold(stage);
  if (fold == nullptr || fold->simple() != Fn::Add) return nullptr;
  const auto* product = std::get_if<node::Apply>(&fold->lift[0].node());
  return product != nullptr && product->fn == Fn::Mul ? product : nullptr;
}

}  // namespace

std::optional<DType> product_dtype(const Group& group) {
  for (const DType dtype : {DType::F16, DType::BF16}) {
    bool any = false, all = true;
    for (const tile::Stage& stage : group.stages) {
      std::shared_ptr<const Fold> fold;
      const node::Apply* product = factors_of(stage, fold);
      if (product == nullptr) continue;
      any = true;
      all = all && std::ranges::all_of(product->args, [&](const Scalar& factor) {
              return is_exact_in(dtype, factor, stage);
            });
    }
    if (any && all) return dtype;
  }
  return std::nullopt;
}

Group without_roundings(Group group) {
  const auto is_between = [&](const std::string& name) {
    return std::ranges::find(group.results, name) == group.results.end() &&
           std::ranges::any_of(group.stages, [&](const auto& s) { return s.name() == name; });
  };
  Transform transform;
  transform.cast = [](DType to, const Scalar& arg) -> std::optional<Scalar> {
    if (!is_half(to) || arg.sort() != Sort::Value) return std::nullopt;
    return arg;
  };
  for (tile::Stage& stage : group.stages) {
    stage.output.value = transform(stage.output.value);
    if (is_half(stage.output.dtype) && is_between(stage.name())) stage.output.dtype = DType::F32;
    for (Operand& operand : stage.operands)
      if (is_half(operand.dtype) && is_between(operand.name)) operand.dtype = DType::F32;
  }
  return group;
}

}  // namespace tessera::lower
