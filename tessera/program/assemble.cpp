#include "tessera/program/assemble.h"

#include <algorithm>
#include <optional>
#include <set>

#include "tessera/program/host_call.h"
#include "tessera/program/in_place.h"
#include "tessera/program/index_checks.h"
#include "tessera/program/kernel_group.h"
#include "tessera/program/outputs.h"
#include "tessera/program/scan.h"
#include "tessera/program/stage.h"
#include "tessera/tile/fingerprint.h"

namespace tessera::program {

using runtime::ValueIndex;

namespace {

/// Channels below which images are read, and filters written, with other axes last.
constexpr std::int64_t kFewChannels = 8;

/// The tensors of a kernel group in memory.
struct GroupLayout {
  LaunchOperands operands = {};
  std::map<std::string, AxisOrder, std::less<>> orders = {};
  std::optional<AxisOrder> largest = {};  // the order of the largest operand of the result's rank
};

class Assembler {
 public:
  Assembler(const Graph& graph, const PlanContext& planning)
      : graph_(graph),
        planning_(planning),
        decisions_(decide(graph, planning.options)),
        places_(graph, decisions_, planning, out_,
                [this](std::size_t n, ValueId value) {
                  return emit({.kind = NodeKind::Alone, .nodes = {n}, .results = {value}});
                }),
        checks_(graph, decisions_, planning.options),
        reusable_(graph, decisions_),
        outputs_(graph, out_) {}

  Expected<Draft> run() {
    out_.draft.program.name = graph_.name();
    add_inputs();
    for (const NodeGroup& group : decisions_.grouping.groups) TESSERA_TRY_DONE(emit(group));
    TESSERA_TRY_DONE(outputs_.finish(places_, planning_.boundary));
    return std::move(out_.draft);
  }

 private:
  void add_inputs() {
    runtime::Program& program = out_.draft.program;
    for (const ValueId input : graph_.inputs()) {
      const bool inside = planning_.boundary == Boundary::Inside && is_plain(graph_, input);
      const auto& wish = decisions_.orders[input.index];
      const AxisOrder order = inside && wish ? *wish : row_major(rank_of(graph_, input));
      const ValueIndex index =
          out_.add_value(value_of(graph_, input, runtime::Value::Home::Input, order));
      out_.value(index).offset = static_cast<std::int64_t>(program.inputs.size());
      program.inputs.push_back(index);
      places_.set(input, {index, order});
    }
  }

  /// Emits a group; steps that it adds, and that no group within it has added, are its own.
  Expected<Done> emit(const NodeGroup& group) {
    std::vector<CompileReport::Step>& steps = out_.draft.report.steps;
    const std::size_t first = steps.size();
    TESSERA_TRY_DONE(emit_steps(group));
    for (std::size_t i = first; i < steps.size(); ++i)
      if (steps[i].nodes.empty()) steps[i].nodes = group.nodes;
    return Done{};
  }

  /// Emits a group as a whole; if it cannot be lowered, its parts; if those cannot, host calls.
  Expected<Done> emit_steps(const NodeGroup& group) {
    if (group.results.empty()) return Done{};
    if (group.kind == NodeKind::Host) {
      TESSERA_TRY(const bool is_loop, emit_scan(group.nodes[0]));
      return is_loop ? Expected<Done>(Done{}) : emit_host(group.nodes[0], group.why);
    }
    TESSERA_TRY(const bool is_update, emit_in_place(group));
    if (is_update) return Done{};
    if (!checks_.are_computed_in(group)) {
      auto done = emit_kernels(group);
      if (done) return done;
      outputs_.withdraw(group.results);
      if (group.nodes.size() == 1) return emit_host(group.nodes[0], done.error().message);
    }
    return emit_parts(group);
  }

  Expected<Done> emit_parts(const NodeGroup& group) {
    const Grouping& grouping = decisions_.grouping;
    std::set<std::size_t> of_parts;
    for (const NodeGroup& part : group.parts) {
      TESSERA_TRY_DONE(emit(part));
      of_parts.insert(part.nodes.begin(), part.nodes.end());
    }
    // Others may have joined what has parts; views are there when they are wanted.
    for (const std::size_t n : group.nodes) {
      if (of_parts.contains(n) || grouping.kinds[n] == NodeKind::View) continue;
      const auto outputs = graph_.outputs(graph_.nodes()[n]);
      TESSERA_TRY_DONE(emit({.kind = grouping.kinds[n],
                             .nodes = {n},
                             .results = {outputs.begin(), outputs.end()},
                             .spatial = group.spatial,
                             .planar = group.planar,
                             .filters = group.filters}));
    }
    return Done{};
  }

  // --- kernels --------------------------------------------------------------------------------

