#include "tessera/prove/align.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "tessera/ir/control.h"
#include "tessera/ir/rebuild.h"

namespace tessera::prove {
namespace {

using Names = std::vector<std::string>;

std::string listed(const Names& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

/// For each of `first` the place in `second`.
Expected<std::vector<std::size_t>> matched(const Names& first, const Names& second,
                                           std::string_view what) {
  if (first.size() != second.size())
    return Diagnostic{
        .id = fmt::format("prove-{}", what),
        .message = fmt::format("the models have {} and {} {}", first.size(), second.size(), what),
        .note = fmt::format("the first has {}; the second has {}", listed(first), listed(second))};
  std::vector<std::size_t> places(first.size());
  std::iota(places.begin(), places.end(), 0);
  // A value may be an output more than once: then its name does not tell which.
  const std::set names(first.begin(), first.end());
  if (names.size() == first.size() && names == std::set(second.begin(), second.end()))
    for (std::size_t i = 0; i < first.size(); ++i)
      places[i] = static_cast<std::size_t>(std::ranges::find(second, first[i]) - second.begin());
  return places;
}

Names names_of(const Graph& graph, std::span<const ValueId> values) {
  Names names;
  for (const ValueId value : values) names.push_back(graph.name(value));
  return names;
}

/// The graph with its inputs in this order.
Graph reordered(const Graph& graph, const std::vector<std::size_t>& order) {
  Graph made;
  made.set_name(graph.name());
  std::vector<ValueId> values(graph.value_count());
  const auto name = [&](ValueId id) { return graph.is_named(id) ? graph.name(id) : ""; };
  for (const std::size_t i : order) {
    const ValueId input = graph.inputs()[i];
    values[input.index] = made.add_input(graph.type(input), name(input));
  }
  for (std::uint32_t i = 0; i < graph.value_count(); ++i)
    if (const Tensor* constant = graph.constant({i}))
      values[i] = made.add_constant(*constant, name({i}));
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const GraphNode& node = graph.nodes()[n];
    const std::vector<ValueId> results =
        made.add_node(copied_node(graph, node, [&](ValueId id) { return values[id.index]; }));
    made.set_node_name(n, graph.node_name(n));
    for (std::size_t i = 0; i < results.size(); ++i) {
      const ValueId id = graph.outputs(node)[i];
      values[id.index] = results[i];
      if (graph.is_named(id)) made.set_name(results[i], graph.name(id));
    }
  }
  std::vector<ValueId> outputs;
  for (const ValueId id : graph.outputs()) outputs.push_back(values[id.index]);
  made.set_outputs(std::move(outputs));
  return made;
}

/// Brings together what two models say of the sizes of their inputs.
class SizeAgreement {
 public:
  Expected<Type> common(const std::string& name, const Type& source, const Type& target) {
    if (!compatible(source, target))
      return Diagnostic{.id = "prove-inputs",
                        .where = {.item = name},
                        .message = fmt::format("the input is {} in one model and {} in the other",
                                               to_string(source), to_string(target))};
    if (!source.shape || !target.shape) {
      const Type& known = source.shape ? source : target;
      if (known.shape) assume("{} is {}", name, to_string(known));
      return known;
    }
    Type type = source;
    for (std::size_t axis = 0; axis < type.shape->size(); ++axis)
      agree(name, (*type.shape)[axis], (*target.shape)[axis]);
    return type;
  }

  /// Sizes such as 2*n have to be the same expression in both models, by their names for symbols.
  Expected<Done> compounds_agree() const {
    for (const auto& [name, here, there] : compounds_) {
      const Dim ours = resolved(here, fixed_);
      const Dim theirs = there.substituted([&](std::string_view symbol) -> std::optional<Dim> {
        const auto known = by_target_.find(symbol);
        return known != by_target_.end() ? std::optional(resolved(known->second, fixed_))
                                         : std::nullopt;
      });
      if (ours != theirs)
        return Diagnostic{
            .id = "prove-inputs",
            .where = {.item = name},
            .message = fmt::format("a size of the input is {} in one model and {} in the other",
                                   here.to_string(), there.to_string())};
    }
    return Done{};
  }

