#pragma once

#include "tessera/lower/group.h"
#include "tests/lower/run_stages.h"

namespace tessera::lower {

/// Stages over inputs, what is kept of them, and which inputs are weights.
struct GroupCase {
  std::string name;
  std::vector<Operand> inputs;
  std::vector<std::string> definitions;
  std::vector<std::string> results = {"out"};
  std::set<std::string> weights = {};
};

/// The kernels of a group one after the other, on memory that begins as garbage. Names of stages
/// that no kernel writes to are not in the result.
inline Expected<Tensors> by_group(const GroupCode& code, const tile::Stages& stages,
                                  Tensors tensors, By by) {
  for (const Packing& packing : code.packings) {
    const Tensor& weight = tensors.at(packing.weight);
    const Output& output = packing.definition.outputs[0];
    const auto shape = numbers_of(output.shape());
    Buffer buffer(static_cast<std::size_t>(*element_count(shape) * byte_width(output.dtype)));
    const std::vector<ConstArray> in = {{.dtype = weight.dtype, .data = weight.bytes.data()}};
    const std::vector<MutableArray> out = {{.dtype = output.dtype, .data = buffer.data()}};
    TESSERA_TRY_DONE(eval<double>(packing.definition, {}, in, out, {}));
    tensors.insert_or_assign(output.name, Tensor{output.dtype, shape, std::move(buffer).freeze()});
  }
  TESSERA_TRY(std::vector<Operand> types, tensors_of(stages));
  types.insert(types.end(), code.temporaries.begin(), code.temporaries.end());
  std::map<std::string, Buffer> made;
  for (const Lowered& lowered : code.kernels) {
    std::vector<tile::Argument> arguments;
    for (std::size_t i = 0; i < lowered.arguments.size(); ++i) {
      const std::string& name = lowered.arguments[i];
      const tile::Type& type = lowered.kernel.type(lowered.kernel.params()[i]);
      std::byte* data = nullptr;
      std::size_t size = 0;
      if (const auto it = tensors.find(name); it != tensors.end()) {
        data = const_cast<std::byte*>(it->second.bytes.data());
        size = it->second.bytes.size();
      } else {
        const Operand& of = *std::ranges::find(types, name, &Operand::name);
        const std::int64_t bytes = *element_count(numbers_of(of.shape)) * byte_width(of.dtype);
        Buffer& buffer = made.try_emplace(name, static_cast<std::size_t>(bytes)).first->second;
        if (std::ranges::all_of(buffer.data(), buffer.data() + buffer.size(),
                                [](std::byte b) { return b == std::byte{0}; }))
          std::fill_n(buffer.data(), buffer.size(), std::byte{0x7f});
        data = buffer.data();
        size = buffer.size();
      }
      data += lowered.offset(i) * byte_width(type.dtype);
      arguments.push_back(
          type.is_view()
              ? tile::Argument::view(type.dtype, data, type.shape, type.strides)
              : tile::Argument::pointer(type.dtype, data, static_cast<std::int64_t>(size)));
    }
    if (by == By::Interpreter) {
      TESSERA_TRY_DONE(tile::interpret(lowered.kernel, arguments, lowered.grid));
    } else {
      TESSERA_TRY(const auto compiled, codegen::compile(lowered.kernel));
      TESSERA_TRY_DONE(compiled->launch(arguments, lowered.grid, 2));
    }
  }
  for (auto& [name, buffer] : made) {
    const Operand& of = *std::ranges::find(types, name, &Operand::name);
    tensors.insert_or_assign(name,
                             Tensor{of.dtype, numbers_of(of.shape), std::move(buffer).freeze()});
  }
  return tensors;
}

using Strategy = Expected<Attempt> (*)(const Group&, const machine::Machine&, const GroupOptions&);

/// Every result is what its definition says, interpreted and as machine code. Gives the strategy
/// that was taken; nothing where the group is not of its kind.
inline std::optional<GroupCode> expect_group(const GroupCase& c, Strategy strategy,
                                             double tolerance = 1e-4,
                                             const GroupOptions& options = {}) {
  SCOPED_TRACE(c.name);
  const Group group{staged(c.inputs, c.definitions), c.results, c.weights};
  const auto code = strategy(group, machine::host(), options);
  EXPECT_TRUE(code) << to_string(code.error());
  if (!code || !*code) return std::nullopt;
  const Tensors inputs = random_inputs(c.inputs, 7);
  const Tensors expected = by_definition(group.stages, inputs);
  for (const By by : {By::Interpreter, By::MachineCode}) {
    const auto found = by_group(**code, group.stages, inputs, by);
    EXPECT_TRUE(found) << to_string(found.error());
    if (!found) continue;
    for (const std::string& result : c.results)
      testing::expect_near(found->at(result), expected.at(result), tolerance);
  }
  return **code;
}

}  // namespace tessera::lower
