#include "tessera/onnx/import.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "onnx.pb.h"
#include "tessera/onnx/graph_reader.h"
#include "tessera/onnx/operator_table.h"
#include "tessera/onnx/unsupported.h"
#include "tessera/onnx/wire.h"

namespace tessera::onnx {
namespace {

using ::onnx::FunctionProto;
using ::onnx::ModelProto;

/// Limit on nodes that every model gets; a large one gets as many as it has bytes besides weights.
constexpr std::int64_t kLeastNodeLimit = 200'000;

Expected<Opsets> opsets_of(const ModelFile& file) {
  Opsets opsets;
  for (const auto& import : file.proto->opset_import()) {
    const std::string domain = plain_domain(import.domain());
    if (domain.empty() && (import.version() < 1 || import.version() > kNewestOpset))
      return Diagnostic{.id = "onnx-unsupported-opset",
                        .where = {.file = file.path.string()},
                        .message = fmt::format("opset {} is not supported", import.version()),
                        .note = fmt::format("tessera reads opsets 1 to {}", kNewestOpset),
                        .help = "convert the model with onnx.version_converter"};
    const auto [known, added] = opsets.emplace(domain, import.version());
    if (!added && known->second != import.version())
      return Diagnostic{.id = "onnx-ambiguous-opset",
                        .where = {.file = file.path.string()},
                        .message = fmt::format("the model imports opsets {} and {} of one domain",
                                               known->second, import.version()),
                        .help = "keep the one that its operators are of"};
  }
  return opsets;
}

ModelInfo info_of(const ModelProto& model, const Opsets& opsets) {
  ModelInfo info{.ir_version = model.ir_version(),
                 .opsets = {opsets.begin(), opsets.end()},
                 .producer_name = model.producer_name(),
                 .producer_version = model.producer_version(),
                 .domain = model.domain(),
                 .model_version = model.model_version(),
                 .doc = model.doc_string()};
  for (const auto& entry : model.metadata_props()) info.metadata[entry.key()] = entry.value();
  // Before version 4, every initializer is an input as well, and none is meant to be given.
  std::set<std::string_view> defaults;
  for (const auto& initializer : model.graph().initializer()) defaults.insert(initializer.name());
  for (const auto& input : model.graph().input())
    if (model.ir_version() >= 4 && defaults.contains(input.name()))
      info.defaulted_inputs.push_back(input.name());
  return info;
}

/// Parses default attributes of functions, which are newer than the installed schema.
Expected<Function> function_of(const FunctionProto& proto) {
  constexpr std::uint32_t kAttributeProto = 11;
  Function function{.proto = &proto};
  const std::string& unknown = proto.unknown_fields();
  TESSERA_TRY_DONE(for_each_field(
      std::as_bytes(std::span(unknown)),
      [&](std::uint32_t field, std::span<const std::byte> bytes) -> Expected<Done> {
        if (field != kAttributeProto) return Done{};
        auto attribute = std::make_shared<::onnx::AttributeProto>();
        // A tensor here was not rewritten by the raw-data reader, so it has no raw data.
        if (!attribute->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
            attribute->has_t() || attribute->has_g())
          return Diagnostic{.id = "onnx-unsupported-attribute",
                            .where = {.item = proto.name()},
                            .message = "a default attribute of a function is not a number or text"};
        function.defaults.push_back(std::move(attribute));
        return Done{};
      }));
  return function;
}

}  // namespace

Expected<ImportedModel> import_model(const ModelFile& file, const ImportOptions& options) {
  const ModelProto& model = *file.proto;
  TESSERA_TRY(const Opsets opsets, opsets_of(file));
  const auto stated = static_cast<std::int64_t>(model.ByteSizeLong());
  ImportContext reading{.file = file,
                        .node_limit = std::max<std::int64_t>(stated, kLeastNodeLimit)};
  for (const FunctionProto& proto : model.functions()) {
    auto function = function_of(proto);
    if (!function) return located(std::move(function).error(), {.file = file.path.string()});
    const std::string id = function_id(proto.domain(), proto.name());
    if (!reading.functions.emplace(id, *std::move(function)).second)
      return Diagnostic{.id = "onnx-duplicate-name",
                        .where = {.file = file.path.string(), .item = proto.name()},
                        .message = fmt::format("function {} is defined twice", id)};
  }

  const Environment no_function;
  GraphBuilder builder;
  GraphReader reader(reading, builder, {.opsets = &opsets, .env = &no_function});
  TESSERA_TRY_DONE(reader.read_inputs(model.graph(), options));
  auto outputs = reader.read_body(model.graph());
  if (!outputs && outputs.error().id == "onnx-unsupported-operator")
    return unsupported_operators(reading, opsets, std::move(outputs).error());
  if (!outputs) return std::move(outputs).error();
  TESSERA_TRY(Graph graph, builder.finish(*outputs));
  graph.set_name(model.graph().name());

  ImportedModel result{
      .graph = std::move(graph), .info = info_of(model, opsets), .output_names = {}};
  for (const auto& output : model.graph().output()) result.output_names.push_back(output.name());
  return result;
}

}  // namespace tessera::onnx
