#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tessera/codegen/compile.h"
#include "tessera/expr/eval.h"
#include "tessera/expr/text.h"
#include "tessera/lower/lower.h"
#include "tessera/support/rng.h"
#include "tessera/tile/interp.h"
#include "tests/support/evaluate.h"

namespace tessera::lower {

using Tensors = std::map<std::string, Tensor>;

inline Operand f32(std::string name, Shape shape) {
  return {std::move(name), DType::F32, std::move(shape)};
}

inline Definition definition_of(std::string_view text) {
  auto definition = parse_definition(text);
  EXPECT_TRUE(definition) << to_string(definition.error());
  return definition ? *std::move(definition) : Definition{};
}

/// Stages one after the other, over inputs of these types.
inline tile::Stages staged(const std::vector<Operand>& inputs,
                           const std::vector<std::string>& definitions) {
  tile::Stages stages;
  for (const std::string& text : definitions) {
    auto more = tile::then(stages, definition_of(text), inputs);
    EXPECT_TRUE(more) << to_string(more.error());
    if (more) stages = *std::move(more);
  }
  return stages;
}

inline Tensor random_tensor(DType dtype, const std::vector<std::int64_t>& shape, Rng& rng) {
  Buffer buffer(static_cast<std::size_t>(*element_count(shape) * byte_width(dtype)));
  for (std::int64_t i = 0; i < *element_count(shape); ++i) {
    if (is_float(dtype))
      store_number(dtype, buffer.data(), i, static_cast<double>(rng.below(2000)) / 500.0 - 2.0);
    else
      store_integer(dtype, buffer.data(), i,
                    static_cast<std::int64_t>(rng.below(dtype == DType::Bool ? 2 : 7)));
  }
  return {dtype, shape, std::move(buffer).freeze()};
}

inline std::vector<std::int64_t> numbers_of(const Shape& shape, const Sizes& sizes = {}) {
  std::vector<std::int64_t> result;
  for (const Dim& dim : shape) result.push_back(resolved(dim, sizes).constant().value_or(-1));
  return result;
}

inline Tensors random_inputs(const std::vector<Operand>& inputs, std::uint64_t seed) {
  Rng rng(seed);
  Tensors result;
  for (const Operand& input : inputs)
    result.emplace(input.name, random_tensor(input.dtype, numbers_of(input.shape), rng));
  return result;
}

/// Every stage by what its definition says, in double.
inline Tensors by_definition(const tile::Stages& stages, Tensors tensors) {
  for (const tile::Stage& stage : stages) {
    std::vector<ConstArray> inputs;
    for (const Operand& operand : stage.operands) {
      const Tensor& tensor = tensors.at(operand.name);
      inputs.push_back({.dtype = tensor.dtype, .data = tensor.bytes.data()});
    }
    const auto shape = numbers_of(stage.output.shape(), stage.sizes);
    const DType dtype = stage.output.dtype;
    Buffer buffer(static_cast<std::size_t>(*element_count(shape) * byte_width(dtype)));
    const std::vector<MutableArray> outputs = {{.dtype = dtype, .data = buffer.data()}};
    const Definition definition{.inputs = stage.operands, .outputs = {stage.output}};
    const auto done = eval<double>(definition, stage.sizes, inputs, outputs, {});
    EXPECT_TRUE(done) << to_string(done.error());
    tensors.insert_or_assign(stage.name(), Tensor{dtype, shape, std::move(buffer).freeze()});
  }
  return tensors;
}

enum class By { Interpreter, MachineCode };

/// Every kernel, on memory that begins as garbage.
inline Expected<Tensors> by_kernels(const tile::Stages& stages, const std::vector<Lowered>& kernels,
                                    Tensors tensors, By by) {
  static std::byte nothing[16];
  for (const Lowered& lowered : kernels) {
    const auto stage = std::ranges::find_if(
        stages, [&](const tile::Stage& s) { return s.name() == lowered.arguments.back(); });
    const auto shape = numbers_of(stage->output.shape(), stage->sizes);
    const DType dtype = stage->output.dtype;
    Buffer buffer(static_cast<std::size_t>(*element_count(shape) * byte_width(dtype)));
    std::fill_n(buffer.data(), buffer.size(), std::byte{0x7f});
    std::vector<tile::Argument> arguments;
    for (std::size_t i = 0; i < lowered.arguments.size(); ++i) {
      const bool is_output = i + 1 == lowered.arguments.size();
      const Tensor* tensor = is_output ? nullptr : &tensors.at(lowered.arguments[i]);
      auto* data = is_output ? buffer.data() : const_cast<std::byte*>(tensor->bytes.data());
      const auto size = static_cast<std::int64_t>(is_output ? buffer.size() : tensor->bytes.size());
      const DType of = is_output ? dtype : tensor->dtype;
      if (lowered.kernel.type(lowered.kernel.params()[i]).is_view())
        arguments.push_back(tile::Argument::view(of, data, is_output ? shape : tensor->shape));
      else
        arguments.push_back(tile::Argument::pointer(of, data == nullptr ? nothing : data, size));
    }
    if (by == By::Interpreter) {
      TESSERA_TRY_DONE(tile::interpret(lowered.kernel, arguments, lowered.grid));
    } else {
      TESSERA_TRY(const auto code, codegen::compile(lowered.kernel));
      TESSERA_TRY_DONE(code->launch(arguments, lowered.grid, 2));
    }
    tensors.insert_or_assign(stage->name(), Tensor{dtype, shape, std::move(buffer).freeze()});
  }
  return tensors;
}

/// The last stage is what its definition says.
inline void expect_computes(const tile::Schedule& schedule, const std::vector<Operand>& inputs,
                            By by, double tolerance = 1e-4) {
  const std::string text = tile::to_text(schedule);
  SCOPED_TRACE(text);
  const Tensors tensors = random_inputs(inputs, 7);
  const auto kernels = lower(schedule);
  ASSERT_TRUE(kernels) << to_string(kernels.error());
  const auto found = by_kernels(schedule.stages(), *kernels, tensors, by);
  ASSERT_TRUE(found) << to_string(found.error());
  const Tensors expected = by_definition(schedule.stages(), tensors);
  const std::string& result = schedule.stages().back().name();
  testing::expect_near(found->at(result), expected.at(result), tolerance);
}

}  // namespace tessera::lower
