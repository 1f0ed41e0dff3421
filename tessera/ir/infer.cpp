#include "tessera/ir/infer.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "tessera/expr/shape.h"
#include "tessera/expr/small_types.h"
#include "tessera/expr/symbolic.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/inference_memo.h"
#include "tessera/ops/text.h"
#include "tessera/support/hash.h"

namespace tessera {
namespace {

std::vector<ValueInfo> nothing_known(const OpDef& op) {
  return std::vector<ValueInfo>(std::max<std::size_t>(op.outputs.size(), 1));
}

/// Excludes weights from constant propagation: definitions and bodies need integers and single
/// numbers only.
bool is_weight(const Type& type) {
  constexpr std::int64_t kMostNumbers = 16;
  if (!is_float(type.dtype) || !type.shape) return false;
  const auto count = product(*type.shape).constant();
  return !count || *count > kMostNumbers;
}

Expected<std::vector<ValueInfo>> infer_core(const OpDef& op, const Attrs& attrs,
                                            const Signature& in) {
  const auto shared = defined(op, attrs, in);
  if (!shared) {
    if (is_needs_value(shared.error())) return nothing_known(op);
    return shared.error();
  }
  const Definition& definition = **shared;
  if (const std::optional<DType> small = computed_small_type(definition))
    return bad_operands(
        fmt::format("{} computes with elements of type {}", op.name, tessera::to_string(*small)),
        "elements of this type are moved, compared and converted: cast them to a wider type");
  TESSERA_TRY(const Sizes sizes, solve_sizes(definition, shapes_of(in)));
  TESSERA_TRY(const std::vector<TensorType> types, output_types(definition, sizes));

  std::vector<const Argument*> present;
  for (const Argument& argument : in)
    if (argument.present) present.push_back(&argument);
  std::vector<ValueInfo> results;
  for (std::size_t i = 0; i < types.size(); ++i) {
    ValueInfo result{.type = Type::tensor(types[i].dtype, types[i].shape)};
    if (op.pure) {
      if (is_integer(types[i].dtype) || types[i].dtype == DType::Bool)
        result.value = symbolic_values(definition, sizes, present, static_cast<int>(i));
      if (!is_weight(result.type))
        result.content = known_content(definition, sizes, present, static_cast<int>(i));
    }
    results.push_back(std::move(result));
  }
  return results;
}

Expected<std::vector<ValueInfo>> infer_core_on_text(const OpDef& op, const Attrs& attrs,
                                                    const Signature& in) {
  const auto text = text_results(op, attrs, in);
  if (!text) {
    if (is_needs_value(text.error())) return nothing_known(op);
    return text.error();
  }
  TESSERA_TRY(std::vector<ValueInfo> results, infer_core(op, attrs, numbered(in)));
  for (std::size_t i = 0; i < results.size(); ++i)
    if ((*text)[i]) results[i] = {.type = Type::tensor(DType::String, *results[i].type.shape)};
  return results;
}

/// Whether a size symbol was introduced by the body of a composite and has no meaning outside of
/// it.
bool is_inner(const Dim& dim) {
  std::set<std::string> symbols;
  dim.collect_symbols(symbols);
  return std::ranges::any_of(symbols, [](const std::string& s) { return s.starts_with("_~"); });
}

ValueInfo seen_from_outside(ValueInfo known) {
  if (known.value && std::ranges::any_of(*known.value, is_inner)) known.value.reset();
  if (known.type.shape)
    for (Dim& dim : *known.type.shape)
      if (is_inner(dim)) dim = Dim::undefined();
  return known;
}

Expected<std::vector<ValueInfo>> infer_composite(const OpDef& op, const Attrs& attrs,
                                                 const std::vector<ValueInfo>& inputs) {
  GraphBuilder body("~");
  Vals values;
  for (const ValueInfo& input : inputs) {
    ValueInfo seen = input;
    if (seen.content && (is_weight(seen.type) || seen.type.dtype == DType::String))
      seen.content.reset();
    values.push_back(input.present ? body.input({}, seen) : Val{});
  }
  auto results = op.expand(body, attrs, values);
  std::optional<Diagnostic> error = body.error();
  if (!error && !results) error = results.error();
  if (error) {
    if (is_needs_value(*error)) return nothing_known(op);
    return *error;
  }
  std::vector<ValueInfo> known;
  for (const Val& value : *results)
    known.push_back(value.present() ? seen_from_outside(body.known(value)) : ValueInfo{});
  return known;
}

Expected<std::vector<ValueInfo>> infer_opaque(const OpDef& op, const Attrs& attrs,
                                              const std::vector<ValueInfo>& inputs) {
  // Opaque operators also accept sequences and tensors of unknown rank.
  Signature in;
  for (const ValueInfo& input : inputs)
    in.push_back({.present = input.present,
                  .type = {input.type.dtype, input.type.shape.value_or(Shape{})},
                  .value = input.value,
                  .content = input.content});
  for (const ValueInfo& input : inputs)
    if (input.present && input.type.kind == Type::Kind::Tensor && !input.type.shape)
      return nothing_known(op);
  for (const ValueInfo& input : inputs)
    if (input.present && input.type.kind == Type::Kind::Unknown) return nothing_known(op);
  auto types = op.infer(attrs, in);
  if (!types) {
    if (is_needs_value(types.error())) return nothing_known(op);
    return std::move(types).error();
  }
  std::vector<ValueInfo> results;
  for (OpaqueType& type : *types) {
    ValueInfo result{.type = {.dtype = type.dtype, .shape = std::move(type.shape)}};
    switch (type.kind) {
      case OpaqueType::Kind::Tensor: result.type.kind = Type::Kind::Tensor; break;
      case OpaqueType::Kind::Sequence: result.type.kind = Type::Kind::Sequence; break;
      case OpaqueType::Kind::Optional: result.type.kind = Type::Kind::Optional; break;
    }
    results.push_back(std::move(result));
  }
  return results;
}

Expected<std::vector<ValueInfo>> with_sizes_checked(const OpDef& op,
                                                    Expected<std::vector<ValueInfo>> results) {
  if (!results) return results;
  for (const ValueInfo& result : *results)
    for (const Dim& dim : result.type.shape.value_or(Shape{}))
      if (dim.constant().value_or(0) < 0)
        return bad_operands(fmt::format("{} gives {}", op.name, to_string(result.type)),
                            "a size is not negative");
  return results;
}

}  // namespace

ValueInfo constant_info(const Tensor& tensor) {
  ValueInfo result{.type = Type::tensor(tensor.dtype, {tensor.shape.begin(), tensor.shape.end()})};
  if (tensor.dtype == DType::String || tensor.count() > kSmallTensor) return result;
  result.content = tensor;
  if (!is_float(tensor.dtype)) {
    const std::vector<std::int64_t> integers = integers_of(tensor);
    result.value.emplace(integers.begin(), integers.end());
  }
  return result;
}

std::optional<Signature> signature_of(const std::vector<ValueInfo>& inputs) {
  Signature in;
  for (const ValueInfo& input : inputs) {
    if (!input.present) {
      in.push_back({.present = false});
      continue;
    }
    if (!input.type.is_ranked_tensor()) return std::nullopt;
    in.push_back({.present = true,
                  .type = {input.type.dtype, *input.type.shape},
                  .value = input.value,
                  .content = input.content});
  }
  return in;
}

std::vector<Shape> shapes_of(const Signature& signature) {
  std::vector<Shape> shapes;
  for (const Argument& argument : signature)
    if (argument.present) shapes.push_back(argument.type.shape);
  return shapes;
}

namespace {

Expected<std::vector<ValueInfo>> inferred(const OpDef& op, const Attrs& attrs,
                                          const std::vector<ValueInfo>& inputs) {
  std::vector<bool> present;
  for (const ValueInfo& input : inputs) present.push_back(input.present);
  TESSERA_TRY_DONE(check_arity(op, present));
  switch (op.kind()) {
    case OpDef::Kind::Core:
    case OpDef::Kind::Composite: {
      const std::optional<Signature> in = signature_of(inputs);
      if (!in) return nothing_known(op);
      if (op.define && has_text(*in)) return infer_core_on_text(op, attrs, *in);
      return with_sizes_checked(
          op, op.define ? infer_core(op, attrs, *in) : infer_composite(op, attrs, inputs));
    }
    case OpDef::Kind::Opaque: return with_sizes_checked(op, infer_opaque(op, attrs, inputs));
    case OpDef::Kind::Control: break;
  }
  TESSERA_CHECK(false, "{} is told by its subgraphs", op.name);
  return nothing_known(op);
}

bool same_tensor(const std::optional<Tensor>& a, const std::optional<Tensor>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->dtype == b->dtype && a->shape == b->shape && !a->strings && !b->strings &&
         std::ranges::equal(a->bytes.view(), b->bytes.view());
}

bool same_operand(const ValueInfo& a, const ValueInfo& b) {
  return a.present == b.present && a.type == b.type && a.value == b.value &&
         same_tensor(a.content, b.content);
}

bool same_operand(const Argument& a, const Argument& b) {
  return a.present == b.present && a.type == b.type && a.value == b.value &&
         same_tensor(a.content, b.content);
}

void add_content(Hasher& hasher, const std::optional<std::vector<Dim>>& value,
                 const std::optional<Tensor>& content) {
  if (value)
    for (const Dim& dim : *value) hasher.add(dim.hash());
  if (content) hasher.add_bytes(content->bytes.view());
}

void add(Hasher& hasher, const ValueInfo& known) {
  hasher.add(known.present ? known.type.hash() : 0);
  add_content(hasher, known.value, known.content);
}

void add(Hasher& hasher, const Argument& argument) {
  hasher.add(argument.present ? 1 + static_cast<std::uint64_t>(argument.type.dtype) : 0);
  for (const Dim& dim : argument.type.shape) hasher.add(dim.hash());
  add_content(hasher, argument.value, argument.content);
}

/// Results of calls by what was called: an operator, its attributes and what is known of the
/// operands.
template <class Operand, class Result>
class Calls {
 public:
  template <class Compute>
  const Result& result(const OpDef& op, const Attrs& attrs, const std::vector<Operand>& operands,
                       const Compute& compute) {
    Hasher hasher;
    hasher.add(reinterpret_cast<std::uintptr_t>(&op));
    hasher.add(attrs.hash());
    for (const Operand& operand : operands) add(hasher, operand);
    const auto [first, last] = calls_.equal_range(hasher.value());
    for (auto here = first; here != last; ++here) {
      const Call& call = here->second;
      if (call.op == &op && call.attrs == attrs &&
          std::ranges::equal(call.operands, operands,
                             [](const Operand& a, const Operand& b) { return same_operand(a, b); }))
        return call.result;
    }
    Call made{&op, attrs, operands, compute()};
    constexpr std::size_t kMostCalls = 1 << 14;  // some 20 MB
    if (calls_.size() >= kMostCalls) calls_.clear();
    return calls_.emplace(hasher.value(), std::move(made))->second.result;
  }

