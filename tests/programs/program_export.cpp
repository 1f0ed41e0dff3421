#include "tests/programs/program_export.h"

#include <fmt/format.h>

#include "tessera/onnx/export.h"
#include "tessera/onnx/tensor_proto.h"
#include "tessera/onnx/test_case.h"
#include "tessera/support/file.h"
#include "tests/programs/differential.h"
#include "tests/programs/operand_contents.h"

namespace tessera::testing {
namespace {

Expected<Done> write_text(const std::filesystem::path& path, const std::string& text) {
  return write_file(path, [&](std::ostream& out) { out << text; });
}

Type type_of(const Datum& datum) {
  if (datum.is_tensor())
    return Type::tensor(datum.tensor().dtype,
                        {datum.tensor().shape.begin(), datum.tensor().shape.end()});
  if (!datum.present() || datum.elements().empty()) return Type::unknown();
  Type type = type_of(datum.elements()[0]);
  const bool is_sequence = datum.kind() == Datum::Kind::Sequence;
  type.kind = is_sequence                         ? Type::Kind::Sequence
              : type.kind == Type::Kind::Sequence ? Type::Kind::OptionalSequence
                                                  : Type::Kind::Optional;
  if (is_sequence) type.shape.reset();
  return type;
}

/// The graph with types of outputs that inference does not know; a test of ONNX states them.
Graph typed(Graph graph, const std::vector<ToleratedOutput>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (const ValueId id = graph.outputs()[i]; graph.type(id).kind == Type::Kind::Unknown)
      graph.set_type(id, type_of(outputs[i].value));
  return graph;
}

}  // namespace

Expected<Done> export_program(const RandomProgram& program, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const auto not_exported = [&](const std::string& why) {
    return write_text(folder / "not_exported.txt", why + "\n");
  };
  const auto outputs = tolerated_outputs(program);
  if (!outputs) return not_exported("rounding makes it fail");
  const Graph graph = typed(program.graph, *outputs);
  if (const auto written = onnx::export_model(graph, folder / "model.onnx"); !written)
    return not_exported(fmt::format("{}: {}", written.error().id, written.error().message));
  const std::filesystem::path data = folder / "test_data_set_0";
  onnx::TestCase test{.inputs = program.inputs, .outputs = {}};
  for (const ToleratedOutput& output : *outputs) test.outputs.push_back(output.value);
  TESSERA_TRY_DONE(onnx::write_test_case(test, data));
  for (std::size_t i = 0; i < outputs->size(); ++i)
    if (const auto& tolerance = (*outputs)[i].tolerance)
      TESSERA_TRY_DONE(
          write_text(data / fmt::format("tolerance_{}.pb", i),
                     onnx::encode(number_tensor(
                         DType::F64, {static_cast<std::int64_t>(tolerance->size())}, *tolerance))));
  return Done{};
}

}  // namespace tessera::testing
