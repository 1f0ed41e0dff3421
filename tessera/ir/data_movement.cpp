#include "tessera/ir/data_movement.h"

namespace tessera {

std::optional<DataMovement> data_movement(const OpDef& op, const Attrs& attrs,
                                          const std::vector<ValueInfo>& inputs) {
  if (op.kind() != OpDef::Kind::Core || !op.pure) return std::nullopt;
  const auto signature = signature_of(inputs);
  if (!signature) return std::nullopt;
  auto definition = op.define(attrs, *signature);
  if (!definition || definition->outputs.size() != 1 || definition->outputs[0].forward)
    return std::nullopt;
  DataMovement result{.definition = *std::move(definition)};
  const Scalar* value = &result.output().value;
  if (const auto* cast = std::get_if<node::Cast>(&value->node())) value = cast->arg.get();
  result.read = std::get_if<node::Read>(&value->node());
  if (result.read == nullptr) return std::nullopt;
  for (std::size_t i = 0, present = 0; i < inputs.size(); ++i) {
    if (!inputs[i].present) continue;
    if (result.definition.inputs[present++].name != result.read->operand) continue;
    result.operand = i;
    return result;
  }
  return std::nullopt;
}

}  // namespace tessera
