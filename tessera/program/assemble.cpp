#include "tessera/program/assemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <tuple>

#include "tessera/expr/text.h"
#include "tessera/ir/text.h"
#include "tessera/program/canonical.h"
#include "tessera/program/classify.h"
#include "tessera/program/index_uses.h"
#include "tessera/program/scan.h"
#include "tessera/program/stage.h"
#include "tessera/runtime/indices.h"
#include "tessera/tile/fingerprint.h"

namespace tessera::program {

using runtime::ValueIndex;

namespace {

/// Where a value of the graph is: all of a value of the program, or a piece of it.
struct Place {
  ValueIndex value = 0;
  Order order = {};
  std::int64_t offset = 0;  // bytes
};

/// Where the tensors of a group are, by name.
using Addresses = std::map<std::string, runtime::Address, std::less<>>;

/// Multiplications and additions of a stage, about.
double flops_of(const tile::Stage& stage) {
  double elements = 1;
  for (const Dim& dim : stage.output.shape())
    elements *= static_cast<double>(dim.constant().value_or(1));
  const auto fold = tile::main_fold(stage);
  if (fold == nullptr) return elements;
  for (const Bound& bound : fold->bounds)
    elements *= static_cast<double>(tile::number_of_size(bound.extent, stage.sizes).value_or(1));
  return 2 * elements;
}

class Assembler {
 public:
  Assembler(const Graph& graph, const Planning& planning)
      : graph_(graph),
        planning_(planning),
        grouping_(group_nodes(graph)),
        wishes_(wishes(graph, grouping_)),
        node_of_(graph.value_count()) {
    for (std::size_t n = 0; n < graph.nodes().size(); ++n)
      for (const ValueId output : graph.outputs(graph.nodes()[n])) node_of_[output.index] = n;
    for (const NodeGroup& group : grouping_.groups)
      for (const std::size_t n : group.nodes)
        if (grouping_.kinds[n] == NodeKind::Contraction &&
            flops_of(grouping_.stages[n][0]) >= 2 * lower::kSmallProduct)
          for (const ValueId input : graph.inputs(graph.nodes()[n])) add_factor(input);
  }

  Expected<Draft> run() {
    draft_.program.name = graph_.name();
    for (const ValueId input : graph_.inputs()) {
      const bool inside = planning_.boundary == Boundary::Inside && is_plain(input);
      const Order order =
          inside && wishes_[input.index] ? *wishes_[input.index] : row_major(rank_of(input));
      const ValueIndex index = add_value(input, runtime::Value::Home::Input, order);
      draft_.program.values[index].offset = static_cast<std::int64_t>(draft_.program.inputs.size());
      draft_.program.inputs.push_back(index);
      places_[input.index] = Place{index, order};
    }
    for (const ValueId output : graph_.outputs()) outputs_.insert(output.index);
    for (const NodeGroup& group : grouping_.groups) TESSERA_TRY_DONE(emit(group));
    TESSERA_TRY_DONE(finish_outputs());
    return std::move(draft_);
  }

 private:
  /// A tensor of numbers whose sizes are known; all else is in a box.
  bool is_plain(ValueId value) const {
    const Type& type = graph_.type(value);
    return type.kind == Type::Kind::Tensor && type.dtype != DType::String && static_shape(type);
  }
  std::size_t rank_of(ValueId value) const {
    return is_plain(value) ? graph_.type(value).shape->size() : 0;
  }
  std::vector<std::int64_t> shape_of(ValueId value) const {
    return static_shape(graph_.type(value)).value_or(std::vector<std::int64_t>{});
  }

  bool is_empty(ValueId value) const {
    return is_plain(value) && element_count(shape_of(value)) == 0;
  }

  ValueIndex add(runtime::Value value) {
    draft_.program.values.push_back(std::move(value));
    return static_cast<ValueIndex>(draft_.program.values.size() - 1);
  }

  /// The tensor behind moves is a factor of a product that rounds it anyway.
  void add_factor(ValueId value) {
    while (value.present() && node_of_[value.index]) {
      const std::size_t n = *node_of_[value.index];
      const NodeKind kind = grouping_.kinds[n];
      if (kind != NodeKind::View && kind != NodeKind::Transpose && kind != NodeKind::Move) break;
      value = grouping_.sources[n];
    }
    if (value.present()) factors_.insert(value.index);
  }

