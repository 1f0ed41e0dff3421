#include "tessera/program/launches.h"

#include <algorithm>
#include <utility>

#include "tessera/program/values.h"

namespace tessera::program {
namespace {

runtime::Value temporary(const Operand& operand) {
  runtime::Value value{.name = operand.name, .dtype = operand.dtype};
  for (const Dim& dim : operand.shape) value.shape.push_back(dim.constant().value_or(0));
  return value;
}

/// Arguments of the kernels of one group: tensors, packed weights and temporaries, by name.
class LaunchArguments {
 public:
  LaunchArguments(DraftBuilder& out, const Graph& graph, const LoweredGroup& group,
                  const LaunchOperands& operands)
      : out_(out), graph_(graph) {
    const auto& names = group.canonical.name_of;
    for (const auto& [name, at] : operands.values)
      if (const auto it = names.find(name); it != names.end()) addresses_.emplace(it->second, at);
    for (const auto& [name, id] : operands.constants)
      if (const auto it = names.find(name); it != names.end()) constants_.emplace(it->second, id);
    const lower::GroupCode& code = *group.lowering->made;
    for (std::size_t i = 0; i < code.packings.size(); ++i) add_packed(group, i);
    for (const Operand& operand : code.temporaries)
      addresses_.emplace(operand.name, runtime::Address{out.add_value(temporary(operand))});
  }

  /// A constant that is not packed is a weight when it is first asked for.
  const runtime::Address& of(const std::string& name) {
    if (const auto it = addresses_.find(name); it != addresses_.end()) return it->second;
    const ValueId constant = constants_.at(name);
    return addresses_.emplace(name, runtime::Address{add_plain_weight(out_, graph_, constant)})
        .first->second;
  }

  /// Bytes of all tensors; of one in which a box is written, those of the box.
  double bytes(const lower::Group& group) const {
    double sum = 0;
    for (const auto& [name, at] : addresses_)
      sum += static_cast<double>(out_.value(at.value).bytes);
    if (!group.box) return sum;
    const Output& box = group.stages[0].output;
    return sum - static_cast<double>(out_.value(addresses_.at(box.name).value).bytes) +
           static_cast<double>(product(box.shape()).constant().value_or(0) * byte_width(box.dtype));
  }

 private:
  void add_packed(const LoweredGroup& group, std::size_t i) {
    const lower::Packing& packing = group.lowering->made->packings[i];
    const Output& output = packing.definition.outputs[0];
    const ValueId constant = constants_.at(packing.weight);
    runtime::Value value = temporary({graph_.name(constant), output.dtype, output.shape()});
    value.home = runtime::Value::Home::Weight;
    const WeightUse use{*graph_.constant(constant), {group.lowering, &packing.definition}};
    addresses_.emplace(output.name,
                       runtime::Address{out_.add_weight(constant.index, std::move(value), use,
                                                        group.lowering->packings[i])});
  }

  DraftBuilder& out_;
  const Graph& graph_;
  Addresses addresses_;
  ValueIds constants_;
};

}  // namespace

Expected<LoweredGroup> lowered(const lower::Group& group, Lowerings& lowerings) {
  LoweredGroup result{.canonical = canonical(group), .lowering = {}};
  result.lowering = lowerings.of(result.canonical);
  if (!result.lowering->made) return result.lowering->made.error();
  return result;
}

runtime::step::Launch launch_of(
    const lower::Lowered& lowered, std::uint32_t kernel,
    const std::function<const runtime::Address&(const std::string&)>& address_of,
    const DraftBuilder& out) {
  runtime::step::Launch launch{.kernel = kernel, .grid = lowered.grid};
  for (std::size_t i = 0; i < lowered.arguments.size(); ++i) {
    const runtime::Address& at = address_of(lowered.arguments[i]);
    const tile::Type& type = lowered.kernel.type(lowered.kernel.params()[i]);
    const std::int64_t offset = at.offset + lowered.offset(i) * byte_width(type.dtype);
    launch.patches.push_back({.word = static_cast<std::uint32_t>(launch.words.size()),
                              .at = {.value = at.value, .offset = offset},
                              .bytes = out.value(at.value).bytes - offset});
    launch.words.push_back(0);
    if (!type.is_view()) continue;
    for (const std::int64_t extent : type.shape)
      launch.words.push_back(static_cast<std::uint64_t>(extent));
    for (const std::int64_t stride : type.strides)
      launch.words.push_back(static_cast<std::uint64_t>(stride));
  }
  return launch;
}

void add_launches(DraftBuilder& out, const Graph& graph, const LoweredGroup& group,
                  const LaunchOperands& operands, const std::string& what, double flops) {
  const lower::GroupCode& code = *group.lowering->made;
  LaunchArguments arguments(out, graph, group, operands);
  const double bytes = arguments.bytes(group.canonical.group);
  for (std::size_t k = 0; k < code.kernels.size(); ++k) {
    const lower::Lowered& lowered = code.kernels[k];
    if (std::ranges::count(lowered.grid, 0) > 0) continue;
    runtime::step::Launch launch = launch_of(
        lowered, out.add_kernel({group.lowering, &lowered.kernel}, group.lowering->fingerprints[k]),
        [&](const std::string& name) -> const runtime::Address& { return arguments.of(name); },
        out);
    // Kernels before the last one prepare its operands.
    const bool last = k + 1 == code.kernels.size();
    out.add_step(std::move(launch), {what, last ? code.strategy : "…", group.lowering},
                 last ? StepWork{flops, bytes} : StepWork{});
  }
}

}  // namespace tessera::program
