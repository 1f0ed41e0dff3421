#include "tessera/driver/expected_outputs.h"

#include "tessera/onnx/test_case.h"
#include "tessera/support/file.h"
#include "tessera/support/npy.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

Diagnostic not_comparable(const fs::path& path, std::string message) {
  return {.id = "golden-malformed",
          .where = {.file = path.string()},
          .message = std::move(message),
          .note = "a folder holds NAME.npy for each output, or output_0.pb, …"};
}

Expected<onnx::TestCase> test_case(const fs::path& folder, const ComparedModel& model) {
  if (model.path.extension() != ".onnx")
    return onnx::read_test_case(folder, model.inputs, model.outputs.size());
  TESSERA_TRY(const onnx::ModelFile file, onnx::read_model(model.path));
  return onnx::read_test_case(folder, file);
}

Expected<ExpectedOutputs> read_test_data(const fs::path& folder, const ComparedModel& model) {
  TESSERA_TRY(onnx::TestCase test, test_case(folder, model));
  ExpectedOutputs result{.golden = {}, .inputs = std::move(test.inputs)};
  for (std::size_t i = 0; i < test.outputs.size() && i < model.outputs.size(); ++i) {
    if (!test.outputs[i].is_tensor())
      return not_comparable(folder / fmt::format("output_{}.pb", i), "only tensors are compared");
    result.golden.outputs[model.outputs[i]] = golden_of(test.outputs[i].tensor());
  }
  return result;
}

Expected<ExpectedOutputs> read_arrays(const fs::path& folder, const ComparedModel& model) {
  ExpectedOutputs result;
  for (const std::string& name : model.outputs) {
    TESSERA_TRY(const Tensor tensor, read_npy(folder / (file_name(name) + ".npy")));
    result.golden.outputs[name] = golden_of(tensor);
  }
  return result;
}

}  // namespace

Expected<ExpectedOutputs> read_expected_outputs(const fs::path& path, const ComparedModel& model) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    TESSERA_TRY(Golden golden, read_golden(path));
    return ExpectedOutputs{.golden = std::move(golden)};
  }
  TESSERA_TRY(ExpectedOutputs result, fs::exists(path / "output_0.pb", error)
                                          ? read_test_data(path, model)
                                          : read_arrays(path, model));
  if (result.golden.outputs.empty())
    return not_comparable(path, "there are no outputs to compare with");
  return result;
}

}  // namespace tessera