  /// What a tensor that kernels alone see is kept as: on a GPU, in the precision of products. The
  /// few bits of bf16 are for factors of products, and for what takes long to be read.
  DType kept_dtype(ValueId id) const {
    constexpr std::int64_t kMany = 1 << 20;
    const DType dtype = graph_.type(id).dtype;
    const CompileOptions& options = planning_.options;
    if (!options.machine.is_gpu() || dtype != DType::F32) return dtype;
    const bool in_full = options.products == DType::BF16 && !factors_.contains(id.index) &&
                         element_count(shape_of(id)).value_or(0) < kMany;
    return in_full ? dtype : options.products;
  }
  DType dtype_of(ValueIndex value) const { return draft_.program.values[value].dtype; }

  ValueIndex add_value(ValueId id, runtime::Value::Home home, const Order& order,
                       std::optional<DType> dtype = std::nullopt) {
    const Type& type = graph_.type(id);
    runtime::Value value{
        .name = graph_.name(id), .home = home, .dtype = dtype.value_or(type.dtype)};
    if (!is_plain(id)) {
      value.home = runtime::Value::Home::Boxed;
      return add(std::move(value));
    }
    value.shape = in_memory(shape_of(id), order);
    value.bytes = element_count(value.shape).value_or(0) * byte_width(value.dtype);
    return add(std::move(value));
  }

  ValueIndex add_temporary(const Operand& operand) {
    runtime::Value value{.name = operand.name, .dtype = operand.dtype};
    for (const Dim& dim : operand.shape) value.shape.push_back(dim.constant().value_or(0));
    value.bytes = element_count(value.shape).value_or(0) * byte_width(operand.dtype);
    return add(std::move(value));
  }

  ValueIndex weight(ValueId constant, std::shared_ptr<const Definition> packing,
                    const std::string& key) {
    const auto it = weights_.find({constant.index, key});
    if (it != weights_.end()) return it->second;
    ValueIndex index = 0;
    if (packing == nullptr) {
      index = add_value(constant, runtime::Value::Home::Weight, row_major(rank_of(constant)));
    } else {
      const Output& output = packing->outputs[0];
      Operand packed{graph_.name(constant), output.dtype, output.shape()};
      index = add_temporary(packed);
      draft_.program.values[index].home = runtime::Value::Home::Weight;
    }
    draft_.weights.emplace(index, WeightUse{*graph_.constant(constant), std::move(packing)});
    weights_.emplace(std::pair{constant.index, key}, index);
    return index;
  }

  // --- where values are ---------------------------------------------------------------------

  Expected<Place> place_of(ValueId value) {
    if (const auto it = places_.find(value.index); it != places_.end()) return it->second;
    if (graph_.constant(value) != nullptr) {
      const Place place{weight(value, nullptr, {}), row_major(rank_of(value))};
      places_[value.index] = place;
      return place;
    }
    const std::size_t n = *node_of_[value.index];
    switch (grouping_.kinds[n]) {
      case NodeKind::View: {
        const ValueId input = grouping_.sources[n];
        TESSERA_TRY(const Place from, place_in(input, row_major(rank_of(input))));
        places_[value.index] = Place{from.value, row_major(rank_of(value)), from.offset};
        break;
      }
      case NodeKind::Transpose: {
        TESSERA_TRY(const Place from, place_of(grouping_.sources[n]));
        places_[value.index] =
            Place{from.value, transposed(from.order, *permutation_of(grouping_.stages[n][0])),
                  from.offset};
        break;
      }
      case NodeKind::Move: {
        TESSERA_TRY(const bool is_piece, place_piece(value, n));
        if (is_piece) break;
        // Somebody wants the whole of it.
        TESSERA_TRY_DONE(emit({.kind = NodeKind::Alone, .nodes = {n}, .results = {value}}));
        break;
      }
      default: TESSERA_CHECK(false, "{} is not computed yet", graph_.name(value));
    }
    return places_.at(value.index);
  }

  /// A part of another value that lies in one piece needs no copy.
  Expected<bool> place_piece(ValueId value, std::size_t n) {
    if (grouping_.stages[n].size() != 1) return false;
    const auto first = piece_of(grouping_.stages[n][0]);
    const ValueId whole = grouping_.sources[n];
    if (!first || graph_.constant(whole) != nullptr) return false;
    TESSERA_TRY(const Place from, place_of(whole));
    const std::int64_t offset = *first * byte_width(dtype_of(from.value));
    if (offset % runtime::kAlignment != 0 || is_outside(whole) ||
        !same_places(shape_of(whole), from.order, row_major(rank_of(whole))))
      return false;
    places_[value.index] = Place{from.value, row_major(rank_of(value)), from.offset + offset};
    return true;
  }

