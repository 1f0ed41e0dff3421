#include "tessera/tile/cpu/buffer_reuse.h"

#include <algorithm>
#include <optional>

namespace tessera::tile::cpu {

void BufferReuse::reuse_operands(const Region& region, std::vector<Step>& steps, std::size_t at) {
  for (const Root& root : steps[at].nest.roots) {
    if (root.kind != Root::Kind::Write || !root.at.empty()) continue;
    const int own = root.buffer;
    if (scheduled_.buffer_of[root.value] != own || region_of_[root.value] != &region) continue;
    for (ValueId other = 0; other < region_of_.size(); ++other) {
      const int old = scheduled_.buffer_of[other];
      if (old < 0 || old == own || region_of_[other] != &region || placement_.reshaped[other])
        continue;
      if (kernel().type(other) != kernel().type(root.value)) continue;
      if (!is_done_with(region, steps, at, old) || !accesses_.reads_in_place(steps[at], old, own) ||
          is_used_after(steps[at].nest, root, old))
        continue;
      for (int& buffer : scheduled_.buffer_of) {
        if (buffer == own) buffer = old;
      }
      for (Step& step : steps) replace_buffer(step, own, old);
      break;
    }
  }
}

bool BufferReuse::is_used_after(const Nest& nest, const Root& root, int buffer) const {
  const Root* const end = nest.roots.data() + nest.roots.size();
  return std::any_of(&root + 1, end, [&](const Root& later) {
    if (later.kind == Root::Kind::Write)
      return later.buffer == buffer || accesses_.write_reads(later, buffer);
    const Operation& op = kernel().ops[later.op];
    return std::ranges::any_of(op.out,
                               [&](ValueId id) { return scheduled_.buffer_of[id] == buffer; }) ||
           std::ranges::any_of(op.in,
                               [&](ValueId id) { return accesses_.expression_reads(id, buffer); });
  });
}

bool BufferReuse::is_done_with(const Region& region, const std::vector<Step>& steps, std::size_t at,
                               int buffer) const {
  if (!accesses_.reads(steps[at], buffer)) return false;
  for (ValueId id = 0; id < region_of_.size(); ++id) {
    if (scheduled_.buffer_of[id] == buffer && region_of_[id] != &region) return false;
  }
  for (std::size_t i = at + 1; i < steps.size(); ++i) {
    if (accesses_.reads(steps[i], buffer) || accesses_.writes(steps[i], buffer)) return false;
  }
  const Operation* last = region.ops.empty() ? nullptr : &kernel().ops[region.ops.back()];
  if (last == nullptr || last->code != Code::Yield) return true;
  return std::none_of(last->in.begin(), last->in.end(),
                      [&](ValueId id) { return accesses_.expression_reads(id, buffer); });
}

bool BufferReuse::copies_in_place(ValueId value, int buffer) const {
  return !accesses_.root_reads(value, buffer) ||
         accesses_.reads_at(value, identity_map(kernel().type(value).shape.size()), buffer);
}

bool BufferReuse::update_in_place(ValueId param, ValueId next, const std::vector<ValueId>& yields,
                                  std::vector<Step>& body) {
  const int from = scheduled_.buffer_of[next], to = scheduled_.buffer_of[param];
  if (from < 0 || placement_.reshaped[next] || !placement_.kept[next]) return false;
  if (std::count(yields.begin(), yields.end(), next) != 1) return false;
  if (std::find(yields.begin(), yields.end(), param) != yields.end()) return false;
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (accesses_.writes(body[i], from)) {
      if (body[i].kind != Step::Kind::Nest && body[i].kind != Step::Kind::Dot) return false;
      if (!first) first = i;
    }
  }
  if (!first) return false;
  for (std::size_t i = *first; i < body.size(); ++i) {
    if (!accesses_.reads(body[i], to)) continue;
    if (i > *first || !accesses_.reads_in_place(body[i], to, from)) return false;
  }
  // Yields of other values are evaluated after all steps.
  for (const ValueId other : yields) {
    if (other != next && is_tile(other) && !placement_.kept[other] &&
        accesses_.expression_reads(other, to)) {
      return false;
    }
  }
  for (int& buffer : scheduled_.buffer_of) {
    if (buffer == from) buffer = to;
  }
  for (Step& step : body) replace_buffer(step, from, to);
  return true;
}

void BufferReuse::replace_buffer(Step& step, int from, int to) {
  for (Root& root : step.nest.roots) {
    if (root.buffer == from) root.buffer = to;
  }
  if (step.kind == Step::Kind::Dot && step.dot.out == from) step.dot.out = to;
  for (std::vector<Step>& body : step.bodies) {
    for (Step& inner : body) replace_buffer(inner, from, to);
  }
}

}  // namespace tessera::tile::cpu
