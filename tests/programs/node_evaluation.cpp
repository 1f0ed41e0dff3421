#include "tests/programs/node_evaluation.h"

#include "tessera/interp/interp.h"

namespace tessera::testing {

template <class T>
std::optional<std::vector<Datum>> evaluate(NodeCall call) {
  Graph alone;
  std::vector<interp::Value> inputs;
  call.node.inputs.clear();
  for (const Datum& operand : call.operands) {
    call.node.inputs.push_back(operand.present() ? alone.add_input(Type::unknown(), "")
                                                 : ValueId{});
    if (operand.present()) inputs.push_back({.datum = operand});
  }
  alone.set_outputs(alone.add_node(std::move(call.node)));
  const auto results = interp::run_as<T>(alone, inputs, {});
  if (!results) return std::nullopt;
  std::vector<Datum> data;
  for (const interp::Value& result : *results) data.push_back(result.datum);
  return data;
}

template std::optional<std::vector<Datum>> evaluate<double>(NodeCall);
template std::optional<std::vector<Datum>> evaluate<float>(NodeCall);

}  // namespace tessera::testing