  /// The value with its axes in this order; a copy where they lie otherwise.
  Expected<Place> place_in(ValueId value, const Order& order) {
    TESSERA_TRY(const Place place, place_of(value));
    return place_in(value, order, dtype_of(place.value));
  }
  /// The same for those who want it as its type says, and all of a value of the program.
  Expected<Place> place_in_full(ValueId value) {
    TESSERA_TRY(Place place, place_in(value, row_major(rank_of(value)), graph_.type(value).dtype));
    if (is_whole(value, place)) return place;
    const auto key = std::tuple{value.index, place.order, dtype_of(place.value)};
    if (const auto it = copies_.find(key); it != copies_.end()) return it->second;
    const ValueIndex copy =
        add_value(value, runtime::Value::Home::Arena, place.order, dtype_of(place.value));
    add_copy({.value = place.value, .offset = place.offset}, copy);
    return copies_.emplace(key, Place{copy, place.order}).first->second;
  }
  /// Whether it is all of a value of the program, and no piece.
  bool is_whole(ValueId value, const Place& place) const {
    const runtime::Value& whole = draft_.program.values[place.value];
    return !is_plain(value) ||
           (place.offset == 0 &&
            element_count(shape_of(value)).value_or(0) * byte_width(whole.dtype) == whole.bytes);
  }
  Expected<Place> place_in(ValueId value, const Order& order, DType dtype) {
    TESSERA_TRY(const Place place, place_of(value));
    const auto shape = shape_of(value);
    if (same_places(shape, place.order, order) && dtype == dtype_of(place.value))
      return Place{place.value, order, place.offset};
    const auto key = std::tuple{value.index, order, dtype};
    if (const auto it = copies_.find(key); it != copies_.end()) return it->second;
    const ValueIndex copy = add_value(value, runtime::Value::Home::Arena, order, dtype);
    if (!is_outside(value)) TESSERA_TRY_DONE(emit_copy(value, place, {copy, order}));
    return copies_.emplace(key, Place{copy, order}).first->second;
  }

  /// The value lies with the neighbours, who may have it in any order.
  bool is_outside(ValueId value) const {
    return planning_.boundary == Boundary::Inside && !node_of_[value.index] &&
           graph_.constant(value) == nullptr;
  }

  Expected<Done> emit_copy(ValueId value, const Place& from, const Place& to) {
    if (is_empty(value)) return Done{};
    const Type& type = graph_.type(value);
    std::vector<Axis> at = axes("i", static_cast<int>(type.shape->size()));
    for (std::size_t i = 0; i < at.size(); ++i) at[i].extent = (*type.shape)[i];
    const Operand source{"from", dtype_of(from.value), *type.shape};
    lower::Group group{.stages = {{.operands = {source},
                                   .output = {.name = "to",
                                              .dtype = dtype_of(to.value),
                                              .axes = each(at),
                                              .value = source(indices(at))},
                                   .sizes = {}}},
                       .results = {"to"},
                       .weights = {}};
    TESSERA_TRY(group.stages, lower::reordered(std::move(group.stages), "from", from.order));
    TESSERA_TRY(group.stages, lower::reordered(std::move(group.stages), "to", to.order));
    return emit_code(group, {{"from", {from.value, from.offset}}, {"to", {to.value, to.offset}}},
                     {}, "reorder");
  }

  // --- groups -------------------------------------------------------------------------------

  /// As one; if it has no form as kernels, by its parts; what is left is the host's.
  Expected<Done> emit(const NodeGroup& group) {
    if (group.results.empty()) return Done{};
    if (group.kind == NodeKind::Host) {
      TESSERA_TRY(const bool is_loop, emit_scan(group.nodes[0]));
      return is_loop ? Expected<Done>(Done{}) : emit_host(group.nodes[0], group.why);
    }
    if (!computes_own_indices(group)) {
      auto done = emit_kernels(group);
      if (done) return done;
      for (const ValueId result : group.results) given_.erase(result.index);
      if (group.nodes.size() == 1) return emit_host(group.nodes[0], done.error().message);
    }
    std::set<std::size_t> of_parts;
    for (const NodeGroup& part : group.parts) {
      TESSERA_TRY_DONE(emit(part));
      of_parts.insert(part.nodes.begin(), part.nodes.end());
    }
    // Others may have joined what has parts; views are there when they are wanted.
    for (const std::size_t n : group.nodes) {
      if (of_parts.contains(n) || grouping_.kinds[n] == NodeKind::View) continue;
      const auto outputs = graph_.outputs(graph_.nodes()[n]);
      TESSERA_TRY_DONE(emit({.kind = grouping_.kinds[n],
                             .nodes = {n},
                             .results = {outputs.begin(), outputs.end()},
                             .spatial = group.spatial}));
    }
    return Done{};
  }

