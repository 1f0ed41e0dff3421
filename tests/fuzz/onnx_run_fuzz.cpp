#include "tessera/onnx/import.h"
#include "tests/fuzz/fuzz.h"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file =
      tessera::onnx::parse_model(fuzz::bytes_of(data, size), "no_such_folder/fuzz.onnx");
  if (!file) return 0;
  if (const auto model = tessera::onnx::import_model(*file)) fuzz::run_small(model->graph);
  return 0;
}
