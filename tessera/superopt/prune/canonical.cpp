#include "tessera/superopt/prune/canonical.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tessera/prove/sizes.h"
#include "tessera/rules/match.h"
#include "tessera/rules/text.h"

namespace tessera::superopt {
namespace {

using rules::Rule;

constexpr std::size_t kMostSwaps = 10;   // commutative nodes whose operands are tried both ways
constexpr std::size_t kMostOutputs = 4;  // that are tried in all orders

/// Order of operands and outputs that selects one of a rule's texts.
struct Ordering {
  std::uint32_t swaps = 0;           // by commutative node of both sides
  std::vector<std::size_t> outputs;  // their order
};

/// Number of commutative ones among the first nodes of a graph.
std::size_t commutative_nodes(const Graph& graph, std::size_t first) {
  std::size_t count = 0;
  for (const GraphNode& node : graph.nodes().first(first))
    if (commutes(*node.op, graph.inputs(node).size())) ++count;
  return count;
}

/// Writer of a rule from its outputs, which names things in order of occurrence.
class Writer {
 public:
  Writer(const rules::Pattern& source, const rules::Pattern& target, const Ordering& choice)
      : choice_(choice) {
    for (const std::string& name : source.rule.constants) constants_.push_back(name);
    side(source);
    text_ += '=';
    side(target);
    conditions(source.rule);
  }

  std::string text() && { return std::move(text_); }

 private:
  void side(const rules::Pattern& pattern) {
    pattern_ = &pattern;
    nodes_.clear();
    for (const std::size_t i : choice_.outputs) value(graph().outputs()[i]);
    swaps_before_ += commutative_nodes(graph(), graph().nodes().size());
  }

  const Graph& graph() const { return pattern_->rule.source; }

  void value(ValueId id) {
    text_ += ' ';
    if (!id.present()) {
      text_ += '_';
    } else if (const auto& sizes = pattern_->known[id.index].value) {
      for (const Dim& dim : *sizes) size(dim);
    } else if (const Tensor* constant = graph().constant(id)) {
      text_ += fmt::format("{}:{}", rules::constant_text(*constant), to_string(graph().type(id)));
    } else if (const GraphNode* by = graph().producer(id)) {
      node(*by, id);
    } else {
      input(id);
    }
  }

  void input(ValueId id) {
    const std::string name = graph().name(id);
    const auto [it, added] = inputs_.try_emplace(name, inputs_.size());
    text_ += fmt::format("v{}", it->second);
    if (!added) return;
    if (std::ranges::find(constants_, name) != constants_.end()) text_ += 'c';
    const Type& type = graph().type(id);
    text_ += fmt::format(":{}", static_cast<int>(type.dtype));
    for (const Dim& dim : type.shape.value_or(Shape{})) size(dim);
  }

  void node(const GraphNode& node, ValueId result) {
    const auto results = graph().outputs(node);
    const auto output = std::ranges::find(results, result) - results.begin();
    const auto index = static_cast<std::size_t>(&node - graph().nodes().data());
    const auto [it, added] = nodes_.try_emplace(index, nodes_.size());
    if (!added) {
      text_ += fmt::format("#{}.{}", it->second, output);
      return;
    }
    text_ += fmt::format("{}.{}", node.op->name, output);
    for (const auto& [name, attr] : node.attrs->entries()) {
      text_ += fmt::format(" {}", name);
      if (const auto id = rules::attribute_input(graph(), *node.op, {name, attr}))
        input(*id);
      else if (const auto* symbol = std::get_if<Symbol>(&attr))
        text_ += '$' + renamed(symbol->name);
      else
        text_ += fmt::format("={}", hash_of(attr));
    }
    text_ += '(';
    const auto operands = graph().inputs(node);
    if (is_swapped(index)) {
      value(operands[1]);
      value(operands[0]);
    } else {
      for (const ValueId operand : operands) value(operand);
    }
    text_ += ')';
  }

  bool is_swapped(std::size_t node) const {
    const std::size_t before = commutative_nodes(graph(), node);
    return commutative_nodes(graph(), node + 1) != before &&
           (choice_.swaps >> (swaps_before_ + before) & 1) != 0;
  }