  Expected<Done> emit_kernels(const NodeGroup& nodes) {
    if (std::ranges::all_of(nodes.results, [&](ValueId id) { return is_empty(graph_, id); })) {
      for (const ValueId result : nodes.results) {
        const AxisOrder order = row_major(rank_of(graph_, result));
        places_.set(result, {outputs_.add_result(result, order), order});
      }
      return Done{};
    }
    // First, for moves that make indices are computed then, and not where they are read.
    TESSERA_TRY(const std::vector<IndexCheck> checks, checks_.of(nodes, places_));
    const bool scatters = nodes.kind == NodeKind::Scatter;
    TESSERA_TRY(
        KernelGroup kernels,
        kernel_group(graph_, decisions_.grouping, nodes,
                     scatters ? nodes.nodes : with_moves(graph_, decisions_, nodes, places_)));
    TESSERA_TRY(GroupLayout layout, placed_operands(nodes, kernels));
    const std::size_t value_count = out_.draft.program.values.size();
    const std::vector<Place> results = add_results(nodes, layout);
    if (auto code = lowered_in(kernels, layout); code) {
      checks_.add(checks, out_);
      add_launches(out_, graph_, *code, layout.operands, kernels.what, kernels.flops);
    } else {
      // Whoever computes them instead adds values of their own.
      out_.draft.program.values.resize(value_count);
      return std::move(code).error();
    }
    for (std::size_t i = 0; i < results.size(); ++i) set_result(nodes.results[i], results[i]);
    return Done{};
  }

  /// A box of a tensor over another one that nothing else reads: only the box is written.
  Expected<bool> emit_in_place(const NodeGroup& group) {
    if (group.kind != NodeKind::Alone || group.nodes.size() != 1) return false;
    const std::size_t n = group.nodes[0];
    const tile::Stages& stages = decisions_.grouping.stages[n];
    const auto update = stages.size() == 1 ? box_update_of(stages[0]) : std::nullopt;
    if (!update) return false;
    const auto operand = [&](const std::string& name) {
      const auto inputs = graph_.inputs(graph_.nodes()[n]);
      return *std::ranges::find(inputs, name, tensor_name);
    };
    const ValueId whole = operand(update->whole), result = group.results[0];
    if (!reusable_.contains(whole)) return false;
    TESSERA_TRY(const Place to, places_.of(whole));
    const runtime::Value& value = out_.value(to.value);
    if (value.home != runtime::Value::Home::Arena || !places_.is_whole(whole, to) ||
        value.dtype != decisions_.storage[result.index])
      return false;
    TESSERA_TRY(const Place from, places_.of(operand(update->update)));
    TESSERA_TRY(const std::optional<lower::Group> box,
                box_update_group(stages[0], *update,
                                 {.whole = to.order,
                                  .update = from.order,
                                  .whole_dtype = places_.dtype_of(to.value),
                                  .update_dtype = places_.dtype_of(from.value)}));
    if (box) {
      auto code = lowered(*box, planning_.lowerings);
      if (!code) return false;  // computed by a kernel of the whole
      add_launches(out_, graph_, *code,
                   {.values = {{"from", {from.value, from.offset}}, {"to", {to.value}}}},
                   graph_.nodes()[n].op->name, 0);
    }
    set_result(result, to);
    return true;
  }

  /// Where the operands of a group are; those of images with their channels last.
  Expected<GroupLayout> placed_operands(const NodeGroup& nodes, KernelGroup& kernels) {
    GroupLayout layout;
    const std::size_t result_rank = rank_of(graph_, nodes.results[0]);
    std::int64_t most = 0;
    for (const std::string& name : kernels.reads) {
      const ValueId id = kernels.ids.at(name);
      const std::size_t rank = rank_of(graph_, id);
      if (graph_.constant(id) != nullptr && static_shape(graph_.type(id))) {
        kernels.group.weights.insert(name);
        layout.operands.constants.emplace(name, id);
        layout.orders.emplace(name, row_major(rank));
        continue;
      }
      TESSERA_TRY(Place place,
                  nodes.kind == NodeKind::Scatter ? places_.in_full(id) : places_.of(id));
      // The first convolution of a model reads its few channels as they come.
      if (nodes.spatial && rank > 2 && rank == result_rank &&
          shape_of(graph_, id)[1] >= kFewChannels) {
        TESSERA_TRY(place, places_.in(id, channels_last(rank)));
      }
      if (nodes.planar && rank == result_rank) {
        TESSERA_TRY(place, places_.in(id, row_major(rank)));
      }
      layout.operands.values.emplace(name, runtime::Address{place.value, place.offset});
      layout.orders.emplace(name, place.order);
      const std::int64_t bytes = out_.value(place.value).bytes;
      if (rank == result_rank && bytes > most) {
        most = bytes;
        layout.largest = place.order;
      }
    }
    if (nodes.kind == NodeKind::Reduction && !planning_.options.machine.is_gpu())
      TESSERA_TRY_DONE(align_operands(kernels, layout));
    return layout;
  }

