#include "tessera/ir/type.h"

#include "tessera/support/hash.h"

namespace tessera {

std::size_t Type::hash() const {
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(kind));
  hasher.add(static_cast<std::uint64_t>(dtype));
  hasher.add(shape ? shape->size() + 1 : 0);
  if (shape)
    for (const Dim& dim : *shape) hasher.add(dim.hash());
  return hasher.value();
}

std::optional<std::vector<std::int64_t>> static_shape(const Type& type) {
  if (!type.is_ranked_tensor()) return std::nullopt;
  std::vector<std::int64_t> result;
  for (const Dim& dim : *type.shape) {
    if (!dim.constant()) return std::nullopt;
    result.push_back(*dim.constant());
  }
  return result;
}

std::string to_string(const Type& type) {
  std::string tensor(to_string(type.dtype));
  tensor += '[';
  if (!type.shape) {
    tensor += "...";
  } else {
    for (std::size_t i = 0; i < type.shape->size(); ++i)
      tensor += (i == 0 ? "" : ", ") + (*type.shape)[i].to_string();
  }
  tensor += ']';
  switch (type.kind) {
    case Type::Kind::Unknown: return "?";
    case Type::Kind::Tensor: return tensor;
    case Type::Kind::Sequence: return "seq(" + tensor + ")";
    case Type::Kind::Optional: return "opt(" + tensor + ")";
    case Type::Kind::OptionalSequence: return "opt(seq(" + tensor + "))";
  }
  return "?";
}

}  // namespace tessera
