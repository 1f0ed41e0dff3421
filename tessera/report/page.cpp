#include "tessera/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tessera/report/compare.h"
#include "tessera/report/layout.h"
#include "tessera/report/page_sources.h"
#include "tessera/support/markup.h"

namespace tessera::report {
namespace {

constexpr std::string_view kEventsBegin = "<script type=\"application/json\" id=\"events\">";
constexpr std::string_view kScriptEnd = "</script>";
constexpr double kLayoutSeconds = 0.6;  // of dot, for each graph

/// JSON text for a script element: nothing in it can end the element or begin a comment.
std::string escaped(const std::string& json) {
  std::string text;
  text.reserve(json.size() + json.size() / 64);
  for (const char c : json) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

/// Boxes of a graph: the nodes that one step computes share a box.
struct Boxes {
  std::vector<std::vector<std::int64_t>> nodes = {};  // by box
  std::map<std::int64_t, std::size_t> box_of = {};    // by node
};

Boxes boxes_of(const std::vector<const Node*>& nodes, const std::vector<const Step*>& steps) {
  std::map<std::int64_t, std::int64_t> step_of;  // the last step of a node
  for (const Step* step : steps)
    for (const std::int64_t node : step->nodes) step_of[node] = step->id;
  Boxes boxes;
  std::map<std::int64_t, std::size_t> box_of_step;
  for (const Node* node : nodes) {
    const auto step = step_of.find(node->id);
    std::size_t box = boxes.nodes.size();
    if (step != step_of.end()) box = box_of_step.emplace(step->second, box).first->second;
    if (box == boxes.nodes.size()) boxes.nodes.emplace_back();
    boxes.nodes[box].push_back(node->id);
    boxes.box_of[node->id] = box;
  }
  return boxes;
}

/// Renumbers boxes such that edges point to later ones, as far as there is no cycle.
std::vector<std::size_t> topological(std::size_t count,
                                     const std::set<std::pair<std::size_t, std::size_t>>& edges) {
  std::vector<std::vector<std::size_t>> next(count);
  std::vector<std::size_t> open(count), order;
  for (const auto& [from, to] : edges) next[from].push_back(to), ++open[to];
  std::set<std::size_t> ready;
  for (std::size_t i = 0; i < count; ++i)
    if (open[i] == 0) ready.insert(i);
  while (!ready.empty()) {
    const std::size_t box = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(box);
    for (const std::size_t to : next[box])
      if (--open[to] == 0) ready.insert(to);
  }
  for (std::size_t i = 0; i < count; ++i)
    if (open[i] > 0) order.push_back(i);
  return order;
}

nlohmann::json layout_of(const std::vector<const Node*>& nodes,
                         const std::vector<const Step*>& steps) {
  constexpr double kRow = 18, kPadding = 10, kLeast = 96, kMost = 240, kCharacter = 7.3;
  const Boxes boxes = boxes_of(nodes, steps);
  std::set<std::pair<std::size_t, std::size_t>> edges;
  std::map<std::int64_t, const Node*> by_id;
  for (const Node* node : nodes) by_id[node->id] = node;
  for (const Node* node : nodes)
    for (const Operand& operand : node->operands) {
      const auto from = boxes.box_of.find(operand.node);
      const std::size_t to = boxes.box_of.at(node->id);
      if (from != boxes.box_of.end() && from->second != to) edges.insert({from->second, to});
    }
  const std::vector<std::size_t> order = topological(boxes.nodes.size(), edges);
  std::vector<std::size_t> position(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  BoxGraph graph;
  nlohmann::json json_boxes = nlohmann::json::array(), json_edges = nlohmann::json::array();
  for (const std::size_t box : order) {
    double width = kLeast;
    for (const std::int64_t id : boxes.nodes[box])
      width = std::max(width,
                       kPadding * 2 + kCharacter * static_cast<double>(by_id[id]->op.size() +
                                                                       by_id[id]->name.size() + 1));
    graph.boxes.push_back(
        {.width = std::min(width, kMost),
         .height = kPadding + kRow * static_cast<double>(boxes.nodes[box].size())});
  }
  for (const auto& [from, to] : edges) {
    graph.edges.emplace_back(position[from], position[to]);
    json_edges.push_back({position[from], position[to]});
  }
  const BoxLayout placed = layout(graph, kLayoutSeconds);
  const auto rounded = [](double number) { return static_cast<std::int64_t>(number + 0.5); };
  for (std::size_t i = 0; i < order.size(); ++i)
    json_boxes.push_back({rounded(placed.centers[i].first), rounded(placed.centers[i].second),
                          rounded(graph.boxes[i].width), rounded(graph.boxes[i].height),
                          boxes.nodes[order[i]]});
  return {{"by", placed.by},
          {"width", rounded(placed.width)},
          {"height", rounded(placed.height)},
          {"boxes", std::move(json_boxes)},
          {"edges", std::move(json_edges)}};
}

nlohmann::json layouts_of(const EventLog& log) {
  std::map<std::string, std::vector<const Node*>> graphs;
  for (const Node* node : log.all<Node>()) graphs[node->graph].push_back(node);
  nlohmann::json layouts = nlohmann::json::object();
  for (const auto& [name, nodes] : graphs)
    layouts[name] =
        layout_of(nodes, name == "compiled" ? log.all<Step>() : std::vector<const Step*>());
  return layouts;
}

std::string title_of(const EventLog& log) {
  if (const auto* model = log.last<Model>()) {
    std::string title = model->file.empty() ? model->name : model->file;
    // A long name is no title.
    constexpr std::size_t kLongest = 80;
    if (title.size() > kLongest) title = "model";
    return title;
  }
  if (const auto* proof = log.last<Proof>()) return proof->source + " and " + proof->target;
  return "report";
}

}  // namespace

std::string page(const EventLog& log, const EventLog* other) {
  std::string logs;
  EventLog shown = log;
  if (other != nullptr)
    for (Difference& difference : compare(log, *other)) shown.add(std::move(difference));
  logs += fmt::format("{}\n{}{}\n", kEventsBegin, escaped(to_json_lines(shown)), kScriptEnd);
  if (other != nullptr)
    logs += fmt::format("<script type=\"application/json\" id=\"other-events\">\n{}{}\n",
                        escaped(to_json_lines(*other)), kScriptEnd);
  logs += fmt::format("<script type=\"application/json\" id=\"layouts\">{}{}\n",
                      escaped(layouts_of(log).dump()), kScriptEnd);
  std::string html(page_html());
  const auto fill = [&](std::string_view mark, std::string_view text) {
    const std::size_t at = html.find(mark);
    TESSERA_CHECK(at != std::string::npos, "page.html has no {}", mark);
    html.replace(at, mark.size(), text);
  };
  const std::string title = markup_text(title_of(log));
  fill("{{title}}", title);
  fill("{{heading}}", title);
  fill("{{css}}", page_css());
  fill("{{js}}", page_js());
  fill("{{logs}}", logs);  // last: names in a model may look like a mark
  return html;
}

Expected<EventLog> event_log_of_page(std::string_view html) {
  const std::size_t begin = html.find(kEventsBegin);
  const std::size_t end = begin == std::string_view::npos ? begin : html.find(kScriptEnd, begin);
  if (end == std::string_view::npos)
    return Diagnostic{.id = "report-malformed",
                      .message = "the page has no event log",
                      .note = "pages that `--report` writes contain one"};
  return parse_event_log(
      html.substr(begin + kEventsBegin.size(), end - begin - kEventsBegin.size()));
}

}  // namespace tessera::report
