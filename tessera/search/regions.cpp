#include "tessera/search/regions.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "tessera/ir/constants.h"
#include "tessera/ir/rebuild.h"
#include "tessera/ir/verify.h"
#include "tessera/ops/standard.h"
#include "tessera/passes/step_functions.h"

namespace tessera::search {
namespace {

/// Partition of a graph: cut positions from 0 to the number of nodes.
class Cuts {
 public:
  Cuts(const Graph& graph, const std::vector<bool>& constant, const CutOptions& options)
      : options_(options), width_(graph.nodes().size() + 1) {
    const std::size_t n = graph.nodes().size();
    struct Span {
      std::size_t made = 0, last = 0, uses = 0;
    };
    std::vector<Span> spans(graph.value_count());
    for (std::size_t i = 0; i < n; ++i) {
      for (const ValueId id : graph.inputs(graph.nodes()[i])) {
        if (!id.present()) continue;
        spans[id.index].last = i;
        ++spans[id.index].uses;
      }
      for (const ValueId id : graph.outputs(graph.nodes()[i])) spans[id.index].made = i;
    }
    for (const ValueId id : graph.outputs()) ++spans[id.index].uses;
    for (std::uint32_t v = 0; v < spans.size(); ++v) {
      if (constant[v] || graph.producer(ValueId{v}) == nullptr) continue;  // free to cross
      const double weight = spans[v].uses > 1 ? 1 : 2;
      for (std::size_t i = spans[v].made + 1; i <= spans[v].last; ++i) width_[i] += weight;
    }
  }

  /// Optimal cuts by dynamic programming over the sum of widths, where a narrow cut is a gain.
  std::vector<std::size_t> best() const {
    constexpr double kNarrow = 1.25;
    const std::size_t n = width_.size() - 1;
    std::vector<double> least(n + 1, std::numeric_limits<double>::infinity());
    std::vector<std::size_t> before(n + 1, 0);
    least[0] = 0;
    for (std::size_t end = 1; end <= n; ++end) {
      const std::size_t first = end > options_.most_nodes ? end - options_.most_nodes : 0;
      for (std::size_t start = first; start < end; ++start) {
        const bool is_small = end - start < options_.least_nodes;
        const double cut = end == n ? 0 : width_[end] - kNarrow;
        const double sum = least[start] + cut + (is_small ? kNarrow : 0);
        if (sum >= least[end]) continue;
        least[end] = sum;
        before[end] = start;
      }
    }
    std::vector<std::size_t> cuts;
    for (std::size_t at = n; at > 0; at = before[at]) cuts.push_back(at);
    std::ranges::reverse(cuts);
    return cuts;
  }

 private:
  const CutOptions& options_;
  std::vector<double> width_;  // by node: of what goes across before it
};

/// Copies nodes of a graph into a graph of their own.
class RegionExtraction {
 public:
  RegionExtraction(const Graph& whole, const std::vector<bool>& constant)
      : whole_(whole), constant_(constant) {}

  Region run(std::size_t first, std::size_t end, const std::vector<bool>& is_used_later) {
    for (std::size_t n = first; n < end; ++n) {
      const GraphNode& node = whole_.nodes()[n];
      if (is_constant(node)) continue;  // comes along where it is used
      for (const ValueId id : whole_.inputs(node)) see(id, first);
    }
    for (const ValueId id : region_.inputs)
      made_[id] = region_.graph.add_input(whole_.type(id), name_of(id));
    std::vector<ValueId> outputs;
    for (std::size_t n = first; n < end; ++n) {
      const GraphNode& node = whole_.nodes()[n];
      if (is_constant(node)) continue;
      copy(n);
      for (const ValueId id : whole_.outputs(node)) {
        if (!is_used_later[id.index]) continue;
        region_.outputs.push_back(id);
        outputs.push_back(made_.at(id));
      }
    }
    region_.graph.set_outputs(std::move(outputs));
    return std::move(region_);
  }

 private:
  bool is_constant(const GraphNode& node) const {
    const auto outputs = whole_.outputs(node);
    return !outputs.empty() && constant_[outputs[0].index];
  }
  std::string name_of(ValueId id) const {
    return whole_.is_named(id) ? whole_.name(id) : std::string();
  }

