#include "tessera/report/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace tessera::report {
namespace {

/// Disjoint sets of names.
class NameSets {
 public:
  std::size_t of(const std::string& name) {
    const auto [it, is_new] = numbers_.emplace(name, parents_.size());
    if (is_new) parents_.push_back(it->second);
    return root(it->second);
  }
  void join(const std::string& a, const std::string& b) { parents_[of(a)] = of(b); }

 private:
  std::size_t root(std::size_t set) {
    while (parents_[set] != set) set = parents_[set] = parents_[parents_[set]];
    return set;
  }
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::size_t> parents_;
};

/// The first name of a step is the node that it is mainly about; data movement and shape arithmetic
/// around it may belong to many steps.
std::string main_name(const Step& step) {
  return step.names.empty() ? step.what : step.names[0];
}

/// Main names of the steps of a log, by the names of the values that their nodes compute. Steps of
/// a saved program are named by such values.
std::map<std::string, std::string> names_by_value(const EventLog& log) {
  std::map<std::string, std::string> step_of;  // by node
  for (const Step* step : log.all<Step>())
    for (const std::string& name : step->names) step_of.emplace(name, main_name(*step));
  std::map<std::string, std::string> names;
  for (const Node* node : log.all<Node>())
    if (const auto step = step_of.find(node->name);
        node->graph == "original" && step != step_of.end())
      for (const TensorType& result : node->results) names.emplace(result.name, step->second);
  return names;
}

}  // namespace

std::vector<Difference> compare(const EventLog& a, const EventLog& b) {
  NameSets sets;
  const EventLog* const logs[] = {&a, &b};
  const std::map<std::string, std::string> by_value[] = {names_by_value(b), names_by_value(a)};
  // Nodes of the same operator in one step are one group: two matmuls that were merged.
  for (const EventLog* log : logs) {
    std::map<std::string, std::string> op_of;
    for (const Node* node : log->all<Node>())
      if (node->graph == "original") op_of[node->name] = node->op;
    for (const Step* step : log->all<Step>())
      for (const std::string& name : step->names)
        if (const auto op = op_of.find(name); op != op_of.end())
          if (const auto main = op_of.find(main_name(*step)); main != op_of.end())
            if (op->second == main->second) sets.join(name, main_name(*step));
  }
  std::map<std::size_t, Difference> differences;
  std::map<std::size_t, std::set<std::string>> names;
  for (int which = 0; which < 2; ++which) {
    const EventLog& log = *logs[which];
    const bool has_nodes = log.last<Node>() != nullptr;
    const auto key_of = [&](const Step& step) {
      const std::string name = main_name(step);
      const auto it = has_nodes ? by_value[which].end() : by_value[which].find(name);
      return it == by_value[which].end() ? name : it->second;
    };
    std::map<std::int64_t, double> ms;
    for (const StepTime* time : log.all<StepTime>()) ms[time->step] = time->ms;
    for (const Step* step : log.all<Step>()) {
      const std::size_t set = sets.of(key_of(*step));
      Difference& entry = differences[set];
      (which == 0 ? entry.a_ms : entry.b_ms) += ms[step->id];
      std::string& how = which == 0 ? entry.a_how : entry.b_how;
      how += (how.empty() ? "" : "; ") + step->what +
             (step->strategy.empty() ? "" : " [" + step->strategy + "]");
      names[set].insert(key_of(*step));
    }
  }
  std::vector<Difference> sorted;
  for (auto& [set, entry] : differences) {
    entry.names = {names[set].begin(), names[set].end()};
    sorted.push_back(std::move(entry));
  }
  std::ranges::stable_sort(sorted, std::greater{}, [](const Difference& entry) {
    return std::abs(entry.a_ms - entry.b_ms);
  });
  return sorted;
}

}  // namespace tessera::report
