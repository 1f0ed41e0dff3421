#include "tessera/prove/size_cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/ops/operators.h"
#include "tessera/prove/classes.h"
#include "tessera/prove/sizes.h"

namespace tessera::prove {
namespace {

constexpr std::size_t kMostCases = 9;

Expected<Prepared> prepared_side(const Aligned& aligned, Side side, std::vector<Type> inputs,
                                 const std::atomic<bool>* stop,
                                 ScaleReading scales = ScaleReading::Rounded) {
  const bool source = side == Side::Source;
  return prepare(
      source ? aligned.source : aligned.target,
      {.inputs = std::move(inputs), .scope = source ? "s" : "t", .scales = scales, .stop = stop});
}

class Cases {
 public:
  Cases(const Aligned& aligned, const std::atomic<bool>* stop) : aligned_(aligned), stop_(stop) {
    for (const Type& type : aligned.inputs)
      for (const Dim& dim : type.shape.value_or(Shape{})) dim.collect_symbols(symbols_);
  }

  std::vector<SizeCase> list() {
    if (!symbols_.empty() || has_sizes_of_data(aligned_.source) ||
        has_sizes_of_data(aligned_.target))
      split({}, {});
    if (leaves_.empty()) leaves_.push_back({.aligned = aligned_});
    // Sizes that no case covers are an assumption of the whole proof.
    for (SizeCase& leaf : leaves_) {
      std::vector<Assumption>& assumptions = leaf.aligned.assumptions;
      assumptions.insert(assumptions.end(), left_out_.begin(), left_out_.end());
    }
    return std::move(leaves_);
  }

 private:
  std::vector<Type> inputs(const Sizes& sizes) const {
    std::vector<Type> types = aligned_.inputs;
    for (Type& type : types) type = with_sizes(std::move(type), sizes);
    return types;
  }

  /// Whether sizes of values follow from elements, as those of non_zero do.
  static bool has_sizes_of_data(const Graph& graph) {
    for (std::uint32_t i = 0; i < graph.value_count(); ++i) {
      const Shape shape = graph.type({i}).shape.value_or(Shape{});
      if (!std::ranges::all_of(shape, [](const Dim& dim) { return dim.constant().has_value(); }))
        return true;
    }
    return false;
  }

  /// Equations that broadcasting leaves open, by model; nothing where one does not accept the
  /// sizes.
  std::optional<std::array<Guard, 2>> open(const Sizes& sizes, std::size_t& accepted,
                                           std::vector<Assumption>& assumptions,
                                           std::array<Prepared, 2>& both) const {
    std::array<Guard, 2> conditions;
    for (const Side side : kSides) {
      auto prepared = prepared_side(aligned_, side, inputs(sizes), stop_);
      if (!prepared) continue;
      const auto equal = relate_sizes(prepared->graph);
      const auto given = equal && !equal->broadcasts.empty()
                             ? relate_sizes(prepared->graph, {}, Broadcasting::Open)
                             : equal;
      if (!equal || !given) continue;
      ++accepted;
      // Of sizes that are made of others, the cases are not told apart.
      for (const Condition& condition : given->broadcasts)
        if (!is_plain(condition.left) || !is_plain(condition.right))
          assumptions.push_back(assumption(condition, prepared->graph));
      for (Condition& condition : beyond(*given, *equal))
        if (condition.kind == Condition::Kind::Equal)
          conditions[static_cast<std::size_t>(side)].push_back(std::move(condition));
      both[static_cast<std::size_t>(side)] = *std::move(prepared);
    }
    return accepted == 2 ? std::optional(std::move(conditions)) : std::nullopt;
  }

  static bool asks(const Guard& guard, const Condition& equation) {
    return std::ranges::any_of(guard, [&](const Condition& other) {
      return other == equation || other == equal(equation.right, equation.left);
    });
  }

  bool is_plain(const Dim& dim) const { return dim.constant() || symbol(dim); }

  std::optional<std::string> symbol(const Dim& dim) const {
    const auto name = dim.as_symbol();
    return name && symbols_.contains(std::string(*name)) ? std::optional<std::string>(*name)
                                                         : std::nullopt;
  }

  /// A size as readers know it: what follows from data has a made-up name, but values have one.
  static std::string text_of(const Dim& size, const Graph& graph) {
    const auto symbol = size.as_symbol();
    for (std::uint32_t i = 0; symbol && symbol->starts_with('_') && i < graph.value_count(); ++i) {
      const Shape shape = graph.type({i}).shape.value_or(Shape{});
      for (std::size_t axis = 0; axis < shape.size() && graph.is_named({i}); ++axis)
        if (shape[axis] == size) return fmt::format("axis {} of {}", axis, graph.name({i}));
    }
    return size.to_string();
  }
  static Assumption assumption(const Condition& condition, const Graph& graph) {
    return {Assumption::Kind::Sizes,
            fmt::format("{} == {}{}", text_of(condition.left, graph),
                        text_of(condition.right, graph), kMeetByBroadcasting)};
  }

