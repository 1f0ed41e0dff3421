#include <unistd.h>

#include <filesystem>

#include "tessera/ir/text.h"
#include "tessera/ir/verify.h"
#include "tessera/onnx/export.h"
#include "tests/fuzz/fuzz.h"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path written =
      std::filesystem::temp_directory_path() / fmt::format("tessera-onnx-fuzz-{}.onnx", getpid());
  const auto file =
      tessera::onnx::parse_model(fuzz::bytes_of(data, size), "no_such_folder/fuzz.onnx");
  if (!file) return 0;
  const auto model = tessera::onnx::import_model(*file);
  if (!model) return 0;
  fuzz::require(verify(model->graph), "what is imported is valid");
  const std::string text = to_text(model->graph);
  const auto again = parse_graph(text);
  fuzz::require(again, "what is imported and printed can be read");
  fuzz::require(to_text(*again) == text, "what is printed prints the same", text);
  (void)tessera::onnx::export_model(model->graph, written,
                                    {.info = model->info, .output_names = model->output_names});
  std::filesystem::remove(written);
  return 0;
}
