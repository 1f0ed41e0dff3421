#include "tessera/tile/gpu/roles.h"

#include <array>
#include <functional>

#include "tessera/tile/gpu/maps.h"
#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile::gpu {
namespace {

/// The operations, in order, that numbers and views follow from; nothing where they need memory,
/// tiles or loops.
std::optional<std::vector<OpId>> known_from(const Planned& planned,
                                            const std::vector<ValueId>& values) {
  std::set<OpId> found;
  std::vector<ValueId> open = values;
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    const Operation* op = planned.maker(id);
    if (op == nullptr) {
      const std::vector<ValueId>& params = planned.kernel.params();
      if (std::find(params.begin(), params.end(), id) == params.end()) return {};
      continue;
    }
    if (planned.type(id).is_tile() || !is_pure(planned.kernel, *op) || !op->regions.empty())
      return {};
    if (found.insert(*planned.definitions[id]).second)
      open.insert(open.end(), op->in.begin(), op->in.end());
  }
  std::vector<OpId> in_order;
  for (const OpId id : planned.kernel.body.ops)
    if (found.count(id) != 0) in_order.push_back(id);
  // What stands in a loop or branch is not among them.
  return in_order.size() == found.size() ? std::optional(in_order) : std::nullopt;
}

/// Whether they are worth it, where the rounds of a loop are known.
bool may_pay(const Planned& planned, const Operation& loop) {
  std::array<std::int64_t, 3> bounds = {};
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const Operation* made = planned.maker(loop.in[i]);
    if (made == nullptr || made->code != Code::Const) return true;
    bounds[i] = made->literal.integer;
  }
  const auto [from, to, step] = bounds;
  const std::int64_t rounds = step < 1 ? 0 : (to - from + step - 1) / step;
  std::int64_t sums = 0;
  for (const OpId id : loop.regions[0].ops)
    if (const Operation& op = planned.kernel.ops[id]; op.code == Code::Dot)
      sums = std::max(sums, planned.type(op.out[0]).count());
  return roles_pay({.rounds = rounds, .sums = sums});
}

/// Programs that speak to each other may wait for one that would come later.
bool speaks(Code code) {
  return code == Code::Barrier || code == Code::Atomic || code == Code::Cas;
}

Decided<Roles> around(const Planned& planned, OpId id, const RoleOptions& options) {
  const Operation& loop = planned.kernel.ops[id];
  if (!may_pay(planned, loop)) return No{"they would not pay for tiles and rounds like these"};
  const Decided<Ahead> ahead = copies_ahead(planned, loop, options.stages);
  if (!ahead) return No{ahead.why_not()};
  // The sums of its product are all that a round leaves behind.
  if (ahead->pending.empty()) return No{"no product goes on into the next round"};
  std::vector<ValueId> needs(loop.in.begin(), loop.in.begin() + 3);
  const std::function<void(ValueId)> follow = [&](ValueId value) {
    if (value == loop.regions[0].params[0]) return;
    if (!planned.made_in(loop, value)) {
      needs.push_back(value);
      return;
    }
    for (const ValueId in : planned.maker(value)->in) follow(in);
  };
  for (const Ring& ring : ahead->rings)
    for (const ValueId in : planned.kernel.ops[ring.load].in) follow(in);
  auto needed = known_from(planned, needs);
  if (!needed) return No{"where it reads does not follow from arguments and the grid alone"};
  Roles roles{.loop = id, .ahead = *ahead, .needed = *std::move(needed)};
  const auto maps = options.maps ? maps_of(planned, *ahead) : No{"who launches makes none"};
  if (maps) roles.maps = *maps;
  roles.no_maps = maps.why_not();
  return roles;
}

}  // namespace

Decided<Roles> find_roles(const Planned& planned, const RoleOptions& options) {
  if (!planned.plan.any_warpgroups()) return No{"no product by warpgroups"};
  std::optional<Roles> roles;
  std::string why = "no loop";
  bool wrote = false;
  for (const OpId id : planned.kernel.body.ops) {
    const Operation& op = planned.kernel.ops[id];
    if (speaks(op.code) || any_op(planned.kernel, op, speaks))
      return No{"programs may wait for each other"};
    if (op.code == Code::Vload && roles && !wrote) {
      constexpr int kFew = 4;  // registers that a loop can spare
      auto numbers = known_from(planned, op.in);
      if (numbers && planned.home(op.out[0]).registers() <= kFew)
        roles->early.push_back({.load = id, .numbers = *std::move(numbers)});
    }
    if (op.code == Code::For && !roles) {
      const Decided<Roles> found =
          wrote ? No{"a write comes before the loop"} : around(planned, id, options);
      if (found) roles = *found;
      why = found.why_not();
    }
    wrote = wrote || writes_memory(op.code) || any_op(planned.kernel, op, writes_memory);
  }
  if (!roles) return No{why};
  return *std::move(roles);
}

}  // namespace tessera::tile::gpu