  /// Whether indices that have to be looked at before a node is computed are computed in the same
  /// group.
  bool computes_own_indices(const NodeGroup& group) const {
    if (planning_.options.machine.is_gpu()) return false;  // computed ones are not looked at there
    const std::set<std::size_t> nodes(group.nodes.begin(), group.nodes.end());
    for (const std::size_t n : group.nodes)
      for (const IndexUse& use : index_uses(graph_, graph_.nodes()[n])) {
        const auto producer = node_of_[behind_views(use.indices).index];
        if (producer && nodes.contains(*producer)) return true;
      }
    return false;
  }

  /// Indices that are looked at before a node is computed.
  struct IndexCheck {
    std::size_t node = 0;
    IndexUse use = {};
    runtime::step::CheckIndices step = {};
  };

  /// Those of a group that are not known to be in range and were not looked at before.
  Expected<std::vector<IndexCheck>> checks_of(const NodeGroup& group) {
    std::vector<IndexCheck> checks;
    for (const std::size_t n : group.nodes)
      for (const IndexUse& use : index_uses(graph_, graph_.nodes()[n])) {
        if (is_empty(use.indices)) continue;
        const auto shape = shape_of(use.indices);
        if (const Tensor* constant = graph_.constant(use.indices)) {
          const auto step = check_of(use, shape, {.order = row_major(shape.size())});
          if (!runtime::index_outside(step, constant->dtype, constant->bytes.data(), 1)) continue;
        }
        if (checked_.contains(use)) continue;
        if (planning_.options.machine.is_gpu() && !is_of_caller(use.indices)) continue;
        TESSERA_TRY(const Place place, place_of(use.indices));
        checks.push_back({n, use, check_of(use, shape, place)});
      }
    return checks;
  }

  static runtime::step::CheckIndices check_of(const IndexUse& use,
                                              const std::vector<std::int64_t>& shape,
                                              const Place& place) {
    runtime::step::CheckIndices step{.at = {.value = place.value, .offset = place.offset},
                                     .count = element_count(shape).value_or(0),
                                     .low = use.low,
                                     .high = use.high};
    if (!use.part) return step;
    step.period = shape[use.part->axis];
    step.phase = use.part->position;
    for (std::size_t i = place.order.size(); place.order[--i] != static_cast<int>(use.part->axis);)
      step.stride *= shape[static_cast<std::size_t>(place.order[i])];
    return step;
  }

  /// An input of the program, or a view of one.
  bool is_of_caller(ValueId value) const {
    const ValueId source = behind_views(value);
    return !node_of_[source.index] && graph_.constant(source) == nullptr;
  }

  /// The value that a chain of views shows.
  ValueId behind_views(ValueId value) const {
    while (node_of_[value.index] && grouping_.kinds[*node_of_[value.index]] == NodeKind::View)
      value = grouping_.sources[*node_of_[value.index]];
    return value;
  }

  void add_checks(const std::vector<IndexCheck>& checks) {
    for (const IndexCheck& check : checks) {
      const std::string& name = graph_.node_name(check.node);
      add_step(check.step,
               {name.empty() ? graph_.nodes()[check.node].op->name : name, "check of indices"});
      checked_.insert(check.use);
    }
  }

  /// The nodes of a group and the moves that they read, in order.
  std::vector<std::size_t> with_moves(const NodeGroup& group) const {
    std::set<std::size_t> all(group.nodes.begin(), group.nodes.end());
    std::vector<std::size_t> open(group.nodes);
    while (!open.empty()) {
      const std::size_t n = open.back();
      open.pop_back();
      for (const ValueId input : graph_.inputs(graph_.nodes()[n])) {
        if (!input.present() || places_.contains(input.index)) continue;
        const auto from = node_of_[input.index];
        if (!from || grouping_.kinds[*from] != NodeKind::Move || all.contains(*from)) continue;
        const bool beyond = std::ranges::any_of(grouping_.stages[n], [&](const tile::Stage& stage) {
          return reads_beyond(stage, tensor_name(input));
        });
        if (beyond) continue;
        all.insert(*from);
        open.push_back(*from);
      }
    }
    return {all.begin(), all.end()};
  }

