#include "tests/programs/catalog_coverage.h"

#include <fmt/format.h>

#include <map>

#include "tessera/ops/catalog.h"

namespace tessera::testing {
namespace {

/// Operators and attributes that are not drawn, and why.
const std::map<std::string, std::string, std::less<>>& not_drawn() {
  static const std::map<std::string, std::string, std::less<>> all = {
      {"conv_weight_gradient.auto_pad", "any other than the default is refused"},
      {"image_decoder", "takes files; tests of its formats"},
      {"ms_qlinear_average_pool.channels_last", "any other than the default is refused"},
      {"ms_qlinear_global_average_pool.channels_last", "any other than the default is refused"},
      {"max_pool_gradient", "its indices are those of a max_pool; tests of the operator"},
      {"ml_svm_classifier", "its attributes are a model; recorded models"},
      {"ml_svm_regressor", "its attributes are a model; recorded models"},
      {"ml_tree_ensemble", "its attributes are a model; recorded models"},
      {"ml_tree_ensemble_classifier", "its attributes are a model; recorded models"},
      {"ml_tree_ensemble_regressor", "its attributes are a model; recorded models"}};
  return all;
}

std::string attribute_name(const OpDef& op, const AttrSpec& spec) {
  return op.name + "." + spec.name;
}

bool is_drawn(const OpDef& op) {
  return op.pure && !not_drawn().contains(op.name);
}

}  // namespace

void CatalogCoverage::add(const Graph& graph) {
  for (const GraphNode& node : graph.nodes()) {
    const OpDef& op = *node.op;
    names_.insert(op.name);
    for (const AttrSpec& spec : op.attrs)
      if (const Attr* value = node.attrs->find(spec.name);
          value != nullptr && (spec.need != AttrSpec::Need::Default || !equal(*value, spec.value)))
        names_.insert(attribute_name(op, spec));
  }
}

std::vector<std::string> CatalogCoverage::missing() const {
  std::vector<std::string> missing;
  for (const OpDef& op : catalog()) {
    if (!is_drawn(op)) continue;
    if (!names_.contains(op.name)) {
      missing.push_back(op.name);
      continue;
    }
    for (const AttrSpec& spec : op.attrs)
      if (const std::string name = attribute_name(op, spec);
          !names_.contains(name) && !not_drawn().contains(name))
        missing.push_back(name);
  }
  return missing;
}

std::string CatalogCoverage::summary() const {
  std::size_t operators = 0, attributes = 0, left_out = 0;
  for (const OpDef& op : catalog()) {
    left_out += is_drawn(op) ? 0 : 1;
    if (is_drawn(op)) ++operators, attributes += op.attrs.size();
  }
  std::size_t without = 0, unset = 0;
  std::string list;
  for (const std::string& name : missing()) {
    const bool attribute = name.find('.') != std::string::npos;
    (attribute ? unset : without) += 1;
    list += (list.empty() ? ": " : ", ") + name;
  }
  return fmt::format(
      "{} of {} operators ({} are random by nature, or models, and are tested elsewhere), {} of {} "
      "attributes{}{}",
      operators - without, operators, left_out, attributes - unset, attributes,
      list.empty() ? "" : "; missing", list);
}

}  // namespace tessera::testing
