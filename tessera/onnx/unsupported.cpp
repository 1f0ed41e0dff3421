#include "tessera/onnx/unsupported.h"

#include <algorithm>
#include <deque>

#include "onnx.pb.h"

namespace tessera::onnx {
namespace {

/// Nodes of a graph or function body with their opsets.
struct Body {
  const Nodes* nodes;
  std::shared_ptr<const Opsets> opsets;
};

/// How many nodes each operator has that is not supported: in the graph, in the subgraphs of nodes
/// and in the functions that are called. A function counts once, however often it is called.
std::map<std::string, int> count_unsupported(const ImportContext& reading, const Opsets& opsets) {
  std::map<std::string, int> counts;
  std::set<std::string> called;
  // Uses a queue instead of recursion: a hostile file may nest functions deeply.
  std::deque<Body> bodies = {
      {&reading.file.proto->graph().node(), std::make_shared<Opsets>(opsets)}};
  for (; !bodies.empty(); bodies.pop_front()) {
    const Body body = bodies.front();
    for (const ::onnx::NodeProto& node : *body.nodes) {
      if (std::ranges::all_of(node.output(), &std::string::empty)) continue;  // it is not read
      for (const ::onnx::AttributeProto& attribute : node.attribute())
        if (attribute.has_g()) bodies.push_back({&attribute.g().node(), body.opsets});
      const std::string id = function_id(node.domain(), node.op_type());
      const auto function = reading.functions.find(id);
      if (function == reading.functions.end()) {
        if (!find_operator(node, *body.opsets)) ++counts[operator_name(node, *body.opsets)];
      } else if (called.insert(id).second) {
        const ::onnx::FunctionProto& proto = *function->second.proto;
        bodies.push_back(
            {&proto.node(), std::make_shared<Opsets>(opsets_in_function(proto, *body.opsets))});
      }
    }
  }
  return counts;
}

}  // namespace

Diagnostic unsupported_operators(const ImportContext& reading, const Opsets& opsets,
                                 Diagnostic first) {
  const auto counts = count_unsupported(reading, opsets);
  std::vector<std::pair<std::string, int>> ordered(counts.begin(), counts.end());
  std::ranges::stable_sort(ordered, std::greater{}, &std::pair<std::string, int>::second);
  if (ordered.size() < 2) {
    if (!ordered.empty() && ordered.front().second > 1)
      first.message += fmt::format(" ({} nodes)", ordered.front().second);
    return first;
  }
  constexpr std::size_t kMostNames = 24;
  std::string list;
  for (const auto& [name, nodes] : std::span(ordered).first(std::min(ordered.size(), kMostNames)))
    list += fmt::format("{}{} ({} node{})", list.empty() ? "" : ", ", name, nodes,
                        nodes == 1 ? "" : "s");
  if (ordered.size() > kMostNames) list += fmt::format(" and {} more", ordered.size() - kMostNames);
  first.message = fmt::format("{} operators are not supported: {}", ordered.size(), list);
  return first;
}

}  // namespace tessera::onnx