  Expected<Done> emit_kernels(const NodeGroup& node_group) {
    if (std::ranges::all_of(node_group.results, [&](ValueId id) { return is_empty(id); })) {
      for (const ValueId result : node_group.results) {
        const Order order = row_major(rank_of(result));
        places_[result.index] = Place{add_result(result, order), order};
      }
      return Done{};
    }
    // First, for moves that make indices are computed then, and not where they are read.
    TESSERA_TRY(const std::vector<IndexCheck> checks, checks_of(node_group));
    const bool scatters = node_group.kind == NodeKind::Scatter;
    const std::vector<std::size_t> nodes = scatters ? node_group.nodes : with_moves(node_group);
    lower::Group group;
    std::map<std::string, ValueId, std::less<>> ids;
    std::string what;
    for (const std::size_t n : nodes) {
      const GraphNode& node = graph_.nodes()[n];
      if (std::ranges::find(node_group.nodes, n) != node_group.nodes.end())
        what += (what.empty() ? "" : "+") + node.op->name;
      for (const ValueId input : graph_.inputs(node))
        if (input.present()) ids[tensor_name(input)] = input;
      for (const ValueId output : graph_.outputs(node)) ids[tensor_name(output)] = output;
      for (const tile::Stage& stage : grouping_.stages[n]) group.stages.push_back(stage);
    }
    for (const ValueId result : node_group.results) group.results.push_back(tensor_name(result));
    double flops = 0;
    for (const tile::Stage& stage : group.stages) flops += flops_of(stage);

    // Stages that nobody reads are those of other results of a node.
    TESSERA_TRY(group.stages, lower::inlined(std::move(group.stages), group.results));
    std::set<std::string> is_read;
    for (const tile::Stage& stage : group.stages)
      for (const Operand& operand : stage.operands) is_read.insert(operand.name);
    std::erase_if(group.stages, [&](const tile::Stage& stage) {
      return !is_read.contains(stage.name()) &&
             std::ranges::find(group.results, stage.name()) == group.results.end();
    });
    std::set<std::string> stages;
    for (const tile::Stage& stage : group.stages) stages.insert(stage.name());

    Addresses values;
    std::map<std::string, ValueId, std::less<>> constants;
    std::map<std::string, Order, std::less<>> orders;
    std::int64_t most = 0;
    std::optional<Order> of_largest;
    for (const std::string& name : is_read) {
      if (stages.contains(name)) continue;
      const ValueId id = ids.at(name);
      if (graph_.constant(id) != nullptr && static_shape(graph_.type(id))) {
        group.weights.insert(name);
        constants.emplace(name, id);
        orders.emplace(name, row_major(rank_of(id)));
        continue;
      }
      TESSERA_TRY(Place place, scatters ? place_in_full(id) : place_of(id));
      const auto shape = shape_of(id);
      // The first convolution of a model reads its few channels as they come.
      if (node_group.spatial && rank_of(id) > 2 && rank_of(id) == rank_of(node_group.results[0]) &&
          shape[1] >= 8) {
        TESSERA_TRY(place, place_in(id, channels_last(rank_of(id))));
      }
      values.emplace(name, runtime::Address{place.value, place.offset});
      orders.emplace(name, place.order);
      const std::int64_t bytes = draft_.program.values[place.value].bytes;
      if (rank_of(id) == rank_of(node_group.results[0]) && bytes > most) {
        most = bytes;
        of_largest = place.order;
      }
    }
    std::vector<Place> results;
    const std::size_t value_count = draft_.program.values.size();
    for (const ValueId result : node_group.results) {
      const std::size_t rank = rank_of(result);
      Order order = row_major(rank);
      if (node_group.spatial && rank > 2)
        order = channels_last(rank);
      else if (wishes_[result.index] && !scatters)
        order = *wishes_[result.index];
      else if (!scatters && of_largest && of_largest->size() == rank)
        order = *of_largest;
      results.push_back(
          {add_result(result, order, scatters ? std::nullopt : std::optional(kept_dtype(result))),
           order});
      values.emplace(tensor_name(result), runtime::Address{results.back().value});
      orders.emplace(tensor_name(result), order);
    }
    for (const auto& [name, at] : values) set_dtype(group.stages, name, dtype_of(at.value));
    const auto emit_group = [&]() -> Expected<Done> {
      for (const auto& [name, order] : orders)
        if (order != row_major(order.size())) {
          TESSERA_TRY(group.stages, lower::reordered(std::move(group.stages), name, order));
        }
      return emit_code(group, values, constants, what, flops, checks);
    };
    if (auto done = emit_group(); !done) {
      // Whoever computes them instead adds values of their own.
      draft_.program.values.resize(value_count);
      return done;
    }
    for (std::size_t i = 0; i < results.size(); ++i)
      places_[node_group.results[i].index] = results[i];
    return Done{};
  }