  void see(ValueId id, std::size_t first) {
    if (!id.present() || constant_[id.index]) return;
    const GraphNode* node = whole_.producer(id);
    const bool outside = node == nullptr || node < &whole_.nodes()[first];
    if (outside && std::ranges::find(region_.inputs, id) == region_.inputs.end())
      region_.inputs.push_back(id);
  }

  ValueId value(ValueId id) {
    if (!id.present()) return id;
    if (const auto it = made_.find(id); it != made_.end()) return it->second;
    if (const Tensor* tensor = whole_.constant(id))
      return made_[id] = region_.graph.add_constant(*tensor, name_of(id));
    copy(static_cast<std::size_t>(whole_.producer(id) - whole_.nodes().data()));
    return made_.at(id);
  }

  void copy(std::size_t n) {
    const GraphNode& node = whole_.nodes()[n];
    const std::vector<ValueId> results =
        region_.graph.add_node(copied_node(whole_, node, [&](ValueId id) { return value(id); }));
    region_.graph.set_node_name(region_.graph.nodes().size() - 1, whole_.node_name(n));
    for (std::size_t i = 0; i < results.size(); ++i) {
      const ValueId old = whole_.outputs(node)[i];
      made_[old] = results[i];
      if (whole_.is_named(old)) region_.graph.set_name(results[i], whole_.name(old));
    }
  }

  const Graph& whole_;
  const std::vector<bool>& constant_;
  Region region_;
  std::map<ValueId, ValueId> made_;
};

/// Whether a constant is a weight, in which equal skeletons may differ.
bool is_weight(const Tensor& tensor) {
  constexpr std::int64_t kMostNumbers = 16;
  if (!is_float(tensor.dtype) || tensor.count() <= kMostNumbers) return false;
  const auto width = static_cast<std::size_t>(byte_width(tensor.dtype));
  const std::byte* data = tensor.bytes.data();
  for (std::size_t at = width; at + width <= tensor.bytes.size(); at += width)
    if (!std::equal(data, data + width, data + at)) return true;
  return false;
}

/// Weights of a graph, each memory block once, in order of use.
std::vector<Tensor> weights_of(const Graph& graph) {
  std::vector<Tensor> all;
  std::set<const std::byte*> seen;
  for (const GraphNode& node : graph.nodes())
    for (const ValueId id : graph.inputs(node)) {
      const Tensor* tensor = id.present() ? graph.constant(id) : nullptr;
      if (tensor != nullptr && is_weight(*tensor) && seen.insert(tensor->bytes.data()).second)
        all.push_back(*tensor);
    }
  return all;
}

void append(std::string& text, const void* data, std::size_t size) {
  text.append(static_cast<const char*>(data), size);
  text.push_back('|');
}
template <class Number>
void append(std::string& text, Number number) {
  append(text, &number, sizeof number);
}

}  // namespace

std::vector<Region> regions_of(const Graph& graph, const CutOptions& options) {
  std::vector<bool> constant = constant_values(graph);
  // An output that is computed from constants belongs to a region, even if no node uses it.
  for (const ValueId output : graph.outputs())
    if (const GraphNode* node = graph.producer(output))
      for (const ValueId result : graph.outputs(*node)) constant[result.index] = false;
  const std::vector<bool> sensitive = passes::nodes_before_steps(graph);
  std::vector<std::size_t> last_use(graph.value_count());
  for (std::size_t n = 0; n < graph.nodes().size(); ++n)
    for (const ValueId id : graph.inputs(graph.nodes()[n]))
      if (id.present()) last_use[id.index] = n;
  for (const ValueId id : graph.outputs()) last_use[id.index] = graph.nodes().size();
  std::vector<Region> regions;
  std::size_t first = 0;
  for (const std::size_t end : Cuts(graph, constant, options).best()) {
    std::vector<bool> later(graph.value_count());
    for (std::size_t v = 0; v < later.size(); ++v) later[v] = last_use[v] >= end;
    Region region = RegionExtraction(graph, constant).run(first, end, later);
    for (std::size_t n = first; n < end; ++n) region.keeps_rounding |= sensitive[n];
    if (!region.outputs.empty()) regions.push_back(std::move(region));
    first = end;
  }
  return regions;
}

namespace {

/// Names of values inside of regions, for their replacements. A replacement may have been derived
/// from another region that differs in its weights: then it has the names of that one, which stand
/// for the values at the same places.
class RegionNames {
 public:
  explicit RegionNames(const std::vector<Region>& regions) : regions_(regions) {
    for (std::size_t r = 0; r < regions.size(); ++r) {
      const Graph& graph = regions[r].graph;
      for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
        const auto results = graph.outputs(graph.nodes()[n]);
        for (std::size_t i = 0; i < results.size(); ++i)
          if (graph.is_named(results[i])) places_.emplace(graph.name(results[i]), Place{r, n, i});
      }
    }
  }

