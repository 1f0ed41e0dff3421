#include "tessera/superopt/generate/instances.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "tessera/interp/interp.h"
#include "tessera/ir/bind.h"
#include "tessera/support/check.h"
#include "tessera/support/hash.h"
#include "tessera/support/rng.h"

namespace tessera::superopt {
namespace {

std::optional<std::int64_t> number_of(const Dim& dim, const SizeValues& sizes) {
  const Dim value = dim.substituted([&](std::string_view name) -> std::optional<Dim> {
    const auto it = sizes.find(name);
    return it == sizes.end() ? std::nullopt : std::optional<Dim>(it->second);
  });
  return value.constant();
}

Tensor size_tensor(std::int64_t size) {
  return Tensor::of<std::int64_t>(DType::I64, {1}, std::array{size});
}

}  // namespace

std::optional<std::pair<Dim, Dim>> two_parts(const Dim& dim) {
  const std::vector<Dim::Part> parts = dim.parts();
  if (parts.size() == 1 && parts[0].coefficient == 2 && !dim.constant())
    return std::pair(parts[0].product, parts[0].product);
  if (parts.size() != 2) return std::nullopt;
  for (const Dim::Part& part : parts)
    if (part.coefficient != 1 || part.product.constant()) return std::nullopt;
  return std::pair(parts[0].product, parts[1].product);
}

Instances::~Instances() {
  for (std::atomic<Known*>& chunk : chunks_) delete[] chunk.load();
  for (std::atomic<const Entry*>& bucket : buckets_)
    for (const Entry* entry = bucket.load(); entry != nullptr;)
      delete std::exchange(entry, entry->next);
}

const Instances::Known& Instances::known(ShapeId id) const {
  const auto chunk = static_cast<std::size_t>(std::bit_width(id / 64 + 1) - 1);
  return chunks_[chunk].load(std::memory_order_acquire)[id + 64 - (std::size_t{64} << chunk)];
}

ShapeId Instances::intern(const Shape& shape) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < shapes_; ++i)
    if (known(static_cast<ShapeId>(i)).shape == shape) return static_cast<ShapeId>(i);
  const auto id = static_cast<ShapeId>(shapes_++);
  const auto chunk = static_cast<std::size_t>(std::bit_width(id / 64 + 1) - 1);
  TESSERA_CHECK(chunk < kChunks, "too many shapes");
  if (chunks_[chunk] == nullptr) chunks_[chunk] = new Known[std::size_t{64} << chunk];
  Known& known = chunks_[chunk].load()[id + 64 - (std::size_t{64} << chunk)];
  known.shape = shape;
  for (const SizeValues& sizes : set_.sizes) {
    std::int64_t count = 1;
    for (const Dim& dim : shape)
      count *= std::max<std::int64_t>(0, number_of(dim, sizes).value_or(0));
    known.counts.push_back(count);
  }
  Hasher hasher;
  for (const Dim& dim : shape) hasher.add_text(dim.to_string());
  known.hash = hasher.value();
  return id;
}

const Shape& Instances::shape(ShapeId id) const {
  return known(id).shape;
}

std::uint64_t Instances::hash(ShapeId id) const {
  return known(id).hash;
}

std::int64_t Instances::count(ShapeId id, std::size_t sizes) const {
  return known(id).counts[sizes];
}

const Instance* Instances::find(std::size_t op, std::span<const ShapeId> args) {
  std::uint64_t hash = op;
  for (const ShapeId arg : args) hash = (hash + arg + 1) * 0x9e3779b97f4a7c15ull;
  std::atomic<const Entry*>& bucket = buckets_[hash >> 50];
  const auto look = [&](const Entry* entry) {
    while (entry != nullptr && !(entry->op == op && std::ranges::equal(entry->args, args)))
      entry = entry->next;
    return entry;
  };
  if (const Entry* entry = look(bucket.load(std::memory_order_acquire)))
    return entry->instance.get();
  auto made =
      std::make_unique<Entry>(Entry{op, {args.begin(), args.end()}, this->made(op, args), nullptr});
  const std::lock_guard lock(mutex_);
  made->next = bucket.load();
  if (const Entry* entry = look(made->next)) return entry->instance.get();
  bucket.store(made.get(), std::memory_order_release);
  return made.release()->instance.get();
}

