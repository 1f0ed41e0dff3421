#include "tessera/onnx/test_case.h"

#include <onnx.pb.h>

#include <set>

#include "tessera/onnx/tensor_proto.h"
#include "tessera/support/file.h"

namespace tessera::onnx {
namespace {

using Types = std::vector<const ::onnx::TypeProto*>;

Expected<std::vector<Datum>> read_all(const std::filesystem::path& folder,
                                      const std::string& prefix, const Types& types) {
  std::vector<Datum> data;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::filesystem::path path = folder / fmt::format("{}_{}.pb", prefix, i);
    if (!std::filesystem::exists(path)) break;  // trailing inputs may be left out
    TESSERA_TRY(Datum datum, read_datum(path, *types[i]));
    // Older suites store the bits of a bf16 tensor as integers.
    const bool bits = types[i]->tensor_type().elem_type() == ::onnx::TensorProto::BFLOAT16;
    if (bits && datum.is_tensor() && datum.tensor().dtype == DType::U16) {
      Tensor tensor = datum.tensor();
      tensor.dtype = DType::BF16;
      datum = std::move(tensor);
    }
    data.push_back(std::move(datum));
  }
  return data;
}

Expected<TestCase> read(const std::filesystem::path& folder, const Types& inputs,
                        const Types& outputs) {
  TestCase result;
  TESSERA_TRY(result.inputs, read_all(folder, "input", inputs));
  TESSERA_TRY(result.outputs, read_all(folder, "output", outputs));
  return result;
}

Expected<Done> write_all(const std::vector<Datum>& data, const std::filesystem::path& folder,
                         const std::string& prefix) {
  for (std::size_t i = 0; i < data.size(); ++i)
    TESSERA_TRY_DONE(write_file(folder / fmt::format("{}_{}.pb", prefix, i),
                                [&](std::ostream& out) { out << encode(data[i]); }));
  return Done{};
}

}  // namespace

Expected<TestCase> read_test_case(const std::filesystem::path& folder, const ModelFile& model) {
  const ::onnx::GraphProto& graph = model.proto->graph();
  std::set<std::string> defaults;
  for (const auto& initializer : graph.initializer()) defaults.insert(initializer.name());
  Types inputs, outputs;
  for (const auto& input : graph.input())
    if (!defaults.contains(input.name())) inputs.push_back(&input.type());
  for (const auto& output : graph.output()) outputs.push_back(&output.type());
  return read(folder, inputs, outputs);
}

Expected<TestCase> read_test_case(const std::filesystem::path& folder, std::size_t inputs,
                                  std::size_t outputs) {
  ::onnx::TypeProto tensor;
  tensor.mutable_tensor_type();
  return read(folder, Types(inputs, &tensor), Types(outputs, &tensor));
}

Expected<Done> write_test_case(const TestCase& test, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  TESSERA_TRY_DONE(write_all(test.inputs, folder, "input"));
  return write_all(test.outputs, folder, "output");
}

}  // namespace tessera::onnx
