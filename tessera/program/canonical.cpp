#include "tessera/program/canonical.h"

#include <fmt/format.h>

#include "tessera/expr/text.h"
#include "tessera/expr/transform.h"

namespace tessera::program {

CanonicalGroup canonical(const lower::Group& group) {
  CanonicalGroup result;
  std::map<std::string, std::string, std::less<>> axes;
  const auto tensor = [&](const std::string& name) {
    return result.name_of.emplace(name, fmt::format("t{}", result.name_of.size())).first->second;
  };
  const auto axis = [&](const std::string& name) {
    return axes.emplace(name, fmt::format("i{}", axes.size())).first->second;
  };
  for (const tile::Stage& stage : group.stages) {
    tile::Stage made = stage;
    for (Operand& operand : made.operands) operand.name = tensor(operand.name);
    made.output.name = tensor(stage.name());
    for (MergedAxis& merged : made.output.axes)
      for (Axis& part : merged.parts) part.name = axis(part.name);
    Transform transform;
    transform.index = [&](const std::string& name) { return index_of(axis(name)); };
    transform.bound = axis;
    transform.read = [&](const node::Read& read) {
      return Scalar(Node(node::Read{tensor(read.operand), read.sort, read.at, read.otherwise}));
    };
    made.output.value = transform(stage.output.value);
    if (made.output.forward) {
      ScatterWrite& forward = *made.output.forward;
      for (Axis& over : forward.over) over.name = axis(over.name);
      for (Scalar& target : forward.target) target = transform(target);
      forward.value = transform(forward.value);
    }
    result.key += to_text(Definition{.inputs = made.operands, .outputs = {made.output}}) + "\n";
    result.group.stages.push_back(std::move(made));
  }
  for (const std::string& name : group.results) {
    result.group.results.push_back(result.name_of.at(name));
    result.key += result.group.results.back() + " ";
  }
  for (const std::string& name : group.weights)
    if (const auto it = result.name_of.find(name); it != result.name_of.end()) {
      result.group.weights.insert(it->second);
    }
  for (const std::string& name : result.group.weights) result.key += "w " + name + " ";
  result.group.box = group.box;
  if (group.box)
    result.key += fmt::format("box {} of {} ", fmt::join(group.box->start, ","),
                              fmt::join(group.box->whole, ","));
  return result;
}

}  // namespace tessera::program