  /// A tensor of a group in memory as another dtype than its type says.
  static void set_dtype(tile::Stages& stages, const std::string& name, DType dtype) {
    for (tile::Stage& stage : stages) {
      if (stage.name() == name) stage.output.dtype = dtype;
      for (Operand& operand : stage.operands)
        if (operand.name == name) operand.dtype = dtype;
    }
  }

  /// A result of the program lies with the caller, if it can, else as this dtype.
  ValueIndex add_result(ValueId result, const Order& order,
                        std::optional<DType> dtype = std::nullopt) {
    const bool direct = is_plain(result) && outputs_.contains(result.index) &&
                        !given_.contains(result.index) &&
                        same_places(shape_of(result), order, row_major(order.size()));
    const ValueIndex index =
        direct ? add_value(result, runtime::Value::Home::Output, row_major(order.size()))
               : add_value(result, runtime::Value::Home::Arena, order, dtype);
    if (direct) given_.emplace(result.index, index);
    return index;
  }

  std::uint32_t kernel_of(const std::shared_ptr<const tile::Kernel>& kernel,
                          const std::string& fingerprint) {
    const auto [it, is_new] =
        kernels_.emplace(fingerprint, static_cast<std::uint32_t>(draft_.kernels.size()));
    if (is_new) {
      draft_.kernels.push_back(kernel);
      draft_.program.kernels.push_back({.name = kernel->name});
    }
    return it->second;
  }

  /// `values` are the tensors of the group, but for constants.
  Expected<Done> emit_code(const lower::Group& group, const Addresses& values,
                           const std::map<std::string, ValueId, std::less<>>& constants,
                           const std::string& what, double flops = 0,
                           const std::vector<IndexCheck>& checks = {}) {
    const Canonical same = canonical(group);
    const std::shared_ptr<const Lowering> lowering = planning_.lowerings.of(same);
    if (!lowering->made) return lowering->made.error();
    const lower::GroupCode& code = *lowering->made;
    add_checks(checks);

    Addresses arguments;
    for (const auto& [name, at] : values)
      if (const auto it = same.name_of.find(name); it != same.name_of.end())
        arguments.emplace(it->second, at);
    std::map<std::string, ValueId, std::less<>> weights;
    for (const auto& [name, id] : constants)
      if (const auto it = same.name_of.find(name); it != same.name_of.end())
        weights.emplace(it->second, id);
    for (std::size_t i = 0; i < code.packings.size(); ++i) {
      const lower::Packing& packing = code.packings[i];
      arguments.emplace(
          packing.definition.outputs[0].name,
          runtime::Address{weight(weights.at(packing.weight), {lowering, &packing.definition},
                                  lowering->packings[i])});
    }
    for (const Operand& temporary : code.temporaries)
      arguments.emplace(temporary.name, runtime::Address{add_temporary(temporary)});

    double bytes = 0;
    for (const auto& [name, at] : arguments)
      bytes += static_cast<double>(draft_.program.values[at.value].bytes);
    for (std::size_t k = 0; k < code.kernels.size(); ++k) {
      const lower::Lowered& lowered = code.kernels[k];
      if (std::ranges::count(lowered.grid, 0) > 0) continue;
      runtime::step::Launch launch{
          .kernel = kernel_of({lowering, &lowered.kernel}, lowering->fingerprints[k]),
          .grid = lowered.grid};
      for (std::size_t i = 0; i < lowered.arguments.size(); ++i) {
        const std::string& name = lowered.arguments[i];
        if (!arguments.contains(name))
          arguments.emplace(name, runtime::Address{weight(weights.at(name), {}, {})});
        const runtime::Address& at = arguments.at(name);
        const tile::Type& type = lowered.kernel.type(lowered.kernel.params()[i]);
        const bool is_result = i + 1 == lowered.arguments.size();
        const std::int64_t offset =
            at.offset + (is_result ? lowered.offset * byte_width(type.dtype) : 0);
        launch.patches.push_back({.word = static_cast<std::uint32_t>(launch.words.size()),
                                  .at = {.value = at.value, .offset = offset},
                                  .bytes = draft_.program.values[at.value].bytes - offset});
        launch.words.push_back(0);
        if (!type.is_view()) continue;
        for (const std::int64_t extent : type.shape)
          launch.words.push_back(static_cast<std::uint64_t>(extent));
        for (const std::int64_t stride : type.strides)
          launch.words.push_back(static_cast<std::uint64_t>(stride));
      }
      // What comes before the last kernel prepares its operands.
      const bool last = k + 1 == code.kernels.size();
      add_step(std::move(launch), {what, last ? code.strategy : "…", lowering}, last ? flops : 0,
               last ? bytes : 0);
    }
    return Done{};
  }

