#include "tessera/tile/infer.h"

#include <algorithm>
#include <cstddef>

namespace tessera::tile {
namespace {

class Inference {
 public:
  Inference(const Kernel& kernel, const Operation& op) : kernel_(kernel), op_(op) {}

  std::optional<std::vector<Type>> types() const {
    switch (op_.code) {
      case Code::Pid:
      case Code::Npid:
      case Code::Dim:
      case Code::Stride: return one(Type::scalar(DType::I64));
      case Code::Permute: return one(permuted());
      case Code::Concat: return one(joined());
      case Code::Map: return one(mapped());
      case Code::Reduce: {
        std::vector<Type> types = from(0);
        for (Type& type : types) type = type.shaped(without(type.shape, integer(0)));
        return types;
      }
      case Code::Gather: return one(in(0).shaped(in(1).shape));
      case Code::Load: return one(Type::tile(in(0).dtype, in(0).shape));
      case Code::Base: return one(Type::pointer(in(0).dtype));
      case Code::Offset:
      case Code::Hint: return one(in(0));
      case Code::Dot:
      case Code::Cas: return one(in(2));
      case Code::Atomic: return one(in(1));
      case Code::Scan:
      case Code::While: return from(0);
      case Code::For: return from(3);
      case Code::If:
        return op_.regions.empty() ? std::vector<Type>{}
                                   : yielded_types(kernel_, op_.regions.front());
      case Code::Store:
      case Code::Vstore:
      case Code::Yield:
      case Code::Assume:
      case Code::Assert:
      case Code::Print:
      case Code::Barrier: return std::vector<Type>{};
      case Code::Const:
      case Code::Iota:
      case Code::Broadcast:
      case Code::Reshape:
      case Code::Slice:
      case Code::Cast:
      case Code::Bitcast:
      case Code::View:
      case Code::Vload: return {};
    }
    return {};
  }

 private:
  static std::vector<Type> one(Type type) { return {std::move(type)}; }
  Type in(std::size_t i) const { return i < op_.in.size() ? kernel_.type(op_.in[i]) : Type{}; }
  std::int64_t integer(std::size_t i) const { return i < op_.ints.size() ? op_.ints[i] : -1; }

  std::vector<Type> from(std::size_t first) const {
    std::vector<Type> types;
    for (std::size_t i = first; i < op_.in.size(); ++i) types.push_back(in(i));
    return types;
  }

  Type mapped() const {
    if (op_.function == Function::Select) return in(1);
    return is_compare(op_.function) ? in(0).of(DType::Bool) : in(0);
  }

  Type permuted() const {
    const Type x = in(0);
    Extents shape;
    for (const std::int64_t axis : op_.ints) {
      const bool exists = axis >= 0 && axis < x.rank();
      shape.push_back(exists ? x.shape[static_cast<std::size_t>(axis)] : 1);
    }
    return x.shaped(std::move(shape));
  }

  Type joined() const {
    Type result = in(0);
    const std::int64_t axis = integer(0);
    if (axis < 0 || axis >= result.rank()) return result;
    std::int64_t& extent = result.shape[static_cast<std::size_t>(axis)];
    for (std::size_t i = 1; i < op_.in.size(); ++i) {
      const Type part = in(i);
      if (axis < part.rank()) extent += part.shape[static_cast<std::size_t>(axis)];
    }
    return result;
  }

  const Kernel& kernel_;
  const Operation& op_;
};

}  // namespace

std::optional<std::vector<Type>> inferred_types(const Kernel& kernel, const Operation& op) {
  return Inference(kernel, op).types();
}

std::vector<Type> yielded_types(const Kernel& kernel, const Region& region) {
  std::vector<Type> types;
  if (region.ops.empty()) return types;
  const Operation& last = kernel.ops[region.ops.back()];
  if (last.code != Code::Yield) return types;
  for (const ValueId id : last.in) types.push_back(kernel.type(id));
  return types;
}

}  // namespace tessera::tile