  /// Gives the largest operands of a reduction one layout, that of most of their bytes: rows of
  /// several tensors are read together, and across memory one element at a time. Of two, the one
  /// that is not row-major is that of the neighbours.
  Expected<Done> align_operands(const KernelGroup& kernels, GroupLayout& layout) {
    std::vector<std::int64_t> shape;  // of the largest
    for (const auto& [name, at] : layout.operands.values) {
      const std::vector<std::int64_t> own = shape_of(graph_, kernels.ids.at(name));
      if (element_count(own).value_or(0) > element_count(shape).value_or(0)) shape = own;
    }
    std::map<AxisOrder, std::int64_t> bytes;
    for (const auto& [name, at] : layout.operands.values)
      if (shape_of(graph_, kernels.ids.at(name)) == shape)
        bytes[layout.orders.at(name)] += out_.value(at.value).bytes;
    if (bytes.size() < 2) return Done{};
    const AxisOrder order =
        std::ranges::max_element(bytes, {}, [&](const auto& entry) {
          return std::pair(entry.second, entry.first != row_major(shape.size()));
        })->first;
    for (auto& [name, at] : layout.operands.values) {
      const ValueId id = kernels.ids.at(name);
      if (shape_of(graph_, id) != shape) continue;
      TESSERA_TRY(const Place place, places_.in(id, order));
      at = {place.value, place.offset};
      layout.orders.at(name) = place.order;
    }
    if (layout.largest && layout.largest->size() == order.size()) layout.largest = order;
    return Done{};
  }

  /// Layout of a filter. Few channels do not fill vectors: filters lie last then.
  AxisOrder filter_order(ValueId filter) const {
    const std::vector<std::int64_t> shape = shape_of(graph_, filter);
    return shape[1] < kFewChannels ? filters_last(shape.size()) : channels_last(shape.size());
  }

  /// Layout of a result without the axes that a reduction of the group folds: that of the largest
  /// operand, so that neither is accessed across memory.
  std::optional<AxisOrder> order_without_folded(const NodeGroup& nodes, ValueId result,
                                                const GroupLayout& layout) const {
    if (planning_.options.machine.is_gpu()) return std::nullopt;
    for (const std::size_t n : nodes.nodes) {
      if (decisions_.grouping.kinds[n] != NodeKind::Reduction) continue;
      const auto reduction = reduction_of(decisions_.grouping.stages[n][0]);
      if (!reduction) continue;
      const AxisOrder* largest = nullptr;
      std::int64_t most = 0;
      for (const auto& [name, at] : layout.operands.values) {
        const AxisOrder& order = layout.orders.at(name);
        const std::int64_t bytes = out_.value(at.value).bytes;
        if (order.size() == reduction->folded.size() && bytes > most) largest = &order;
        if (largest == &order) most = bytes;
      }
      if (largest == nullptr) continue;
      return without_folded(*largest, reduction->folded, shape_of(graph_, result));
    }
    return std::nullopt;
  }

  std::vector<Place> add_results(const NodeGroup& nodes, GroupLayout& layout) {
    const bool scatters = nodes.kind == NodeKind::Scatter;
    std::vector<Place> results;
    for (const ValueId result : nodes.results) {
      const std::size_t rank = rank_of(graph_, result);
      const auto& wish = decisions_.orders[result.index];
      AxisOrder order = row_major(rank);
      if (nodes.filters)
        order = filter_order(result);
      else if (nodes.spatial && rank > 2)
        order = channels_last(rank);
      else if (nodes.planar)
        order = row_major(rank);
      else if (wish && !scatters)
        order = *wish;
      else if (!scatters && layout.largest && layout.largest->size() == rank)
        order = *layout.largest;
      else if (const auto rest = order_without_folded(nodes, result, layout))
        order = *rest;
      const auto dtype = scatters ? std::nullopt : std::optional(decisions_.storage[result.index]);
      results.push_back({outputs_.add_result(result, order, dtype), order});
      const std::string name = tensor_name(result);
      layout.operands.values.emplace(name, runtime::Address{results.back().value});
      layout.orders.emplace(name, order);
    }
    return results;
  }

  void set_result(ValueId result, const Place& place) {
    const DType type = graph_.type(result).dtype, stored = places_.dtype_of(place.value);
    if (type != stored) out_.draft.report.casts.push_back({graph_.name(result), type, stored});
    places_.set(result, place);
  }

  /// The kernels of a group over tensors as they lie in memory.
  Expected<LoweredGroup> lowered_in(KernelGroup& kernels, const GroupLayout& layout) {
    tile::Stages& stages = kernels.group.stages;
    for (const auto& [name, at] : layout.operands.values)
      set_dtype(stages, name, places_.dtype_of(at.value));
    for (const auto& [name, order] : layout.orders)
      if (order != row_major(order.size())) {
        TESSERA_TRY(stages, lower::reordered(std::move(stages), name, order));
      }
    return lowered(kernels.group, planning_.lowerings);
  }

