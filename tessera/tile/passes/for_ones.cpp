#include "tessera/tile/passes/for_ones.h"

#include <set>

#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile {
namespace {

/// Views with uses other than accesses keep their types: a hint has that of its operand.
std::set<ValueId> hinted(const Kernel& kernel) {
  std::set<ValueId> found;
  for_each_op(kernel, kernel.body, [&](OpId id) {
    const Operation& op = kernel.ops[id];
    if (op.code == Code::Hint) found.insert(op.in[0]);
  });
  return found;
}

}  // namespace

std::vector<bool> ones_of(const Kernel& kernel, std::span<const Argument> arguments) {
  const std::vector<std::uint64_t> words = words_of(arguments);
  const std::vector<int> positions = word_positions(kernel);
  const std::set<ValueId> kept = hinted(kernel);
  std::vector<bool> ones(words.size(), false);
  for (std::size_t i = 0; i < kernel.params().size(); ++i) {
    const ValueId id = kernel.params()[i];
    const Type& type = kernel.type(id);
    const auto first = static_cast<std::size_t>(positions[i]);
    if (type.is_number()) {
      ones[first] = is_integer(type.dtype) && words[first] == 1;
      continue;
    }
    if (!type.is_view() || kept.count(id) != 0) continue;
    const auto rank = static_cast<std::size_t>(type.rank());
    for (std::size_t axis = 0; axis < rank; ++axis) {
      const std::size_t word = first + 1 + rank + axis;
      ones[word] = type.strides[axis] == kDynamic && words[word] == 1;
    }
  }
  return ones;
}

Kernel for_ones(const Kernel& kernel, const std::vector<bool>& ones) {
  Kernel source = kernel;
  const std::vector<int> positions = word_positions(kernel);
  std::vector<ValueId> numbers;
  for (std::size_t i = 0; i < kernel.params().size(); ++i) {
    const ValueId id = kernel.params()[i];
    const auto first = static_cast<std::size_t>(positions[i]);
    Type& type = source.values[id].type;
    if (type.is_number() && ones[first]) numbers.push_back(id);
    if (!type.is_view()) continue;
    const auto rank = static_cast<std::size_t>(type.rank());
    for (std::size_t axis = 0; axis < rank; ++axis)
      if (ones[first + 1 + rank + axis]) type.strides[axis] = 1;
  }
  bool begun = false;
  return Rewrite::run(source, [&](Rewrite& out, const Operation& op) {
    if (!begun) {
      for (const ValueId id : numbers) out.set(id, out.constant(source.type(id), {.integer = 1}));
      begun = true;
    }
    out.copy(op);
  });
}

}  // namespace tessera::tile
