#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tessera/expr/element.h"
#include "tessera/expr/eval.h"
#include "tests/support/sum_value.h"

namespace tessera::testing {

/// An element as a sum of products is what the definition evaluates to, at every position of an
/// output. Returns whether there is such a sum.
inline bool expect_elements(const Definition& definition, std::size_t output,
                            const std::vector<Tensor>& inputs) {
  std::vector<Shape> shapes;
  std::vector<ConstArray> arrays;
  std::int64_t largest = 4;
  for (const Tensor& input : inputs) {
    shapes.emplace_back(input.shape.begin(), input.shape.end());
    arrays.push_back({input.dtype, input.bytes.data()});
    for (const std::int64_t size : input.shape) largest = std::max(largest, size);
  }
  const auto sizes = solve_sizes(definition, shapes);
  EXPECT_TRUE(sizes) << to_string(sizes.error());
  const auto types = output_types(definition, *sizes);
  EXPECT_TRUE(types) << to_string(types.error());
  std::vector<Buffer> buffers;
  std::vector<MutableArray> into;
  std::vector<std::vector<std::int64_t>> results;
  for (const TensorType& type : *types) {
    results.emplace_back();
    for (const Dim& size : type.shape) results.back().push_back(size.constant().value());
    buffers.emplace_back(static_cast<std::size_t>(element_count(results.back()).value()) * 8);
    into.push_back({type.dtype, buffers.back().data(), is_float(type.dtype)});
  }
  const auto done = eval<double>(definition, *sizes, arrays, into, {});
  EXPECT_TRUE(done) << to_string(done.error());

  algebra::Names names;
  const algebra::ElementBindings meaning{
      .sizes = *sizes,
      .operand = [&](const std::string& operand) -> algebra::ElementBindings::Tensor {
        for (std::size_t i = 0; i < definition.inputs.size(); ++i)
          if (definition.inputs[i].name == operand) return {operand, shapes[i], inputs[i].dtype};
        ADD_FAILURE() << operand << " is not an operand";
        return {};
      }};
  std::vector<Dim> at;
  for (std::size_t axis = 0; axis < results[output].size(); ++axis)
    at.push_back(Dim::symbol("p" + std::to_string(axis)));
  const algebra::Sum sum = algebra::element(names, definition.outputs[output], at, meaning);
  if (!algebra::is_defined(sum)) return false;
  const auto read = [&](const std::string& name, const std::vector<std::int64_t>& place) {
    for (std::size_t i = 0; i < definition.inputs.size(); ++i) {
      if (definition.inputs[i].name != name) continue;
      std::int64_t position = 0;
      for (std::size_t axis = 0; axis < place.size(); ++axis) {
        if (place[axis] < 0 || place[axis] >= inputs[i].shape[axis]) return std::nan("");
        position = position * inputs[i].shape[axis] + place[axis];
      }
      return number_at(inputs[i], position);
    }
    ADD_FAILURE() << name << " is not an operand";
    return 0.0;
  };
  const DType dtype = into[output].lifted ? DType::F64 : (*types)[output].dtype;
  const Tensor expected{dtype, results[output], std::move(buffers[output]).freeze()};
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    SizeValues symbols;
    std::int64_t rest = i;
    for (std::size_t axis = at.size(); axis-- > 0;) {
      symbols["p" + std::to_string(axis)] = rest % expected.shape[axis];
      rest /= expected.shape[axis];
    }
    const double wanted = number_at(expected, i);
    if (!std::isfinite(wanted)) continue;
    const double found = SumValue(symbols, read, 2 * largest)(sum);
    EXPECT_NEAR(found, wanted, 1e-5 * std::max(1.0, std::fabs(wanted)))
        << "element " << i << " of " << algebra::to_text(sum);
    if (::testing::Test::HasFailure()) return true;
  }
  return true;
}

}  // namespace tessera::testing
