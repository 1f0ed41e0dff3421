#include "tessera/driver/inspect.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/inspect_program.h"
#include "cli/readable.h"
#include "tessera/driver/model.h"
#include "tessera/ir/text.h"

namespace tessera::cli {
namespace {

struct InspectOptions {
  std::string model;
  bool text = false;
};

std::string size_text(const Dim& work, std::string_view unit) {
  return work.constant() ? readable(*work.constant(), unit) : work.to_string();
}

nlohmann::json values_json(const Model& model, std::span<const ValueId> values, bool outputs) {
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t i = 0; i < values.size(); ++i)
    list.push_back({{"name", outputs ? model.output_names[i] : model.graph.name(values[i])},
                    {"type", to_string(model.graph.type(values[i]))}});
  return list;
}

void print_inventory_json(const Model& model, const Inventory& inventory) {
  const Graph& graph = model.graph;
  nlohmann::json object = {{"name", graph.name()},
                           {"inputs", values_json(model, graph.inputs(), false)},
                           {"outputs", values_json(model, graph.outputs(), true)},
                           {"nodes", inventory.nodes},
                           {"operators", inventory.operators},
                           {"parameters", inventory.parameters},
                           {"parameter_bytes", inventory.parameter_bytes},
                           {"uncounted_nodes", inventory.uncounted}};
  if (inventory.multiply_adds.constant())
    object["multiply_adds"] = *inventory.multiply_adds.constant();
  else
    object["multiply_adds"] = inventory.multiply_adds.to_string();
  if (inventory.activation_bytes)
    object["activation_bytes"] = *inventory.activation_bytes;
  else
    object["activation_bytes"] = nullptr;
  nlohmann::json values = nlohmann::json::object();
  for (const GraphNode& node : graph.nodes())
    for (const ValueId output : graph.outputs(node))
      values[graph.name(output)] = to_string(graph.type(output));
  object["values"] = std::move(values);
  fmt::print("{}\n", object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_table(const Model& model, const Inventory& inventory) {
  const Graph& graph = model.graph;
  for (const ValueId input : graph.inputs())
    fmt::print("input   {}: {}\n", graph.name(input), to_string(graph.type(input)));
  for (std::size_t i = 0; i < graph.outputs().size(); ++i)
    fmt::print("output  {}: {}\n", model.output_names[i],
               to_string(graph.type(graph.outputs()[i])));
  fmt::print("\n{:<28}{:>8}\n", "operator", "count");
  std::vector<std::pair<std::string, std::int64_t>> rows(inventory.operators.begin(),
                                                         inventory.operators.end());
  std::ranges::stable_sort(rows, [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [name, count] : rows) fmt::print("{:<28}{:>8}\n", name, count);
  fmt::print("{:<28}{:>8}\n\n", "total", inventory.nodes);
  fmt::print("parameters      {} ({})\n", readable(inventory.parameters, ""),
             readable(inventory.parameter_bytes, "B"));
  fmt::print(
      "multiply-adds   {}{}\n", size_text(inventory.multiply_adds, ""),
      inventory.uncounted > 0 ? fmt::format(" ({} nodes not counted)", inventory.uncounted) : "");
  fmt::print("activations     {}\n", inventory.activation_bytes
                                         ? size_text(*inventory.activation_bytes, "B") + " at most"
                                         : "depend on sizes that are not known");
}

void inspect_model(const InspectOptions& options, Context& context) {
  if (auto started = context.start(); !started) return context.fail(started.error());
  if (std::filesystem::path(options.model).extension() == ".tsr")
    return inspect_program(options.model, options.text, context);
  const auto model = load_model(options.model);
  if (!model) return context.fail(located(model.error(), {.file = options.model}));
  if (options.text) {
    fmt::print("{}", to_text(model->graph));
    return;
  }
  const Inventory inventory = inspect(model->graph);
  if (context.json)
    print_inventory_json(*model, inventory);
  else
    print_table(*model, inventory);
}

}  // namespace

void add_inspect(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "inspect", "shows a model's operators, shapes, parameters, multiply-adds and memory");
  auto options = std::make_shared<InspectOptions>();
  command
      ->add_option("model", options->model,
                   "ONNX file, graph in text form, or compiled program (.tsr)")
      ->required();
  command->add_flag("--text", options->text,
                    "print the graph in text form, or the steps of a program");
  add_common(*command, context);
  command->footer("Example:\n  tessera inspect resnet50.onnx --json");
  command->callback([options, &context] { inspect_model(*options, context); });
}

}  // namespace tessera::cli