  // --- host steps and loops -------------------------------------------------------------------

  Expected<Done> emit_host(std::size_t n, const std::string& why) {
    const GraphNode& node = graph_.nodes()[n];
    auto& entry = out_.draft.report.interpreted[node.op->name];
    if (entry.count++ == 0) entry.why = why;

    HostCall call = host_call(graph_, node);
    runtime::step::Host step;
    for (const ValueId input : call.inputs) {
      TESSERA_TRY(Place place,
                  is_plain(graph_, input) ? places_.in_full(input) : places_.of(input));
      step.inputs.push_back(is_plain(graph_, input) ? with_shape(place.value, input) : place.value);
    }
    step.text = static_cast<std::uint32_t>(out_.draft.program.texts.size());
    out_.draft.program.texts.push_back(std::move(call.graph));
    for (const ValueId output : graph_.outputs(node)) {
      const AxisOrder order = row_major(rank_of(graph_, output));
      const ValueIndex value = outputs_.add_result(output, order);
      step.outputs.push_back(value);
      places_.set(output, {value, order});
    }
    out_.add_step(std::move(step), {node.op->name, "interpreted: " + why});
    return Done{};
  }

  /// The host is told shapes by values, so that a view is one of its own.
  ValueIndex with_shape(ValueIndex value, ValueId view) {
    if (out_.value(value).shape == shape_of(graph_, view)) return value;
    const ValueIndex copy = out_.add_value(
        value_of(graph_, view, runtime::Value::Home::Arena, row_major(rank_of(graph_, view))));
    out_.add_copy({.value = value}, copy);
    return copy;
  }

  /// A scan over slices that lie one after the other: a loop over the steps of its body.
  Expected<bool> emit_scan(std::size_t n) {
    const GraphNode& node = graph_.nodes()[n];
    const auto scan = scan_form(graph_, node);
    if (!scan) return false;
    TESSERA_TRY(const std::optional<Draft> body, loop_body(*scan, planning_));
    if (!body) return false;
    const auto slice_bytes = [&](ValueIndex value) {
      return out_.value(value).bytes / scan->rounds;
    };
    LoopPlaces places;
    const auto inputs = graph_.inputs(node), outputs = graph_.outputs(node);
    std::vector<StateSlots> states;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      TESSERA_TRY(const Place from, places_.in_full(inputs[i]));
      runtime::Address at{.value = from.value};
      if (i < scan->states) {
        states.emplace_back(out_,
                            value_of(graph_, outputs[i], runtime::Value::Home::Arena,
                                     row_major(rank_of(graph_, outputs[i]))),
                            *scan);
        states.back().fill(out_, {.value = from.value});
        at = states.back().before();
      } else if (i < scan->states + scan->elements) {
        at.per_round = slice_bytes(from.value);
      }
      places.inputs.push_back(at);
    }
    // Results, and what they are copied from after the loop.
    std::vector<std::pair<runtime::Address, ValueIndex>> results;
    const auto made = scan->body->outputs();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const AxisOrder order = row_major(rank_of(graph_, outputs[i]));
      const ValueIndex value = outputs_.add_result(outputs[i], order);
      places_.set(outputs[i], {value, order});
      const auto state = static_cast<std::size_t>(
          std::find(made.begin(), made.begin() + std::ssize(states), made[i]) - made.begin());
      if (i < scan->states) {
        places.outputs.push_back(states[i].after());
        results.emplace_back(states[i].last(), value);
        if (const auto copy = states[i].copy()) places.copies.push_back(*copy);
      } else if (state < states.size() && states[state].holds_all()) {
        // The states of all rounds are the result.
        places.outputs.push_back(states[state].after());
        results.emplace_back(states[state].all(), value);
      } else {
        places.outputs.push_back({.value = value, .per_round = slice_bytes(value)});
      }
    }
    append_loop(out_.draft, *body, *scan, places,
                [&](const std::shared_ptr<const tile::Kernel>& kernel) {
                  return out_.add_kernel(kernel, tile::fingerprint(*kernel));
                });
    for (const auto& [from, to] : results) out_.add_copy(from, to);
    return true;
  }

  const Graph& graph_;
  const PlanContext& planning_;
  Decisions decisions_;
  DraftBuilder out_;
  Places places_;
  IndexChecks checks_;
  ReusableValues reusable_;
  Outputs outputs_;
};

}  // namespace

Expected<Draft> assemble(const Graph& graph, const PlanContext& planning) {
  return Assembler(graph, planning).run();
}

}  // namespace tessera::program
