#include "cli/passes.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tessera/ir/text.h"

namespace tessera::cli {
namespace {

std::string readable_bytes(std::int64_t bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 1, units[unit]);
}

using Counts = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

Counts counts_of(const Inventory& before, const Inventory& after) {
  Counts all;
  for (const auto& [op, count] : before.operators) all[op].first = count;
  for (const auto& [op, count] : after.operators) all[op].second = count;
  return all;
}

std::map<std::string, int> counted(const passes::Changes& changes) {
  std::map<std::string, int> counts;
  for (const passes::Change& change : changes) ++counts[change.what];
  return counts;
}

}  // namespace

void add_pass_flags(CLI::App& command, PassFlags& flags) {
  const std::vector<std::string> names = passes::pass_names();
  const auto renamed = [](const std::string& name) {  // former names, not in the help
    return name == "moves" ? std::string("data_movement") : name;
  };
  command.add_option("--disable-pass", flags.disabled, "skip a pass; may be repeated")
      ->check(CLI::IsMember(names))
      ->transform(renamed);
  command
      .add_option("--print-after", flags.print_after,
                  "print the graph after a pass; may be repeated")
      ->check(CLI::IsMember(names))
      ->transform(renamed);
  command
      .add_option("--numerics", flags.numerics,
                  "reals: results may round differently; exact: results are bit-identical")
      ->check(CLI::IsMember({"exact", "reals"}))
      ->capture_default_str();
  command.add_flag("--explain", flags.explain, "print what each pass changed, and its time");
  command.add_flag(
      "--validate", flags.validate,
      "validate each pass on this model: prove it, or compare outputs before and after");
}

passes::Options pass_options(const PassFlags& flags) {
  passes::Options options{.exact = flags.numerics == "exact",
                          .disabled = {flags.disabled.begin(), flags.disabled.end()},
                          .validate = flags.validate};
  const std::set<std::string> shown(flags.print_after.begin(), flags.print_after.end());
  options.observe = [shown](const std::string& pass, const Graph& graph) {
    if (shown.contains(pass)) {
      fmt::print("# after {}\n{}", pass, to_text(graph, {.inline_limit = 16}));
    }
  };
  return options;
}

void print_log(const std::vector<passes::Record>& log) {
  for (const passes::Record& record : log) {
    fmt::print("{:<24} {:>6.1f} ms  {} -> {} nodes{}\n", record.pass, 1e3 * record.seconds,
               record.nodes_before, record.nodes_after,
               record.validation.empty() ? "" : ", " + record.validation);
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
                    {"validation", record.validation.empty() ? nlohmann::json(nullptr)
                                                             : nlohmann::json(record.validation)},
                    {"changes", counted(record.changes)}});
  return list;
}

void print_operators(const Inventory& before, const Inventory& after) {
  const auto line = [](std::string_view name, const std::string& a, const std::string& b) {
    fmt::print("│ {:<28} │ {:>10} │ {:>10} │\n", name, a, b);
  };
  fmt::print("┌{0:─^30}┬{0:─^12}┬{0:─^12}┐\n", "");
  line("operator", "original", "optimized");
  fmt::print("├{0:─^30}┼{0:─^12}┼{0:─^12}┤\n", "");
  for (const auto& [op, counts] : counts_of(before, after))
    line(op, std::to_string(counts.first),
         fmt::format("{}{}", counts.second, counts.second < counts.first ? " *" : ""));
  fmt::print("├{0:─^30}┼{0:─^12}┼{0:─^12}┤\n", "");
  line("all", std::to_string(before.nodes), std::to_string(after.nodes));
  line("weights", readable_bytes(before.parameter_bytes), readable_bytes(after.parameter_bytes));
  fmt::print("└{0:─^30}┴{0:─^12}┴{0:─^12}┘\n", "");
}

nlohmann::json operators_json(const Inventory& before, const Inventory& after) {
  nlohmann::json operators = nlohmann::json::object();
  for (const auto& [op, counts] : counts_of(before, after))
    operators[op] = {{"original", counts.first}, {"optimized", counts.second}};
  return operators;
}

}  // namespace tessera::cli