  /// Sizes of the source that are others, or numbers.
  const Sizes& fixed() const { return fixed_; }
  const std::vector<Assumption>& assumptions() const { return assumptions_; }

 private:
  void agree(const std::string& name, Dim& here, const Dim& there) {
    const auto symbol = here.as_symbol(), theirs = there.as_symbol();
    if (here.constant()) {
      if (!there.constant()) assume("{} of {} is {}", there.to_string(), name, here.to_string());
    } else if (there.constant()) {
      assume("{} of {} is {}", here.to_string(), name, there.to_string());
      fix(here, there);
    } else if (symbol && theirs) {
      // Two symbols of one model that are one symbol in the other are equal.
      const auto [ours, first] = by_target_.try_emplace(std::string(*theirs), here);
      if (!first && ours->second != here) {
        assume("{} is {}", here.to_string(), ours->second.to_string());
        fix(here, ours->second);
      }
      const auto [other, new_here] = by_source_.try_emplace(std::string(*symbol), there);
      if (!new_here && other->second != there)
        assume("{} is {}", there.to_string(), other->second.to_string());
    } else {
      compounds_.push_back({name, here, there});
    }
  }

  void fix(Dim& here, const Dim& value) {
    if (const auto symbol = here.as_symbol())
      fixed_.emplace(*symbol, value);
    else
      here = value;
  }

  template <class... Parts>
  void assume(fmt::format_string<Parts...> format, Parts&&... parts) {
    assumptions_.push_back(
        {Assumption::Kind::Sizes, fmt::format(format, std::forward<Parts>(parts)...)});
  }

  struct Compound {
    std::string input;
    Dim source, target;
  };

  Sizes fixed_, by_source_, by_target_;
  std::vector<Compound> compounds_;
  std::vector<Assumption> assumptions_;
};

}  // namespace

Expected<Aligned> align(const Graph& source, const Graph& target, const AlignOptions& options) {
  const auto given = [](const Graph& graph, const Names& names) {
    return names.empty() ? names_of(graph, graph.outputs()) : names;
  };
  TESSERA_TRY(
      const std::vector<std::size_t> inputs,
      matched(names_of(source, source.inputs()), names_of(target, target.inputs()), "inputs"));
  if (source.outputs().empty() && target.outputs().empty())
    return Diagnostic{.id = "prove-outputs",
                      .message = "the models have no outputs, so there is nothing to prove"};
  TESSERA_TRY(const std::vector<std::size_t> outputs,
              matched(given(source, options.source_outputs), given(target, options.target_outputs),
                      "outputs"));
  Aligned aligned{.source = source, .target = reordered(target, inputs)};
  std::vector<ValueId> ordered;
  for (const std::size_t place : outputs) ordered.push_back(aligned.target.outputs()[place]);
  aligned.target.set_outputs(std::move(ordered));

  SizeAgreement sizes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId input = source.inputs()[i];
    TESSERA_TRY(Type type, sizes.common(source.name(input), source.type(input),
                                        aligned.target.type(aligned.target.inputs()[i])));
    aligned.inputs.push_back(std::move(type));
  }
  TESSERA_TRY_DONE(sizes.compounds_agree());
  // A size may be another that is a number.
  for (std::size_t i = 0; i <= sizes.fixed().size(); ++i)
    for (Type& type : aligned.inputs) type = with_sizes(std::move(type), sizes.fixed());
  aligned.assumptions = sizes.assumptions();
  return aligned;
}

Type with_sizes(Type type, const Sizes& sizes) {
  if (type.shape)
    for (Dim& dim : *type.shape) dim = resolved(dim, sizes);
  return type;
}

std::optional<std::vector<Type>> concrete(const std::vector<Type>& types, std::int64_t size) {
  std::vector<Type> sized;
  for (Type type : types) {
    if (!type.is_ranked_tensor()) return std::nullopt;
    for (Dim& dim : *type.shape) {
      dim = dim.substituted([&](std::string_view) { return std::optional<Dim>(size); });
      if (!dim.constant() || *dim.constant() < 0) return std::nullopt;
    }
    sized.push_back(std::move(type));
  }
  return sized;
}

}  // namespace tessera::prove
