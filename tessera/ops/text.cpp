#include "tessera/ops/text.h"

#include <algorithm>

#include "tessera/expr/text_movement.h"

namespace tessera {
namespace {

bool is_text(const Argument& argument) {
  return argument.present && argument.dtype() == DType::String;
}

Signature with_dtype_for_text(Signature in, DType dtype) {
  for (Argument& argument : in)
    if (is_text(argument)) argument = {.type = {dtype, argument.type.shape}};
  return in;
}

}  // namespace

bool has_text(const Signature& in) {
  return std::ranges::any_of(in, is_text);
}

Signature numbered(Signature in) {
  return with_dtype_for_text(std::move(in), DType::I64);
}

Expected<std::vector<bool>> text_results(const OpDef& op, const Attrs& attrs, const Signature& in) {
  std::vector<bool> is_text_input;
  for (const Argument& argument : in)
    if (argument.present) is_text_input.push_back(is_text(argument));
  // Tries two number types: a cast to one of them is the identity on that type.
  std::optional<std::vector<bool>> results;
  for (const DType dtype : {DType::I32, DType::I64}) {
    TESSERA_TRY(const Definition definition, op.define(attrs, with_dtype_for_text(in, dtype)));
    if (definition.inputs.size() != is_text_input.size()) return takes_no_text(op);
    results = text_outputs(definition, is_text_input);
    for (std::size_t i = 0; results && i < results->size(); ++i)
      if ((*results)[i] && definition.outputs[i].dtype != dtype) results.reset();
    if (!results) return takes_no_text(op);
  }
  return *results;
}

}  // namespace tessera
