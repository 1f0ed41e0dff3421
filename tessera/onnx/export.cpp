#include "tessera/onnx/export.h"

#include <algorithm>

#include "onnx.pb.h"
#include "tessera/ir/expand.h"
#include "tessera/onnx/graph_writer.h"
#include "tessera/onnx/operator_table.h"

namespace tessera::onnx {
namespace {

constexpr std::int64_t kOldestWritten = 17;

/// The version of the file format that came with an opset.
std::int64_t ir_version_for(std::int64_t opset) {
  return opset >= 21 ? 10 : 8;
}

bool has_no_spelling(const OpDef& op) {
  return op.expand && export_row(op.name) == nullptr;
}

void set_opset(::onnx::ModelProto& model, const std::string& domain, std::int64_t version) {
  auto& import = *model.add_opset_import();
  import.set_domain(domain);
  import.set_version(version);
}

}  // namespace

Expected<Done> export_model(const Graph& graph, const std::filesystem::path& path,
                            const ExportOptions& options) {
  const auto failed = [&](Diagnostic why) {
    return located(std::move(why), {.file = path.string()});
  };
  auto expressible = expand(graph, has_no_spelling);
  if (!expressible) return failed(std::move(expressible).error());

  const ModelInfo& info = options.info;
  ExportContext writing{.opset = kOldestWritten};
  if (const auto stated = info.opsets.find(""); stated != info.opsets.end())
    writing.opset = std::clamp(stated->second, kOldestWritten, kNewestOpset);
  ::onnx::ModelProto model;
  GraphWriter writer(writing, *expressible);
  if (auto written = writer.write(*model.mutable_graph(), options.output_names); !written)
    return failed(std::move(written).error());

  model.set_ir_version(ir_version_for(writing.opset));
  model.set_producer_name("tessera");
  if (!info.domain.empty()) model.set_domain(info.domain);
  if (info.model_version != 0) model.set_model_version(info.model_version);
  if (!info.doc.empty()) model.set_doc_string(info.doc);
  for (const auto& [key, value] : info.metadata) {
    auto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  set_opset(model, "", writing.opset);
  for (const auto& [domain, version] : writing.domains) set_opset(model, domain, version);
  return write_model(model, writing.payloads, path, {.external = options.external});
}

}  // namespace tessera::onnx