  void add_step(runtime::Step step, CompileReport::Step report, double flops = 0,
                double bytes = 0) {
    draft_.program.steps.push_back(std::move(step));
    draft_.program.notes.push_back({.what = report.what, .flops = flops, .bytes = bytes});
    draft_.report.steps.push_back(std::move(report));
  }

  /// All of a value, byte by byte.
  void add_copy(const runtime::Address& from, ValueIndex to) {
    add_step(
        runtime::step::Copy{
            .from = from, .to = {.value = to}, .bytes = draft_.program.values[to].bytes},
        {"copy", ""});
  }

  // --- what is left to the host -------------------------------------------------------------

  Expected<Done> emit_host(std::size_t n, const std::string& why) {
    const GraphNode& node = graph_.nodes()[n];
    auto& entry = draft_.report.interpreted[node.op->name];
    if (entry.count++ == 0) entry.why = why;

    Graph alone;
    alone.set_name(node.op->name);
    runtime::step::Host step;
    std::vector<ValueId> inputs;
    std::map<std::uint32_t, ValueId> made;
    for (const ValueId input : graph_.inputs(node)) {
      if (!input.present()) {
        inputs.push_back({});
        continue;
      }
      if (const auto it = made.find(input.index); it != made.end()) {
        inputs.push_back(it->second);
        continue;
      }
      const Tensor* constant = graph_.constant(input);
      if (constant != nullptr && (constant->dtype == DType::String || constant->count() <= 64)) {
        inputs.push_back(alone.add_constant(*constant, {}));
      } else {
        Place place;
        if (is_plain(input)) {
          TESSERA_TRY(place, place_in_full(input));
          place.value = with_shape(place.value, input);
        } else {
          TESSERA_TRY(place, place_of(input));
        }
        inputs.push_back(alone.add_input(graph_.type(input), fmt::format("x{}", inputs.size())));
        step.inputs.push_back(place.value);
      }
      made.emplace(input.index, inputs.back());
    }
    std::vector<Type> types;
    for (const ValueId output : graph_.outputs(node)) types.push_back(graph_.type(output));
    const auto subgraphs = graph_.subgraphs(node);
    alone.set_outputs(alone.add_node({.op = node.op,
                                      .attrs = *node.attrs,
                                      .inputs = std::move(inputs),
                                      .outputs = std::move(types),
                                      .subgraphs = {subgraphs.begin(), subgraphs.end()}}));
    step.text = static_cast<std::uint32_t>(draft_.program.texts.size());
    draft_.program.texts.push_back(to_text(alone));
    for (const ValueId output : graph_.outputs(node)) {
      const Order order = row_major(rank_of(output));
      const ValueIndex value = add_result(output, order);
      step.outputs.push_back(value);
      places_[output.index] = Place{value, order};
    }
    add_step(std::move(step), {node.op->name, "interpreted: " + why});
    return Done{};
  }