  std::string renamed(std::string_view symbol) {
    // Entries of a list attribute go by the name of the list.
    const std::size_t digits = symbol.find_last_not_of("0123456789") + 1;
    if (const auto list = symbols_.find(symbol.substr(0, digits));
        list != symbols_.end() && !symbols_.contains(symbol))
      return fmt::format("{}_{}", list->second, symbol.substr(digits));
    const auto [it, added] =
        symbols_.try_emplace(std::string(symbol), fmt::format("s{}", symbols_.size()));
    return it->second;
  }
  Dim renamed(const Dim& dim) {
    return dim.substituted([&](std::string_view symbol) { return Dim::symbol(renamed(symbol)); });
  }
  void size(const Dim& dim) { text_ += fmt::format(" [{}]", renamed(dim).to_string()); }

  void conditions(const Rule& rule) {
    std::vector<std::string> conditions;
    for (const auto& [shape, to] : rule.shapes)
      conditions.push_back(fmt::format("{} <= {}", renamed(shape), renamed(to)));
    for (const Condition& condition : rule.guard) {
      Dim left = renamed(condition.left), right = renamed(condition.right);
      if (condition.kind == Condition::Kind::Equal && right < left) std::swap(left, right);
      conditions.push_back(to_text(Condition{condition.kind, left, right}));
    }
    std::ranges::sort(conditions);
    text_ += fmt::format(" where {}", fmt::join(conditions, ", "));
  }

  const Ordering& choice_;
  const rules::Pattern* pattern_ = nullptr;
  std::vector<std::string> constants_;
  std::map<std::string, std::size_t> inputs_;
  std::map<std::string, std::string, std::less<>> symbols_;
  std::map<std::size_t, std::size_t> nodes_;  // of this side, by index: in the order of their text
  std::size_t swaps_before_ = 0;              // commutative nodes of the other side
  std::string text_;
};

/// Least text of a rule in one direction.
std::string least_text(const rules::Pattern& source, const rules::Pattern& target) {
  const auto all_of = [](const Graph& side) {
    return commutative_nodes(side, side.nodes().size());
  };
  const std::size_t swaps = all_of(source.rule.source) + all_of(target.rule.source);
  Ordering choice;
  choice.outputs.resize(source.rule.source.outputs().size());
  std::iota(choice.outputs.begin(), choice.outputs.end(), std::size_t{0});
  const bool permute = choice.outputs.size() <= kMostOutputs;
  std::string least;
  do {
    for (choice.swaps = 0; choice.swaps < 1u << std::min(swaps, kMostSwaps); ++choice.swaps) {
      std::string text = Writer(source, target, choice).text();
      if (least.empty() || text < least) least = std::move(text);
    }
  } while (permute && std::ranges::next_permutation(choice.outputs).found);
  return least;
}

}  // namespace

Expected<Rule> resolved(const Rule& rule) {
  for (const ValueId id : rule.source.inputs())
    if (std::ranges::any_of(rule.source.type(id).shape.value_or(Shape{}), rules::is_any_rank))
      return rule;
  TESSERA_TRY(prove::SizeRelations sizes, prove::relate_sizes(rule.source));
  TESSERA_TRY(sizes, prove::relate_sizes(rule.guard, sizes));
  TESSERA_TRY(sizes, prove::relate_sizes(rule.target, sizes));
  TESSERA_TRY(sizes, prove::relate_outputs(rule.source, rule.target, sizes));
  Rule made = rule;
  TESSERA_TRY(made.source, prove::with_sizes(rule.source, sizes.solved));
  TESSERA_TRY(made.target, prove::with_sizes(rule.target, sizes.solved));
  made.guard = sizes.open;
  return made;
}

std::string canonical(const Rule& rule) {
  const rules::Pattern forth = rules::pattern_of(rule), back = rules::pattern_of(reversed(rule));
  return std::min(least_text(forth, back), least_text(back, forth));
}

}  // namespace tessera::superopt
