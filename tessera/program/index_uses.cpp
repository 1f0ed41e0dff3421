#include "tessera/program/index_uses.h"

#include <map>
#include <string>

#include "tessera/expr/shape.h"
#include "tessera/program/stage.h"

namespace tessera::program {
namespace {

/// An index that is an element of an operand, and whether negative ones count from the end.
struct ReadIndex {
  const node::Read* read = nullptr;
  bool wraps = false;
};

const node::Read* plain_read(const Scalar& scalar) {
  const auto* read = std::get_if<node::Read>(&scalar.node());
  return read != nullptr && read->otherwise == nullptr ? read : nullptr;
}

std::optional<ReadIndex> read_index(const Scalar& index) {
  if (const node::Read* read = plain_read(index)) return ReadIndex{read, false};
  // select(i < 0, i + size, i)
  const auto* select = std::get_if<node::Apply>(&index.node());
  if (select == nullptr || select->fn != Fn::Select) return std::nullopt;
  const auto* sum = std::get_if<node::Apply>(&select->args[1].node());
  const node::Read* read = plain_read(select->args[2]);
  if (read == nullptr || sum == nullptr || sum->fn != Fn::Add ||
      sum->args[0].id() != select->args[2].id())
    return std::nullopt;
  return ReadIndex{read, true};
}

class IndexUseFinder {
 public:
  IndexUseFinder(const Graph& graph, const GraphNode& node) : graph_(graph), node_(node) {}

  std::vector<IndexUse> run() {
    std::vector<ValueInfo> inputs;
    bool has_integers = false;
    for (const ValueId input : graph_.inputs(node_)) {
      if (input.present() && !static_shape(graph_.type(input))) return {};
      has_integers = has_integers || (input.present() && is_integer(graph_.type(input).dtype));
      inputs.push_back(value_info(graph_, input));
    }
    if (!has_integers || node_.op->kind() != OpDef::Kind::Core) return {};
    const auto signature = signature_of(inputs);
    if (!signature) return {};
    const auto definition = node_.op->define(*node_.attrs, *signature);
    if (!definition) return {};
    const auto sizes = solve_sizes(*definition, shapes_of(*signature));
    if (!sizes) return {};
    sizes_ = *sizes;
    std::size_t next = 0;
    for (const ValueId input : graph_.inputs(node_))
      if (input.present()) {
        tensors_.emplace(definition->inputs[next].name, input);
        shapes_.emplace(definition->inputs[next].name, definition->inputs[next].shape);
        ++next;
      }
    for (const Output& output : definition->outputs) {
      add_reads(output.value);
      if (!output.forward) continue;
      add_reads(output.forward->value);
      add(output.forward->target, output.shape());
    }
    return std::move(uses_);
  }

 private:
  /// Reads that every element of the result takes; one in a branch of a selection it may not.
  void add_reads(const Scalar& value) {
    if (const auto* apply = std::get_if<node::Apply>(&value.node())) {
      const std::size_t taken = apply->fn == Fn::Select ? 1 : apply->args.size();
      for (std::size_t i = 0; i < taken; ++i) add_reads(apply->args[i]);
    } else if (const auto* cast = std::get_if<node::Cast>(&value.node())) {
      add_reads(*cast->arg);
    } else if (const node::Read* read = plain_read(value)) {
      add(read->at, shapes_.at(read->operand));
    }
  }

  /// The indices of one access to a tensor of this shape.
  void add(const std::vector<Scalar>& at, const Shape& shape) {
    for (std::size_t i = 0; i < at.size(); ++i) {
      const auto index = read_index(at[i]);
      const auto size = resolved(shape[i], sizes_).constant();
      if (!index || !size) continue;
      IndexUse use{.indices = tensors_.at(index->read->operand),
                   .low = index->wraps ? -*size : 0,
                   .high = *size - 1};
      for (std::size_t axis = 0; axis < index->read->at.size(); ++axis)
        if (const auto position = index->read->at[axis].integer()) use.part = {axis, *position};
      uses_.push_back(use);
    }
  }

  const Graph& graph_;
  const GraphNode& node_;
  Sizes sizes_;
  std::map<std::string, ValueId, std::less<>> tensors_;
  std::map<std::string, Shape, std::less<>> shapes_;
  std::vector<IndexUse> uses_;
};

}  // namespace

std::vector<IndexUse> index_uses(const Graph& graph, const GraphNode& node) {
  return IndexUseFinder(graph, node).run();
}

}  // namespace tessera::program
