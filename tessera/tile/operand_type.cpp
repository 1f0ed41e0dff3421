#include "tessera/tile/operand_type.h"

namespace tessera::tile {
namespace {

std::optional<Type> following_of_map(Function function, const KnownTypes& known, std::size_t i,
                                     const std::optional<Type>& declared) {
  const bool selects = function == Function::Select;
  std::optional<Type> same = is_compare(function) ? std::nullopt : declared;
  // A tile determines more than a scalar.
  for (std::size_t j = selects ? 1 : 0; j < known.size(); ++j) {
    if (known[j] && (!same || (same->is_scalar() && known[j]->is_tile()))) same = known[j];
  }
  if (selects && i == 0 && same) return same->of(DType::Bool);
  return same;
}

std::optional<Type> following_of_dot(const KnownTypes& known, std::size_t i) {
  if (i != 2 || known.size() != 3 || !known[0] || !known[1]) return {};
  const Type &a = *known[0], &b = *known[1];
  if (a.rank() != 2 || b.rank() != 2) return {};
  const DType dtype = is_integer(a.dtype)        ? DType::I32
                      : byte_width(a.dtype) == 2 ? DType::F32
                                                 : a.dtype;
  return Type::tile(dtype, {a.shape[0], b.shape[1]});
}

}  // namespace

std::optional<Type> operand_type(const Operation& op, const KnownTypes& known, std::size_t i,
                                 const std::optional<Type>& declared) {
  const auto index = Type::scalar(DType::I64);
  const auto first = known.empty() ? std::optional<Type>{} : known[0];
  const auto beside_pointers = [&](DType dtype) -> std::optional<Type> {
    if (!first || !first->is_pointer()) return {};
    return Type::tile(dtype, first->shape);
  };
  switch (op.code) {
    case Code::Map: return following_of_map(op.function, known, i, declared);
    case Code::Broadcast:
    case Code::Reshape:
      if (!declared) return {};
      return Type::scalar(declared->dtype);
    case Code::Offset: return beside_pointers(DType::I64);
    case Code::Load:
      return beside_pointers(i == 1 ? DType::Bool : first ? first->dtype : DType::F32);
    case Code::Store:
    case Code::Atomic:
      return beside_pointers(i == 2 ? DType::Bool : first ? first->dtype : DType::F32);
    case Code::Cas: return beside_pointers(first ? first->dtype : DType::I32);
    case Code::View:
    case Code::Vload: return index;
    case Code::Vstore:
      if (i + 1 == known.size()) return {};
      return index;
    case Code::Dot: return declared ? declared : following_of_dot(known, i);
    case Code::Assume:
    case Code::Assert:
    case Code::If: return Type::scalar(DType::Bool);
    default: return {};
  }
}

}  // namespace tessera::tile
