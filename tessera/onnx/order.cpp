#include "tessera/onnx/order.h"

#include <functional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "onnx.pb.h"

namespace tessera::onnx {
namespace {

using ::onnx::GraphProto;
using ::onnx::NodeProto;
using Names = std::unordered_set<std::string>;

/// Names that a node uses: its inputs, and the free names of its subgraphs.
std::vector<std::string> names_used(const NodeProto& node) {
  std::vector<std::string> used;
  for (const std::string& input : node.input())
    if (!input.empty()) used.push_back(input);
  for (const auto& attribute : node.attribute())
    if (attribute.has_g())
      for (std::string& name : free_names(attribute.g())) used.push_back(std::move(name));
  return used;
}

}  // namespace

std::vector<std::string> free_names(const GraphProto& graph) {
  Names made;
  for (const auto& input : graph.input()) made.insert(input.name());
  for (const auto& initializer : graph.initializer()) made.insert(initializer.name());
  for (const auto& initializer : graph.sparse_initializer())
    made.insert(initializer.values().name());
  for (const NodeProto& node : graph.node())
    for (const std::string& output : node.output()) made.insert(output);

  std::vector<std::string> free;
  const auto use = [&](const std::string& name) {
    if (made.insert(name).second) free.push_back(name);
  };
  for (const NodeProto& node : graph.node())
    for (const std::string& name : names_used(node)) use(name);
  for (const auto& output : graph.output()) use(output.name());
  return free;
}

Expected<std::vector<int>> order_of(const Nodes& nodes) {
  std::unordered_map<std::string, int> maker;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string& output : nodes[i].output())
      if (!output.empty() && !maker.emplace(output, i).second)
        return Diagnostic{.id = "onnx-duplicate-name",
                          .where = {.item = label_of(nodes[i], i)},
                          .message = fmt::format("value {} is defined twice", output)};

  std::vector<std::vector<int>> users(static_cast<std::size_t>(nodes.size()));
  std::vector<int> waiting(static_cast<std::size_t>(nodes.size()), 0);
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : names_used(nodes[i])) {
      const auto found = maker.find(name);
      if (found == maker.end()) continue;
      users[static_cast<std::size_t>(found->second)].push_back(i);
      ++waiting[static_cast<std::size_t>(i)];
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i)
    if (waiting[static_cast<std::size_t>(i)] == 0) ready.push(i);
  std::vector<int> order;
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const int user : users[static_cast<std::size_t>(next)])
      if (--waiting[static_cast<std::size_t>(user)] == 0) ready.push(user);
  }
  for (int i = 0; i < nodes.size(); ++i)
    if (waiting[static_cast<std::size_t>(i)] > 0)
      return Diagnostic{.id = "onnx-cycle",
                        .where = {.item = label_of(nodes[i], i)},
                        .message = "the node depends on its own result",
                        .help = "a graph of ONNX has no cycles; loops are written as Loop or Scan"};
  return order;
}

std::string label_of(const NodeProto& node, int index) {
  return node.name().empty() ? fmt::format("{} #{}", node.op_type(), index) : node.name();
}

}  // namespace tessera::onnx
