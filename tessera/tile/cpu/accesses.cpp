#include "tessera/tile/cpu/accesses.h"

#include <algorithm>

namespace tessera::tile::cpu {
namespace {

template <class Predicate>
bool any_inner(const Step& step, const Predicate& predicate) {
  return std::any_of(step.bodies.begin(), step.bodies.end(), [&](const std::vector<Step>& body) {
    return std::any_of(body.begin(), body.end(), predicate);
  });
}

}  // namespace

bool Accesses::writes(const Step& step, int buffer) const {
  switch (step.kind) {
    case Step::Kind::Nest:
      return std::any_of(step.nest.roots.begin(), step.nest.roots.end(), [&](const Root& root) {
        if (root.kind == Root::Kind::Write) return root.buffer == buffer;
        const std::vector<ValueId>& out = kernel().ops[root.op].out;
        return std::any_of(out.begin(), out.end(),
                           [&](ValueId id) { return scheduled_.buffer_of[id] == buffer; });
      });
    case Step::Kind::Dot: return step.dot.out == buffer;
    case Step::Kind::Scalar: return false;
    default: {
      const std::vector<ValueId>& out = kernel().ops[step.op].out;
      const bool results = std::any_of(
          out.begin(), out.end(), [&](ValueId id) { return scheduled_.buffer_of[id] == buffer; });
      return results || any_inner(step, [&](const Step& s) { return writes(s, buffer); });
    }
  }
}

bool Accesses::reads(const Step& step, int buffer) const {
  switch (step.kind) {
    case Step::Kind::Nest: return nest_reads(step.nest, buffer);
    case Step::Kind::Dot:
      return (step.dot.accumulate && step.dot.out == buffer) || dot_reads(step.dot.a, buffer) ||
             dot_reads(step.dot.b, buffer) ||
             (step.dot.epilogue && nest_reads(*step.dot.epilogue, buffer));
    case Step::Kind::Scalar: return false;
    default: return any_inner(step, [&](const Step& s) { return reads(s, buffer); });
  }
}

bool Accesses::nest_reads(const Nest& nest, int buffer) const {
  return std::any_of(nest.roots.begin(), nest.roots.end(), [&](const Root& root) {
    if (root.kind == Root::Kind::Write) return write_reads(root, buffer);
    const std::vector<ValueId>& in = kernel().ops[root.op].in;
    Values seen;
    return std::any_of(in.begin(), in.end(),
                       [&](ValueId id) { return expression_reads(id, buffer, seen); });
  });
}

bool Accesses::dot_reads(const DotSource& source, int buffer) const {
  return !source.vload && scheduled_.buffer_of[source.value] == buffer;
}

bool Accesses::write_reads(const Root& root, int buffer) const {
  return scheduled_.buffer_of[root.value] == root.buffer ? root_reads(root.value, buffer)
                                                         : expression_reads(root.value, buffer);
}

bool Accesses::root_reads(ValueId value, int buffer) const {
  Values seen;
  return root_reads(value, buffer, seen);
}

bool Accesses::expression_reads(ValueId value, int buffer) const {
  Values seen;
  return expression_reads(value, buffer, seen);
}

bool Accesses::root_reads(ValueId value, int buffer, Values& seen) const {
  const auto definition = placement_.definition[value];
  if (!definition || !is_inline(kernel(), kernel().ops[*definition]) ||
      placement_.reshaped[value]) {
    return scheduled_.buffer_of[value] == buffer;
  }
  const std::vector<ValueId>& in = kernel().ops[*definition].in;
  return std::any_of(in.begin(), in.end(),
                     [&](ValueId id) { return expression_reads(id, buffer, seen); });
}

bool Accesses::expression_reads(ValueId value, int buffer, Values& seen) const {
  if (!is_tile(value) || !seen.insert(value).second) return false;
  if (scheduled_.buffer_of[value] >= 0) return scheduled_.buffer_of[value] == buffer;
  return root_reads(value, buffer, seen);
}

bool Accesses::reads_in_place(const Step& step, int to, int from) const {
  if (step.kind == Step::Kind::Dot) {
    return step.dot.out == from && !dot_reads(step.dot.a, to) && !dot_reads(step.dot.b, to);
  }
  return std::all_of(step.nest.roots.begin(), step.nest.roots.end(), [&](const Root& root) {
    const IndexMap identity = identity_map(step.nest.space.size());
    ReadPositions seen;
    if (root.kind == Root::Kind::Write) {
      const auto definition = placement_.definition[root.value];
      if (!root.at.empty()) return false;
      if (!definition || scheduled_.buffer_of[root.value] == to) return true;
      return operands_read_at(kernel().ops[*definition], identity, to, seen);
    }
    const std::vector<ValueId>& in = kernel().ops[root.op].in;
    return std::all_of(in.begin(), in.end(),
                       [&](ValueId id) { return reads_at(id, identity, to, seen); });
  });
}

bool Accesses::operands_read_at(const Operation& op, const IndexMap& map, int buffer,
                                ReadPositions& seen) const {
  if (const auto moved = operand_map(kernel(), op, map))
    return reads_at(op.in[0], *moved, buffer, seen);
  if (op.code == Code::Gather && !reads_at(op.in[0], anywhere(), buffer, seen)) return false;
  return std::all_of(op.in.begin(), op.in.end(),
                     [&](ValueId id) { return reads_at(id, map, buffer, seen); });
}

bool Accesses::reads_at(ValueId value, const IndexMap& map, int buffer) const {
  ReadPositions seen;
  return reads_at(value, map, buffer, seen);
}

bool Accesses::reads_at(ValueId value, const IndexMap& map, int buffer, ReadPositions& seen) const {
  if (!is_tile(value) || !seen.emplace(value, map).second) return true;
  if (scheduled_.buffer_of[value] >= 0) {
    if (scheduled_.buffer_of[value] != buffer) return true;
    return map == identity_map(map.size()) && !placement_.reshaped[value];
  }
  const auto definition = placement_.definition[value];
  return !definition || operands_read_at(kernel().ops[*definition], map, buffer, seen);
}

}  // namespace tessera::tile::cpu