  /// Conditions on sizes that only one of the models needs: the other computes something for other
  /// sizes too.
  static std::vector<Assumption> accepted_by_one(const std::array<Prepared, 2>& both,
                                                 const Sizes& sizes) {
    std::vector<Assumption> assumptions;
    for (const std::size_t side : {0, 1}) {
      const Graph &graph = both[side].graph, &other = both[1 - side].graph;
      Guard conditions;
      const auto given = relate_sizes(other);
      const auto all = given ? relate_sizes(graph, *given) : given;
      if (all) conditions = beyond(*given, *all);
      const Guard known = equal_counts(other);
      for (Condition& condition : equal_counts(graph))
        if (std::ranges::find(known, condition) == known.end())
          conditions.push_back(std::move(condition));
      for (const Condition& condition : conditions)
        assumptions.push_back(only(condition, sizes, ""));
    }
    return assumptions;
  }

  /// That one model accepts no sizes but those of a condition, in the case of these sizes.
  static Assumption only(const Condition& condition, const Sizes& sizes, std::string_view rest) {
    return {Assumption::Kind::Sizes,
            fmt::format("{}{}{}: one of the models accepts no other sizes",
                        sizes.empty() ? "" : "where " + text_of(sizes) + ", ", to_text(condition),
                        rest)};
  }
  static std::string text_of(const Sizes& sizes) {
    std::string text;
    for (const auto& [name, size] : sizes)
      text += fmt::format("{}{} == {}", text.empty() ? "" : ", ", name, size.to_string());
    return text;
  }

  /// Conditions that shapes with as many elements as others leave open.
  static Guard equal_counts(const Graph& graph) {
    Guard conditions;
    for (const GraphNode& node : graph.nodes()) {
      if (node.op != op::reshape) continue;
      const auto &from = graph.type(graph.inputs(node)[0]).shape,
                 &to = graph.type(graph.outputs(node)[0]).shape;
      if (!from || !to) continue;
      const auto [less, more] = std::minmax({product(*to), product(*from)});
      const Condition condition = equal(less, more);
      if (less != more && !(less - more).is_undefined() &&
          std::ranges::find(conditions, condition) == conditions.end())
        conditions.push_back(condition);
    }
    return conditions;
  }

  void split(const Sizes& sizes, std::vector<Assumption> assumptions) {
    std::size_t accepted = 0;
    std::array<Prepared, 2> prepared;
    const auto asked = open(sizes, accepted, assumptions, prepared);
    if (!asked) {
      if (sizes.empty()) return;
      if (accepted == 1)
        left_out_.push_back({Assumption::Kind::Sizes,
                             fmt::format("it is not so that {}: one of the models does not "
                                         "accept that",
                                         text_of(sizes))});
      return;
    }
    const Guard conditions = concat((*asked)[0], (*asked)[1]);
    const auto splits = std::ranges::find_if(conditions, [&](const Condition& condition) {
      return symbol(condition.left) || symbol(condition.right);
    });
    if (splits == conditions.end()) {
      SizeCase leaf{.aligned = aligned_, .prepared = std::move(prepared)};
      leaf.aligned.inputs = inputs(sizes);
      for (const Condition& condition : conditions)
        assumptions.push_back(assumption(condition, (*leaf.prepared)[0].graph));
      for (Assumption& one : accepted_by_one(*leaf.prepared, sizes))
        assumptions.push_back(std::move(one));
      leaf.aligned.assumptions.insert(leaf.aligned.assumptions.end(), assumptions.begin(),
                                      assumptions.end());
      leaves_.push_back(std::move(leaf));
      return;
    }
    const auto left = symbol(splits->left), right = symbol(splits->right);
    const auto with = [&](const std::string& name, const Dim& size) {
      Sizes more = sizes;
      for (auto& [known, value] : more) value = resolved(value, {{name, size}});
      more.insert_or_assign(name, size);
      return more;
    };
    if (!asks((*asked)[0], *splits) || !asks((*asked)[1], *splits))
      left_out_.push_back(only(*splits, sizes, left && right ? ", or one of them is 1" : ""));
    const bool few = ++splits_ < kMostCases;
    if (!few) assumptions.push_back(assumption(*splits, aligned_.source));
    split(left ? with(*left, splits->right) : with(*right, splits->left), assumptions);
    for (const auto& name : {left, right})
      if (few && name) split(with(*name, 1), assumptions);
  }

  const Aligned& aligned_;
  const std::atomic<bool>* stop_;
  std::set<std::string> symbols_;
  std::vector<SizeCase> leaves_;
  std::vector<Assumption> left_out_;
  std::size_t splits_ = 0;
};

}  // namespace

std::vector<SizeCase> size_cases(const Aligned& aligned, const std::atomic<bool>* stop) {
  return Cases(aligned, stop).list();
}

Expected<std::array<Prepared, 2>> prepared_pair(const Aligned& aligned,
                                                const std::atomic<bool>* stop,
                                                ScaleReading scales) {
  std::array<Prepared, 2> both;
  for (const Side side : kSides) {
    TESSERA_TRY(both[static_cast<std::size_t>(side)],
                prepared_side(aligned, side, aligned.inputs, stop, scales));
  }
  return both;
}

}  // namespace tessera::prove
