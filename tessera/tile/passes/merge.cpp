#include "tessera/tile/passes/merge.h"

#include <utility>

namespace tessera::tile {
namespace {

/// Appends kernels to one; their values and operations are renumbered.
class Merger {
 public:
  Merger() { pid_ = emit({.code = Code::Pid, .ints = {0}}, DType::I64); }

  void append(const Kernel& kernel, std::int64_t programs) {
    const ValueId zero = index(0), begin = index(from_), end = index(from_ + programs);
    const ValueId inside = map(Function::And, compare(Function::LessEqual, begin, pid_),
                               compare(Function::Less, pid_, end));
    const ValueId count = index(programs);
    from_ += programs;
    // The program id of the kernel, and what is known of it inside of the branch.
    std::vector<OpId> outer = std::exchange(merged_.body.ops, {});
    const ValueId own = map(Function::Sub, pid_, begin);
    for (const ValueId known :
         {compare(Function::LessEqual, zero, own), compare(Function::Less, own, count)})
      merged_.body.ops.push_back(add({.code = Code::Assume, .in = {known}}));
    Region body{.ops = std::exchange(merged_.body.ops, std::move(outer))};
    const std::vector<OpId> ops = copy(kernel, own, zero);
    body.ops.insert(body.ops.end(), ops.begin(), ops.end());
    body.ops.push_back(add({.code = Code::Yield}));
    Region otherwise{.ops = {add({.code = Code::Yield})}};
    merged_.body.ops.push_back(add(
        {.code = Code::If, .in = {inside}, .regions = {std::move(body), std::move(otherwise)}}));
  }

  Kernel take(std::string name) {
    merged_.name = std::move(name);
    return std::move(merged_);
  }

 private:
  OpId add(Operation op) {
    merged_.ops.push_back(std::move(op));
    return static_cast<OpId>(merged_.ops.size() - 1);
  }
  ValueId emit(Operation op, DType dtype) {
    merged_.values.push_back({.type = Type::scalar(dtype)});
    const auto value = static_cast<ValueId>(merged_.values.size() - 1);
    op.out = {value};
    merged_.body.ops.push_back(add(std::move(op)));
    return value;
  }
  ValueId index(std::int64_t integer) {
    return emit({.code = Code::Const, .literal = {.integer = integer}}, DType::I64);
  }
  ValueId map(Function function, ValueId a, ValueId b) {
    return emit({.code = Code::Map, .function = function, .in = {a, b}}, merged_.type(a).dtype);
  }
  ValueId compare(Function function, ValueId a, ValueId b) {
    return emit({.code = Code::Map, .function = function, .in = {a, b}}, DType::Bool);
  }

  Region copy(const Region& region, ValueId values, OpId ops) const {
    Region made = region;
    for (ValueId& param : made.params) param += values;
    for (OpId& op : made.ops) op += ops;
    return made;
  }

  /// Operations of a kernel's body; its program id is `own`.
  std::vector<OpId> copy(const Kernel& kernel, ValueId own, ValueId zero) {
    const auto values = static_cast<ValueId>(merged_.values.size());
    const auto ops = static_cast<OpId>(merged_.ops.size());
    merged_.values.insert(merged_.values.end(), kernel.values.begin(), kernel.values.end());
    for (Operation op : kernel.ops) {
      for (ValueId& in : op.in) in += values;
      for (ValueId& out : op.out) out += values;
      for (Region& region : op.regions) region = copy(region, values, ops);
      if (op.code == Code::Pid)
        op = {.code = Code::Map,
              .function = Function::Add,
              .in = {own, zero},
              .out = op.out,
              .source = op.source};
      merged_.ops.push_back(std::move(op));
    }
    const Region body = copy(kernel.body, values, ops);
    merged_.body.params.insert(merged_.body.params.end(), body.params.begin(), body.params.end());
    return body.ops;
  }

  Kernel merged_;
  ValueId pid_ = 0;
  std::int64_t from_ = 0;  // first program of the next kernel
};

}  // namespace

Kernel merge(const std::vector<Kernel>& kernels, const std::vector<std::int64_t>& programs) {
  Merger merger;
  for (std::size_t i = 0; i < kernels.size(); ++i) merger.append(kernels[i], programs[i]);
  return merger.take(kernels.back().name);
}

}  // namespace tessera::tile
