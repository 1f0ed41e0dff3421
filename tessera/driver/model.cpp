#include "tessera/driver/model.h"

#include "tessera/ir/text.h"
#include "tessera/onnx/export.h"
#include "tessera/onnx/import.h"

namespace tessera {

bool is_text_form(const std::filesystem::path& path) {
  return path.extension() == ".tessera" || path.extension() == ".txt";
}

Expected<Model> load_model(const std::filesystem::path& path) {
  Model model;
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  model.file_bytes = error ? 0 : static_cast<std::int64_t>(size);
  if (is_text_form(path)) {
    TESSERA_TRY(model.graph, read_text_graph(path));
    for (const ValueId output : model.graph.outputs())
      model.output_names.push_back(model.graph.name(output));
  } else {
    TESSERA_TRY(const onnx::ModelFile file, onnx::read_model(path));
    TESSERA_TRY(onnx::ImportedModel imported, onnx::import_model(file));
    model.graph = std::move(imported.graph);
    model.output_names = std::move(imported.output_names);
    model.info = std::move(imported.info);
  }
  for (std::uint32_t i = 0; i < model.graph.value_count(); ++i)
    if (const Tensor* weight = model.graph.constant({i}))
      model.file_bytes += static_cast<std::int64_t>(weight->bytes.size());
  return model;
}

Expected<Done> save_model(const Model& model, const std::filesystem::path& path) {
  if (is_text_form(path)) return write_text(model.graph, path);
  return onnx::export_model(model.graph, path,
                            {.info = model.info, .output_names = model.output_names});
}

}  // namespace tessera