  /// Name in a region of a value that has this name in its replacement; empty if there is none.
  std::string own(std::size_t region, const std::string& name) const {
    const auto it = places_.find(name);
    if (it == places_.end()) return {};
    const Place& place = it->second;
    if (place.region == region) return name;
    const Graph &graph = regions_[region].graph, &other = regions_[place.region].graph;
    if (graph.nodes().size() != other.nodes().size() ||
        graph.nodes()[place.node].op != other.nodes()[place.node].op)
      return {};
    const ValueId value = graph.outputs(graph.nodes()[place.node])[place.result];
    return graph.is_named(value) ? graph.name(value) : std::string();
  }

 private:
  struct Place {
    std::size_t region, node, result;
  };
  const std::vector<Region>& regions_;
  std::map<std::string, Place> places_;
};

}  // namespace

Expected<Graph> with_regions_replaced(const Graph& whole, const std::vector<Region>& regions,
                                      const std::vector<Graph>& replacements) {
  Graph made;
  made.set_name(whole.name());
  std::map<ValueId, ValueId> mapped;  // values of the whole graph
  const auto keep_name = [&](const Graph& from, ValueId old, ValueId value) {
    if (from.is_named(old) && !made.is_named(value)) made.set_name(value, from.name(old));
  };
  for (const ValueId id : whole.inputs()) {
    mapped[id] = made.add_input(whole.type(id), {});
    keep_name(whole, id, mapped[id]);
  }
  const RegionNames names(regions);
  std::set<std::string> used;  // each name once; those of inputs and outputs are theirs
  for (const ValueId id : whole.inputs()) used.insert(whole.name(id));
  for (const Region& region : regions)
    for (const ValueId id : region.outputs) used.insert(whole.name(id));
  for (std::size_t r = 0; r < regions.size(); ++r) {
    const Graph& graph = replacements[r];
    const std::set<ValueId> outputs(graph.outputs().begin(), graph.outputs().end());
    // A replacement that was derived from another region has that region's names.
    std::set<std::string> own_names;
    for (std::size_t n = 0; n < regions[r].graph.nodes().size(); ++n)
      own_names.insert(regions[r].graph.node_name(n));
    std::vector<ValueId> values(graph.value_count());
    for (std::size_t i = 0; i < regions[r].inputs.size(); ++i)
      values[graph.inputs()[i].index] = mapped.at(regions[r].inputs[i]);
    const auto value = [&](ValueId id) {
      if (!id.present()) return id;
      if (const Tensor* constant = graph.constant(id); constant && !values[id.index].present())
        values[id.index] = made.add_constant(*constant, {});
      return values[id.index];
    };
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      const GraphNode& node = graph.nodes()[n];
      const std::vector<ValueId> results = made.add_node(copied_node(graph, node, value));
      if (own_names.contains(graph.node_name(n)))
        made.set_node_name(made.nodes().size() - 1, graph.node_name(n));
      for (std::size_t i = 0; i < results.size(); ++i) {
        const ValueId old = graph.outputs(node)[i];
        values[old.index] = results[i];
        if (!graph.is_named(old) || outputs.contains(old)) continue;
        std::string name = names.own(r, graph.name(old));
        if (!name.empty() && used.insert(name).second) made.set_name(results[i], std::move(name));
      }
    }
    for (std::size_t i = 0; i < regions[r].outputs.size(); ++i) {
      mapped[regions[r].outputs[i]] = value(graph.outputs()[i]);
      keep_name(whole, regions[r].outputs[i], mapped[regions[r].outputs[i]]);
    }
  }
  std::vector<ValueId> outputs;
  for (const ValueId id : whole.outputs()) {
    if (!mapped.contains(id)) {
      const Tensor* constant = whole.constant(id);
      TESSERA_CHECK(constant != nullptr, "{} is in no region", whole.name(id));
      mapped[id] = made.add_constant(*constant, {});
    }
    ValueId value = mapped[id];
    if (whole.is_named(id) && made.name(value) != whole.name(id)) {
      value = made.add_node(
          {.op = &identity_op(), .attrs = {}, .inputs = {value}, .outputs = {made.type(value)}})[0];
      made.set_name(value, whole.name(id));
    }
    outputs.push_back(value);
  }
  made.set_outputs(std::move(outputs));
  TESSERA_TRY_DONE(verify(made));
  return made;
}