 private:
  struct Call {
    const OpDef* op;
    Attrs attrs;
    std::vector<Operand> operands;
    Result result;
  };
  std::unordered_multimap<std::uint64_t, Call> calls_;
};

}  // namespace

class InferenceMemo::Table {
 public:
  Calls<ValueInfo, Expected<std::vector<ValueInfo>>> inferred;
  Calls<Argument, Expected<std::shared_ptr<const Definition>>> defined;
};

thread_local InferenceMemo::Table* InferenceMemo::current_ = nullptr;

InferenceMemo::InferenceMemo() {
  if (current_ != nullptr) return;
  own_ = std::make_unique<Table>();
  current_ = own_.get();
}

InferenceMemo::~InferenceMemo() {
  if (own_ != nullptr) current_ = nullptr;
}

Expected<std::shared_ptr<const Definition>> defined(const OpDef& op, const Attrs& attrs,
                                                    const Signature& in) {
  const auto compute = [&]() -> Expected<std::shared_ptr<const Definition>> {
    TESSERA_TRY(Definition definition, op.define(attrs, in));
    return std::make_shared<const Definition>(std::move(definition));
  };
  InferenceMemo::Table* memo = InferenceMemo::current_;
  return memo != nullptr ? memo->defined.result(op, attrs, in, compute) : compute();
}

Expected<std::vector<ValueInfo>> infer(const OpDef& op, const Attrs& attrs,
                                       const std::vector<ValueInfo>& inputs) {
  const auto compute = [&] { return inferred(op, attrs, inputs); };
  InferenceMemo::Table* memo = InferenceMemo::current_;
  return memo != nullptr ? memo->inferred.result(op, attrs, inputs, compute) : compute();
}

}  // namespace tessera
