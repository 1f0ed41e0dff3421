#include "tessera/driver/program_signature.h"

#include <algorithm>

namespace tessera {

Model signature_model(const runtime::Program& program) {
  Model model;
  for (const runtime::ValueIndex input : program.inputs) {
    const runtime::Value& value = program.values[input];
    const Type type =
        value.home == runtime::Value::Home::Boxed
            ? Type::unknown()
            : Type::tensor(value.dtype, Shape(value.shape.begin(), value.shape.end()));
    model.graph.add_input(type, value.name);
  }
  for (const runtime::ValueIndex output : program.outputs)
    model.output_names.push_back(program.values[output].name);
  model.graph.set_name(program.name);
  model.file_bytes = static_cast<std::int64_t>(program.weights.size());
  return model;
}

Expected<std::vector<Datum>> make_program_inputs(const runtime::Program& program,
                                                 InputOptions options) {
  for (const runtime::Step& step : program.steps)
    if (const auto* check = std::get_if<runtime::step::CheckIndices>(&step)) {
      const std::string& name = program.values[check->at.value].name;
      const auto [limit, is_new] = options.index_limits.emplace(name, check->high + 1);
      if (!is_new) limit->second = std::min(limit->second, check->high + 1);
    }
  return make_inputs(signature_model(program).graph, std::move(options));
}

}  // namespace tessera
