#include "tessera/expr/small_types.h"

#include <algorithm>

#include "tessera/expr/walk.h"

namespace tessera {
namespace {

/// Functions that are exact for arguments of every type.
bool is_exact(Fn fn) {
  switch (fn) {
    case Fn::Neg:
    case Fn::Abs:
    case Fn::Max:
    case Fn::Min:
    case Fn::Equal:
    case Fn::Less:
    case Fn::LessEqual:
    case Fn::Select: return true;
    default: return false;
  }
}

class SmallTypes {
 public:
  explicit SmallTypes(const Definition& definition) : definition_(definition) {}

  std::optional<DType> computed() const {
    for (const Output& output : definition_.outputs) {
      if (auto found = within(output.value, output.dtype)) return found;
      if (!output.forward) continue;
      for (const Scalar& index : output.forward->target)
        if (auto found = within(index, DType::I64)) return found;
      if (auto found = within(output.forward->value, output.dtype)) return found;
      if (is_small(output.dtype) && output.forward->combine) return output.dtype;
    }
    return std::nullopt;
  }

 private:
  /// Small type of an expression that is an element of an operand, without arithmetic.
  std::optional<DType> element(const Scalar& scalar) const {
    if (const auto* cast = std::get_if<node::Cast>(&scalar.node()))
      return is_small(cast->to) ? std::optional(cast->to) : std::nullopt;
    if (const auto* read = std::get_if<node::Read>(&scalar.node())) {
      const auto operand = std::ranges::find(definition_.inputs, read->operand, &Operand::name);
      const bool small = operand != definition_.inputs.end() && is_small(operand->dtype);
      return small ? std::optional(operand->dtype) : std::nullopt;
    }
    const auto* apply = std::get_if<node::Apply>(&scalar.node());
    if (apply == nullptr || apply->fn != Fn::Select) return std::nullopt;
    const auto then = element(apply->args[1]);
    return then ? then : element(apply->args[2]);
  }

  /// Small type on which an expression does arithmetic before it is stored as `stored`.
  std::optional<DType> within(const Scalar& value, DType stored) const {
    const bool is_constant = std::holds_alternative<node::Constant>(value.node());
    if (is_small(stored) && !is_constant && element(value) != stored) return stored;
    std::optional<DType> found;
    const auto see = [&](const Scalar& argument) {
      if (!found) found = element(argument);
    };
    for_each_within(value, [&](const Scalar& part) {
      if (const auto* apply = std::get_if<node::Apply>(&part.node());
          apply != nullptr && !is_exact(apply->fn))
        std::ranges::for_each(apply->args, see);
      if (const auto* component = std::get_if<node::Component>(&part.node()))
        std::ranges::for_each(component->fold->lift, see);
    });
    return found;
  }

  const Definition& definition_;
};

}  // namespace

std::optional<DType> computed_small_type(const Definition& definition) {
  return SmallTypes(definition).computed();
}

}  // namespace tessera