  /// A scan over slices that lie one after the other: a loop over the steps of its body.
  Expected<bool> emit_scan(std::size_t n) {
    const GraphNode& node = graph_.nodes()[n];
    const auto scan = scan_form(graph_, node);
    if (!scan) return false;
    TESSERA_TRY(const std::optional<Draft> body, loop_body(*scan, planning_));
    if (!body) return false;
    const auto slice_bytes = [&](ValueIndex value) {
      return draft_.program.values[value].bytes / scan->rounds;
    };
    LoopPlaces places;
    const auto inputs = graph_.inputs(node), outputs = graph_.outputs(node);
    std::vector<ValueIndex> states;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      TESSERA_TRY(const Place from, place_in_full(inputs[i]));
      runtime::Address at{.value = from.value};
      if (i < scan->states) {
        at.value = add_result(outputs[i], row_major(rank_of(outputs[i])));
        states.push_back(at.value);
        add_copy({.value = from.value}, at.value);
      } else if (i < scan->states + scan->elements) {
        at.per_round = slice_bytes(from.value);
      }
      places.inputs.push_back(at);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Order order = row_major(rank_of(outputs[i]));
      ValueIndex value = 0;
      if (i < scan->states) {
        value = add_value(outputs[i], runtime::Value::Home::Arena, order);
        places.copies.push_back({{.value = value}, {.value = states[i]}});
        places.outputs.push_back({.value = value});
      } else {
        value = add_result(outputs[i], order);
        places.outputs.push_back({.value = value, .per_round = slice_bytes(value)});
      }
      places_[outputs[i].index] = Place{i < scan->states ? states[i] : value, order};
    }
    append_loop(draft_, *body, *scan, places,
                [&](const std::shared_ptr<const tile::Kernel>& kernel) {
                  return kernel_of(kernel, tile::fingerprint(*kernel));
                });
    return true;
  }

  /// The host is told shapes by values, so that a view is one of its own.
  ValueIndex with_shape(ValueIndex value, ValueId view) {
    if (draft_.program.values[value].shape == shape_of(view)) return value;
    const ValueIndex copy = add_value(view, runtime::Value::Home::Arena, row_major(rank_of(view)));
    add_copy({.value = value}, copy);
    return copy;
  }

  // --- results of the program ---------------------------------------------------------------

  Expected<Done> finish_outputs() {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId output = graph_.outputs()[i];
      TESSERA_TRY(const Place place,
                  place_of(output));  // may compute it, where the caller wants it
      const auto it = given_.find(output.index);
      if (it != given_.end() && !taken_.contains(it->second)) {
        taken_.insert(it->second);
        draft_.program.values[it->second].offset = static_cast<std::int64_t>(i);
        draft_.program.values[it->second].name = graph_.name(output);
        draft_.program.outputs.push_back(it->second);
        continue;
      }
      const bool is_boxed = draft_.program.values[place.value].home == runtime::Value::Home::Boxed;
      if (is_boxed || (planning_.boundary == Boundary::Inside && is_whole(output, place))) {
        draft_.program.outputs.push_back(place.value);
        continue;
      }
      const Order order = row_major(rank_of(output));
      const ValueIndex value = add_value(output, runtime::Value::Home::Output, order);
      draft_.program.values[value].offset = static_cast<std::int64_t>(i);
      draft_.program.outputs.push_back(value);
      if (same_places(shape_of(output), place.order, order) &&
          dtype_of(place.value) == dtype_of(value)) {
        add_copy({.value = place.value, .offset = place.offset}, value);
      } else {
        TESSERA_TRY_DONE(emit_copy(output, place, {value, order}));
      }
    }
    return Done{};
  }

  const Graph& graph_;
  const Planning& planning_;
  Grouping grouping_;
  std::vector<std::optional<Order>> wishes_;
  std::vector<std::optional<std::size_t>> node_of_;  // by value
  std::set<std::uint32_t> factors_;                  // values of the graph that large products read
  Draft draft_;
  std::set<std::uint32_t> outputs_;            // values of the graph
  std::map<std::uint32_t, ValueIndex> given_;  // results that lie with the caller
  std::set<ValueIndex> taken_;
  std::map<std::uint32_t, Place> places_;  // by value of the graph
  std::set<IndexUse> checked_;
  std::map<std::tuple<std::uint32_t, Order, DType>, Place> copies_;
  std::map<std::pair<std::uint32_t, std::string>, ValueIndex> weights_;
  std::map<std::string, std::uint32_t> kernels_;
};

}  // namespace

Expected<Draft> assemble(const Graph& graph, const Planning& planning) {
  return Assembler(graph, planning).run();
}

}  // namespace tessera::program
