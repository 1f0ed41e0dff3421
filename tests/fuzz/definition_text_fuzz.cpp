#include "tessera/expr/eval.h"
#include "tessera/expr/linearity.h"
#include "tessera/expr/text.h"
#include "tessera/expr/work.h"
#include "tests/fuzz/fuzz.h"

using namespace tessera;

namespace {

constexpr std::int64_t most_elements = 1 << 12;

/// Memory for a tensor, zeroed, or nothing if it is not small.
std::optional<Buffer> memory_for(const TensorType& type) {
  std::vector<std::int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(dim.constant().value_or(-1));
  const auto count = element_count(shape);
  if (!count || *count > most_elements || type.dtype == DType::String) return {};
  return Buffer(static_cast<std::size_t>(*count * byte_width(type.dtype)));
}

/// Takes every reading of a definition, with axes of 2 and 3.
void read_small(const Definition& definition) {
  for (std::size_t i = 0; i < definition.outputs.size(); ++i) (void)linearity(definition, i);

  const auto number = [](std::string_view symbol) { return Dim(symbol.size() % 2 == 0 ? 2 : 3); };
  std::vector<Shape> shapes;
  std::vector<Buffer> memory;
  std::vector<ConstArray> inputs;
  for (const Operand& operand : definition.inputs) {
    Shape& shape = shapes.emplace_back();
    for (const Dim& dim : operand.shape) shape.push_back(dim.substituted(number));
    auto buffer = memory_for({operand.dtype, shape});
    if (!buffer) return;
    inputs.push_back({.dtype = operand.dtype, .data = memory.emplace_back(*buffer).data()});
  }
  const auto sizes = solve_sizes(definition, shapes);
  if (!sizes) return;
  const auto types = output_types(definition, *sizes);
  if (!types) return;
  std::vector<MutableArray> outputs;
  for (std::size_t i = 0; i < types->size(); ++i) {
    (void)multiply_adds(definition.outputs[i], *sizes);
    auto buffer = memory_for((*types)[i]);
    if (!buffer) return;
    outputs.push_back({.dtype = (*types)[i].dtype, .data = memory.emplace_back(*buffer).data()});
  }
  const fuzz::Deadline deadline(std::chrono::milliseconds(500));
  (void)eval<double>(definition, *sizes, inputs, outputs, {.stop = deadline.passed()});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto definition = parse_definition(fuzz::text_of(data, size));
  if (!definition) return 0;
  const std::string text = to_text(*definition);
  const auto again = parse_definition(text);
  if (!again) fuzz::require(false, text, to_string(again.error()));
  fuzz::require(to_text(*again) == text, "what is printed prints the same", text);
  read_small(*definition);
  return 0;
}
