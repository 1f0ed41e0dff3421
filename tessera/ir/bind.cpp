#include "tessera/ir/bind.h"

#include <algorithm>
#include <charconv>

namespace tessera {
namespace {

/// Splits a symbol of a list entry: `s12` into s and 12.
std::optional<std::pair<std::string_view, std::size_t>> entry_of(std::string_view symbol) {
  const std::size_t digits = symbol.find_last_not_of("0123456789") + 1;
  std::size_t entry = 0;
  const auto [end, error] =
      std::from_chars(symbol.data() + digits, symbol.data() + symbol.size(), entry);
  if (error != std::errc() || digits == 0) return std::nullopt;
  return std::pair(symbol.substr(0, digits), entry);
}

/// Value of an integer node result that is known.
std::optional<Tensor> known_integers(const GraphBuilder& out, const GraphNode& node,
                                     const Vals& operands) {
  if (node.op->kind() != OpDef::Kind::Core || node.attrs->symbolic() != nullptr) return {};
  std::vector<ValueInfo> inputs;
  for (const Val& operand : operands)
    inputs.push_back(operand.present() ? out.known(operand) : ValueInfo{.present = false});
  const auto results = infer(*node.op, *node.attrs, inputs);
  if (!results || !(*results)[0].value || (*results)[0].type.dtype != DType::I64) return {};
  Ints integers, shape;
  for (const Dim& dim : *(*results)[0].value) {
    if (!dim.constant()) return {};
    integers.push_back(*dim.constant());
  }
  for (const Dim& dim : *(*results)[0].type.shape) shape.push_back(dim.constant().value_or(0));
  return Tensor::of<std::int64_t>(DType::I64, std::move(shape), integers);
}

}  // namespace

bool Binding::bind_size(const std::string& name, const Dim& size) {
  if (const std::optional<Dim> is = of(name)) return *is == size;
  sizes_.emplace(name, size);
  return true;
}

bool Binding::bind_attr(const std::string& name, const Attr& value, std::int64_t neutral) {
  const auto [it, added] = attrs_.try_emplace(name, Entry{value, neutral});
  if (!added) return equal(it->second.value, value);
  // Sizes that were bound before have to agree.
  return std::ranges::all_of(sizes_, [&](const auto& known) {
    return of_attrs(known.first).value_or(known.second) == known.second;
  });
}

std::optional<Dim> Binding::of(std::string_view symbol) const {
  const auto it = sizes_.find(symbol);
  return it != sizes_.end() ? it->second : of_attrs(symbol);
}

std::optional<Dim> Binding::of_attrs(std::string_view symbol) const {
  if (const auto it = attrs_.find(symbol); it != attrs_.end()) {
    if (const auto* number = std::get_if<std::int64_t>(&it->second.value)) return Dim(*number);
    if (const auto* name = std::get_if<Symbol>(&it->second.value)) return Dim::symbol(name->name);
  }
  const auto entry = entry_of(symbol);
  const auto it = entry ? attrs_.find(entry->first) : attrs_.end();
  if (it == attrs_.end()) return std::nullopt;
  if (const auto* name = std::get_if<Symbol>(&it->second.value))
    return entry_symbol(name->name, entry->second);
  const auto* list = std::get_if<Ints>(&it->second.value);
  if (list == nullptr) return std::nullopt;
  if (list->empty()) return Dim(it->second.neutral);
  return entry->second < list->size() ? std::optional<Dim>((*list)[entry->second]) : std::nullopt;
}

Dim Binding::size(const Dim& dim) const {
  if (dim.constant()) return dim;
  return dim.substituted([&](std::string_view symbol) { return of(symbol); });
}

Tensor Binding::constant(const Tensor& tensor) const {
  if (tensor.dtype != DType::F32 || real_ == DType::F32) return tensor;
  Buffer buffer(static_cast<std::size_t>(tensor.count() * byte_width(real_)));
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    store_number(real_, buffer.data(), i, number_at(tensor, i));
  return {.dtype = real_, .shape = tensor.shape, .bytes = std::move(buffer).freeze()};
}

std::optional<Tensor> Binding::real(std::string_view name) const {
  const auto it = attrs_.find(name);
  const auto* number = it == attrs_.end() ? nullptr : std::get_if<double>(&it->second.value);
  if (number == nullptr) return std::nullopt;
  Buffer buffer(static_cast<std::size_t>(byte_width(real_)));
  store_number(real_, buffer.data(), 0, *number);
  return Tensor{.dtype = real_, .bytes = std::move(buffer).freeze()};
}

Type Binding::type(Type type) const {
  if (type.kind == Type::Kind::Tensor) type.dtype = dtype(type.dtype);
  if (type.shape)
    for (Dim& dim : *type.shape) dim = size(dim);
  return type;
}

Attrs Binding::attrs(const OpDef& op, const Attrs& attrs) const {
  if (attrs.symbolic() == nullptr) return attrs;
  Attrs result;
  for (const auto& [name, attr] : attrs.entries()) {
    const auto* symbol = std::get_if<Symbol>(&attr);
    const auto whole = symbol == nullptr ? attrs_.end() : attrs_.find(symbol->name);
    if (symbol == nullptr || whole != attrs_.end()) {
      result.set(name, symbol == nullptr ? attr : whole->second.value);
      continue;
    }
    const auto spec = std::ranges::find(op.attrs, name, &AttrSpec::name);
    const auto number = [&](const std::string& of_symbol) {
      const std::optional<Dim> is = of(of_symbol);
      return is ? is->constant() : std::nullopt;
    };
    Attr value = attr;
    if (spec != op.attrs.end() && std::holds_alternative<Ints>(spec->value)) {
      Ints list;
      while (const auto entry = number(fmt::format("{}{}", symbol->name, list.size())))
        list.push_back(*entry);
      if (!list.empty()) value = std::move(list);
    } else if (const auto found = number(symbol->name)) {
      value = *found;
    }
    result.set(name, std::move(value));
  }
  return result;
}

Expected<Vals> placed(GraphBuilder& out, const Graph& graph, const Vals& inputs,
                      const Binding& binding, KnownSizes sizes) {
  Vals values(graph.value_count());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
  const auto kept_name = [&](ValueId id) {
    return graph.is_named(id) ? graph.name(id) : std::string();
  };
  const auto mapped = [&](ValueId id) {
    if (!id.present()) return Val{};
    Val& value = values[id.index];
    if (const Tensor* constant = graph.constant(id); constant != nullptr && !value.present())
      value = out.constant(binding.constant(*constant), kept_name(id));
    return value;
  };
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const GraphNode& node = graph.nodes()[n];
    const auto ids = graph.outputs(node);
    Vals operands;
    for (const ValueId id : graph.inputs(node)) operands.push_back(mapped(id));
    if (sizes == KnownSizes::Constant) {
      if (std::optional<Tensor> known = known_integers(out, node, operands);
          known && ids.size() == 1) {
        values[ids[0].index] = out.constant(*std::move(known));
        continue;
      }
    }
    Vals results;
    if (node.op->kind() == OpDef::Kind::Control) {
      GraphBuilder::Subgraphs subgraphs;
      for (const auto& subgraph : graph.subgraphs(node)) {
        TESSERA_TRY(Graph inner, bound(*subgraph, binding));
        subgraphs.push_back(std::make_shared<const Graph>(std::move(inner)));
      }
      std::vector<Type> types;
      for (const ValueId id : ids) types.push_back(binding.type(graph.type(id)));
      results = out.call_control(*node.op, operands, *node.attrs, std::move(subgraphs), types);
    } else {
      results = out.call(*node.op, operands, binding.attrs(*node.op, *node.attrs),
                         static_cast<int>(ids.size()));
    }
    if (out.failed()) return *out.error();
    out.name_last_node(graph.node_name(n));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      values[ids[i].index] = results[i];
      out.refine(results[i], binding.type(graph.type(ids[i])));
      if (std::string name = kept_name(ids[i]); !name.empty())
        out.name(results[i], std::move(name));
    }
  }
  Vals outputs;
  for (const ValueId id : graph.outputs()) outputs.push_back(mapped(id));
  return outputs;
}

Expected<Graph> bound(const Graph& graph, const Binding& binding) {
  GraphBuilder out;
  Vals inputs;
  for (const ValueId id : graph.inputs())
    inputs.push_back(out.input(graph.is_named(id) ? graph.name(id) : "",
                               {.type = binding.type(graph.type(id))}));
  TESSERA_TRY(const Vals outputs, placed(out, graph, inputs, binding));
  TESSERA_TRY(Graph made, out.finish(outputs));
  made.set_name(graph.name());
  return made;
}

Expected<Graph> bound(const Graph& graph, const SizeValues& sizes) {
  return bound(graph, Binding(sizes));
}

}  // namespace tessera