std::string skeleton(const Graph& graph) {
  std::string text;
  // Weights that share memory, or may have equal content, do so in all graphs of one skeleton.
  std::map<const std::byte*, std::uint32_t> weights;
  std::map<std::uint64_t, std::uint32_t> contents;
  std::map<ValueId, std::uint32_t> numbers;
  const auto add_type = [&](ValueId id) { append(text, &graph.type(id)); };  // interned
  const auto add_use = [&](ValueId id) {
    if (!id.present()) return append(text, ~std::uint32_t{0});
    const Tensor* tensor = graph.constant(id);
    if (tensor == nullptr) return append(text, numbers.at(id));
    add_type(id);
    if (is_weight(*tensor)) {
      const auto next = [](const auto& map) { return static_cast<std::uint32_t>(map.size()); };
      append(text, contents.emplace(graph.hash(id), next(contents)).first->second);
      return append(text, weights.emplace(tensor->bytes.data(), next(weights)).first->second);
    }
    append(text, tensor->bytes.data(), tensor->bytes.size());
    if (tensor->strings)
      for (const std::string& word : *tensor->strings) append(text, word.data(), word.size());
  };
  const auto number = [&](ValueId id) {
    numbers.emplace(id, static_cast<std::uint32_t>(numbers.size()));
    add_type(id);
  };
  for (const ValueId id : graph.inputs()) number(id);
  for (const GraphNode& node : graph.nodes()) {
    append(text, node.op);
    append(text, node.attrs);
    for (const ValueId id : graph.inputs(node)) add_use(id);
    for (const auto& subgraph : graph.subgraphs(node)) append(text, subgraph.get());
    for (const ValueId id : graph.outputs(node)) number(id);
  }
  for (const ValueId id : graph.outputs()) add_use(id);
  return text;
}

Graph with_weights_of(const Graph& made, const Graph& from, const Graph& to) {
  const std::vector<Tensor> old = weights_of(from), others = weights_of(to);
  TESSERA_CHECK(old.size() == others.size(), "{} weights, {} others", old.size(), others.size());
  std::map<const std::byte*, const Tensor*> replaced;
  for (std::size_t i = 0; i < old.size(); ++i) replaced[old[i].bytes.data()] = &others[i];
  std::map<ValueId, ValueId> constants;
  return rebuild(made, [&](Rebuilder& out, const GraphNode& node) {
    std::vector<ValueId> inputs;
    for (const ValueId id : made.inputs(node)) {
      const Tensor* tensor = id.present() ? made.constant(id) : nullptr;
      const auto it = tensor == nullptr ? replaced.end() : replaced.find(tensor->bytes.data());
      if (it == replaced.end()) {
        inputs.push_back(out.mapped({&id, 1})[0]);
        continue;
      }
      if (!constants.contains(id)) constants[id] = out.constant(*it->second);
      inputs.push_back(constants[id]);
    }
    return out.copy(node, std::move(inputs));
  });
}

}  // namespace tessera::search