/// Whether the arguments have the shapes that the operator takes.
bool Instances::fits(const OperatorSet::Operator& op, std::span<const ShapeId> args) const {
  using Kind = OperatorSet::Item::Kind;
  std::map<std::string, Shape> bound;
  const auto bind = [&](const std::string& name, Shape value) {
    const auto [it, added] = bound.try_emplace(name, std::move(value));
    return added || it->second == value;
  };
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!op.args[i].shape) continue;
    const std::vector<OperatorSet::Item>& items = *op.args[i].shape;
    const Shape& shape = this->shape(args[i]);
    const bool list = std::ranges::find(items, Kind::List, &OperatorSet::Item::kind) != items.end();
    if (list ? shape.size() + 1 < items.size() : shape.size() != items.size()) return false;
    std::size_t axis = 0;
    for (const OperatorSet::Item& item : items) {
      const std::size_t length = item.kind == Kind::List ? shape.size() + 1 - items.size() : 1;
      const Shape part(shape.begin() + static_cast<std::ptrdiff_t>(axis),
                       shape.begin() + static_cast<std::ptrdiff_t>(axis + length));
      axis += length;
      if (item.kind == Kind::Size && part[0] != item.size) return false;
      if ((item.kind == Kind::Name || item.kind == Kind::List) &&
          !bind((item.kind == Kind::List ? "*" : "") + item.name, part))
        return false;
    }
  }
  return true;
}

/// The body of an operator over inputs of these shapes.
std::optional<Graph> Instances::on_shapes(const OperatorSet::Operator& op,
                                          std::span<const ShapeId> args) const {
  GraphBuilder builder;
  Vals inputs;
  for (std::size_t i = 0; i < args.size(); ++i)
    inputs.push_back(builder.input(op.args[i].name, DType::F32, shape(args[i])));
  if (op.cut) {
    const Shape& whole = shape(args[op.cut->arg]);
    if (op.cut->axis >= whole.size()) return std::nullopt;
    const auto parts = two_parts(whole[op.cut->axis]);
    if (!parts) return std::nullopt;
    for (const Dim& part : {parts->first, parts->second})
      inputs.push_back(builder.input(
          "", ValueInfo{.type = Type::tensor(DType::I64, {1}), .value = std::vector{part}}));
  }
  const auto results = placed(builder, op.body, inputs, {});
  if (!results) return std::nullopt;
  auto graph = builder.finish(*results);
  return graph ? std::optional(*std::move(graph)) : std::nullopt;
}

