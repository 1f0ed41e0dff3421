#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>

#include "cli/context.h"
#include "cli/json.h"
#include "tessera/driver/inspect.h"
#include "tessera/driver/model.h"
#include "tessera/ir/text.h"
#include "tessera/passes/pipeline.h"

namespace tessera::cli {
namespace {

struct Options {
  std::string from, to, numerics = "reals";
  std::vector<std::string> disabled, print_after;
  bool explain = false, validate = false;
};

std::string readable_bytes(std::int64_t bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 1, units[unit]);
}

/// Operator by operator, before and after; a star where there are fewer.
struct Comparison {
  Inventory before, after;

  std::map<std::string, std::pair<std::int64_t, std::int64_t>> rows() const {
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> all;
    for (const auto& [op, count] : before.operators) all[op].first = count;
    for (const auto& [op, count] : after.operators) all[op].second = count;
    return all;
  }

  void print() const {
    const auto line = [](std::string_view name, const std::string& a, const std::string& b) {
      fmt::print("│ {:<28} │ {:>10} │ {:>10} │\n", name, a, b);
    };
    fmt::print("┌{0:─^30}┬{0:─^12}┬{0:─^12}┐\n", "");
    line("operator", "original", "optimized");
    fmt::print("├{0:─^30}┼{0:─^12}┼{0:─^12}┤\n", "");
    for (const auto& [op, counts] : rows())
      line(op, std::to_string(counts.first),
           fmt::format("{}{}", counts.second, counts.second < counts.first ? " *" : ""));
    fmt::print("├{0:─^30}┼{0:─^12}┼{0:─^12}┤\n", "");
    line("all", std::to_string(before.nodes), std::to_string(after.nodes));
    line("weights", readable_bytes(before.parameter_bytes), readable_bytes(after.parameter_bytes));
    fmt::print("└{0:─^30}┴{0:─^12}┴{0:─^12}┘\n", "");
  }
};

std::map<std::string, int> counted(const std::vector<std::string>& changes) {
  std::map<std::string, int> counts;
  for (const std::string& change : changes) ++counts[change];
  return counts;
}

void explain(const std::vector<passes::Record>& log) {
  for (const passes::Record& record : log) {
    fmt::print("{:<12} {:>6.1f} ms  {} nodes, {} before\n", record.pass, 1e3 * record.seconds,
               record.nodes_after, record.nodes_before);
    for (const auto& [change, count] : counted(record.changes))
      fmt::print("  {:>5} x {}\n", count, change);
  }
}

nlohmann::json log_json(const std::vector<passes::Record>& log) {
  nlohmann::json list = nlohmann::json::array();
  for (const passes::Record& record : log)
    list.push_back({{"pass", record.pass},
                    {"seconds", record.seconds},
                    {"nodes_before", record.nodes_before},
                    {"nodes_after", record.nodes_after},
                    {"changes", counted(record.changes)}});
  return list;
}

Expected<Done> optimize_file(const Options& options, Context& context) {
  TESSERA_TRY_DONE(context.start());
  auto model = load_model(options.from);
  if (!model) return located(std::move(model).error(), {.file = options.from});
  const std::set<std::string> shown(options.print_after.begin(), options.print_after.end());
  passes::Options how{.exact = options.numerics == "exact",
                      .disabled = {options.disabled.begin(), options.disabled.end()},
                      .validate = options.validate};
  how.observe = [&](const std::string& pass, const Graph& graph) {
    if (shown.contains(pass))
      fmt::print("# after {}\n{}", pass, to_text(graph, {.inline_limit = 16}));
  };
  const Inventory before = inspect(model->graph);
  auto made = passes::optimize(model->graph, how);
  if (!made) return located(std::move(made).error(), {.file = options.from});
  model->graph = std::move(made->graph);
  const Comparison comparison{before, inspect(model->graph)};
  if (auto saved = save_model(*model, options.to); !saved)
    return located(std::move(saved).error(), {.file = options.to});
  if (context.json) {
    nlohmann::json operators = nlohmann::json::object();
    for (const auto& [op, counts] : comparison.rows())
      operators[op] = {{"original", counts.first}, {"optimized", counts.second}};
    print_json(
        {{"written", options.to},
         {"operators", operators},
         {"nodes", {{"original", before.nodes}, {"optimized", comparison.after.nodes}}},
         {"parameter_bytes",
          {{"original", before.parameter_bytes}, {"optimized", comparison.after.parameter_bytes}}},
         {"passes", log_json(made->log)}});
    return Done{};
  }
  if (options.explain) explain(made->log);
  if (!context.quiet) comparison.print();
  return Done{};
}

}  // namespace

void add_optimize(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("optimize", "writes a model that computes the same with less work");
  auto options = std::make_shared<Options>();
  std::vector<std::string> names = passes::pass_names();
  command->add_option("in", options->from, "an ONNX file, or a graph in text form")->required();
  command->add_option("out", options->to, "text form if it ends in .tessera or .txt, else ONNX")
      ->required();
  command->add_option("--disable-pass", options->disabled, "leaves a pass out")
      ->check(CLI::IsMember(names));
  command->add_option("--print-after", options->print_after, "prints the graph after a pass")
      ->check(CLI::IsMember(names));
  command
      ->add_option("--numerics", options->numerics,
                   "reals: results may round in another way; exact: every bit stays")
      ->check(CLI::IsMember({"exact", "reals"}))
      ->capture_default_str();
  command->add_flag("--explain", options->explain, "what each pass changed, and how long it took");
  command->add_flag("--validate", options->validate,
                    "proves each pass right on this model, or evaluates before against after");
  add_common(*command, context);
  command->footer(
      "Example:\n"
      "  tessera optimize model.onnx faster.onnx --explain\n"
      "\n"
      "Only what helps on every machine is done; any runtime can use the result.");
  command->callback([options, &context] {
    if (auto done = optimize_file(*options, context); !done) context.fail(done.error());
  });
}

}  // namespace tessera::cli