std::optional<Tape> Instances::recorded(const OperatorSet::Operator& op, const ShapedBody& shaped,
                                        std::span<const ShapeId> args, std::size_t sizes) const {
  const auto& [graph, shapes] = shaped;
  const SizeValues& values = set_.sizes[sizes];
  Binding binding(values);
  for (const OperatorSet::Quotient& quotient : op.quotients) {
    const auto size = [&](const OperatorSet::AxisOf& of) -> std::int64_t {
      const Shape& whole = shape(args[of.arg]);
      return of.axis < whole.size() ? number_of(whole[of.axis], values).value_or(0) : 0;
    };
    const std::int64_t whole = size(quotient.whole), part = size(quotient.part);
    if (part == 0 || whole % part != 0) return std::nullopt;
    binding.bind_attr(quotient.attr, whole / part, 1);
  }
  const auto concrete = bound(graph, binding);
  if (!concrete) return std::nullopt;

  Tracer recording;
  std::vector<interp::Value> inputs;
  for (const ValueId id : concrete->inputs()) {
    const Type& type = concrete->type(id);
    std::vector<std::int64_t> shape;
    for (const Dim& dim : *type.shape) shape.push_back(dim.constant().value_or(0));
    if (type.dtype != DType::F32) {
      const auto parts = two_parts(this->shape(args[op.cut->arg])[op.cut->axis]);
      const bool first = inputs.size() == args.size();
      inputs.push_back({size_tensor(*number_of(first ? parts->first : parts->second, values))});
      continue;
    }
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    std::vector<TracedNumber> elements(static_cast<std::size_t>(count));
    for (TracedNumber& element : elements) element = recording.input();
    inputs.push_back({Tensor::of<TracedNumber>(DType::F32, shape, elements), true});
  }
  const auto results = interp::run_as<TracedNumber>(*concrete, inputs, {});
  if (!results || !recording.decided()) return std::nullopt;
  std::vector<TracedNumber> outputs;
  for (std::size_t i = 0; i < results->size(); ++i) {
    const interp::Value& value = (*results)[i];
    if (!value.datum.is_tensor() || !value.lifted) return std::nullopt;
    const Tensor& tensor = value.datum.tensor();
    const Shape& expected = shapes[i];
    for (std::size_t axis = 0; axis < expected.size(); ++axis)
      if (number_of(expected[axis], values) != tensor.shape[axis]) return std::nullopt;
    if (tensor.count() == 0 || tensor.count() > set_.most_elements) return std::nullopt;
    const auto elements = tensor.as<TracedNumber>();
    outputs.insert(outputs.end(), elements.begin(), elements.end());
  }
  return recording.tape(outputs);
}

std::unique_ptr<Instance> Instances::made(std::size_t number, std::span<const ShapeId> args) {
  const OperatorSet::Operator& op = set_.operators[number];
  if (!fits(op, args)) return nullptr;
  const std::optional<Graph> graph = on_shapes(op, args);
  if (!graph) return nullptr;
  auto instance = std::make_unique<Instance>();
  // Sizes in terms of attributes are sizes in terms of what these are.
  const auto without_attributes = [&](std::string_view symbol) -> std::optional<Dim> {
    for (const OperatorSet::Quotient& quotient : op.quotients)
      if (quotient.attr == symbol) {
        const Shape &whole = shape(args[quotient.whole.arg]),
                    &part = shape(args[quotient.part.arg]);
        if (quotient.whole.axis < whole.size() && quotient.part.axis < part.size())
          return floor_div(whole[quotient.whole.axis], part[quotient.part.axis]);
      }
    return std::nullopt;
  };
  std::vector<Shape> results;
  for (const ValueId output : graph->outputs()) {
    const Type& type = graph->type(output);
    if (!type.is_ranked_tensor() || type.dtype != DType::F32) return nullptr;
    Shape& result = results.emplace_back();
    for (const Dim& dim : *type.shape) {
      result.push_back(dim.substituted(without_attributes));
      if (result.back().is_undefined() || !number_of(result.back(), set_.sizes[0])) return nullptr;
    }
  }
  for (std::size_t sizes = 0; sizes < set_.sizes.size(); ++sizes) {
    std::optional<Tape> tape = recorded(op, {*graph, results}, args, sizes);
    if (!tape) return nullptr;
    instance->tapes.push_back(*std::move(tape));
  }
  for (const Shape& result : results) instance->results.push_back(intern(result));
  if (args.size() == 2 && args[0] == args[1]) {
    Rng rng(7);
    std::array<std::vector<FieldA>, 2> in;
    for (std::vector<FieldA>& elements : in)
      for (std::int64_t i = 0; i < count(args[0], 0); ++i)
        elements.push_back(FieldA::of_word(rng.next()));
    std::vector<FieldA> scratch, one(instance->tapes[0].outputs()), other(one.size());
    const std::array<std::span<const FieldA>, 2> forth = {in[0], in[1]}, back = {in[1], in[0]};
    instance->commutes = instance->tapes[0].replay<FieldA>(forth, one.data(), scratch) &&
                         instance->tapes[0].replay<FieldA>(back, other.data(), scratch) &&
                         one == other;
  }
  return instance;
}

}  // namespace tessera::superopt
