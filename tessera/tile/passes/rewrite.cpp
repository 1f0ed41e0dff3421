#include "tessera/tile/passes/rewrite.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tessera::tile {
namespace {

template <class T>
std::vector<T> kept(const std::vector<T>& all, const std::vector<bool>& keep) {
  std::vector<T> some;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (keep[i]) some.push_back(all[i]);
  }
  return some;
}

/// Mask with `lead` kept entries in front.
std::vector<bool> after(std::size_t lead, const std::vector<bool>& keep) {
  std::vector<bool> all(lead, true);
  all.insert(all.end(), keep.begin(), keep.end());
  return all;
}

bool same(const Region& a, const Region& b) {
  return a.params == b.params && a.ops == b.ops;
}

bool same(const Operation& a, const Operation& b) {
  return a.code == b.code && a.function == b.function && a.in == b.in && a.out == b.out &&
         a.ints == b.ints && a.text == b.text && a.literal.integer == b.literal.integer &&
         std::bit_cast<std::uint64_t>(a.literal.number) ==
             std::bit_cast<std::uint64_t>(b.literal.number) &&
         std::equal(a.regions.begin(), a.regions.end(), b.regions.begin(), b.regions.end(),
                    [](const Region& x, const Region& y) { return same(x, y); });
}

}  // namespace

bool any_op(const Kernel& kernel, const Operation& op, bool (*what)(Code)) {
  bool any = false;
  for (const Region& region : op.regions) {
    for_each_op(kernel, region, [&](OpId id) { any = any || what(kernel.ops[id].code); });
  }
  return any;
}

bool is_pure(const Kernel& kernel, const Operation& op) {
  if (op.code == Code::For || op.code == Code::While || op.code == Code::If) return false;
  const auto impure = [](Code code) {
    return code != Code::Yield && (has_effect(code) || reads_memory(code));
  };
  return !impure(op.code) && op.code != Code::Yield && !any_op(kernel, op, impure);
}

bool same(const Kernel& a, const Kernel& b) {
  return same(a.body, b.body) &&
         std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(),
                    [](const Value& x, const Value& y) { return x.type == y.type; }) &&
         std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(),
                    [](const Operation& x, const Operation& y) { return same(x, y); });
}

const std::vector<ValueId>& yields(const Kernel& kernel, const Region& region) {
  return kernel.ops[region.ops.back()].in;
}

Rewrite::Rewrite(const Kernel& source, const Visit& visit)
    : source_(source), visit_(visit), now_(source.values.size()) {
  result_.name = source.name;
  result_.block = source.block;
  open_.push_back({});
}

Kernel Rewrite::run(const Kernel& source, const Visit& visit) {
  Rewrite out(source, visit);
  for (const ValueId id : source.params()) {
    out.set(id, out.value(source.values[id]));
    out.open_.back().region.params.push_back(out.of(id));
  }
  out.walk(source.body);
  out.result_.body = std::move(out.open_.back().region);
  return std::move(out.result_);
}

std::vector<ValueId> Rewrite::of(const std::vector<ValueId>& old) const {
  std::vector<ValueId> now;
  for (const ValueId id : old) now.push_back(of(id));
  return now;
}

const Operation* Rewrite::definition(ValueId now) const {
  return definition_[now] ? &result_.ops[*definition_[now]] : nullptr;
}

std::optional<Literal> Rewrite::literal(ValueId now) const {
  const Operation* op = definition(now);
  if (op != nullptr && op->code == Code::Const) return op->literal;
  return {};
}

bool Rewrite::visible(ValueId now) const {
  return std::any_of(open_.begin(), open_.end(),
                     [&](const Open& open) { return open.serial == home_[now]; });
}

ValueId Rewrite::value(Value like) {
  result_.values.push_back(std::move(like));
  definition_.emplace_back();
  home_.push_back(open_.back().serial);
  return static_cast<ValueId>(result_.values.size() - 1);
}

OpId Rewrite::append(Operation op) {
  const auto id = static_cast<OpId>(result_.ops.size());
  for (const ValueId out : op.out) definition_[out] = id;
  result_.ops.push_back(std::move(op));
  open_.back().region.ops.push_back(id);
  return id;
}

void Rewrite::walk(const Region& region) {
  for (const OpId id : region.ops) {
    const Operation& op = source_.ops[id];
    if (op.code == Code::Yield) continue;
    line_ = op.source;
    visit_(*this, op);
  }
}

Region Rewrite::copy_region(const Region& region, const std::vector<bool>& params,
                            const std::vector<bool>& yielded) {
  open_.push_back({.serial = ++regions_});
  for (const ValueId id : kept(region.params, params)) {
    set(id, value(source_.values[id]));
    open_.back().region.params.push_back(of(id));
  }
  walk(region);
  const Operation& end = source_.ops[region.ops.back()];
  append({.code = Code::Yield, .in = of(kept(end.in, yielded)), .source = end.source});
  Region done = std::move(open_.back().region);
  open_.pop_back();
  return done;
}

void Rewrite::copy(const Operation& op) {
  copy(op, std::vector<bool>(op.out.size(), true));
}

void Rewrite::copy(const Operation& op, const std::vector<bool>& keep) {
  const bool carries = op.code == Code::For || op.code == Code::While;
  const std::size_t lead = op.code == Code::For ? 3 : 0;
  copy(op, of(carries ? kept(op.in, after(lead, keep)) : op.in), keep);
}

void Rewrite::copy(const Operation& op, std::vector<ValueId> in, const std::vector<bool>& keep) {
  const bool carries = op.code == Code::For || op.code == Code::While;
  Operation now{.code = op.code,
                .function = op.function,
                .in = std::move(in),
                .ints = op.ints,
                .literal = op.literal,
                .text = op.text,
                .source = op.source};
  for (const Region& region : op.regions) {
    const bool condition = op.code == Code::While && &region == &op.regions.front();
    const bool whole = condition || op.code == Code::Reduce || op.code == Code::Scan;
    now.regions.push_back(
        copy_region(region,
                    carries ? after(op.code == Code::For ? 1 : 0, keep)
                            : std::vector<bool>(region.params.size(), true),
                    whole ? std::vector<bool>(yields(source_, region).size(), true) : keep));
  }
  for (const ValueId id : kept(op.out, keep)) {
    set(id, value(source_.values[id]));
    now.out.push_back(of(id));
  }
  append(std::move(now));
}

std::vector<ValueId> Rewrite::inline_region(const Region& region,
                                            const std::vector<ValueId>& params) {
  for (std::size_t i = 0; i < params.size(); ++i) set(region.params[i], params[i]);
  walk(region);
  return of(yields(source_, region));
}

void Rewrite::emit(Operation op) {
  op.source = line_;
  append(std::move(op));
}

ValueId Rewrite::emit(Operation op, Type type) {
  const ValueId id = value({std::move(type), {}});
  op.out = {id};
  emit(std::move(op));
  return id;
}

ValueId Rewrite::constant(Type type, Literal literal) {
  return emit({.code = Code::Const, .literal = literal}, std::move(type));
}

ValueId Rewrite::index(std::int64_t integer) {
  return constant(Type::scalar(DType::I64), {0, integer});
}

ValueId Rewrite::map(Function function, std::vector<ValueId> in) {
  Type result = type(in.back());
  if (is_compare(function)) result = Type::tile(DType::Bool, result.shape);
  return emit({.code = Code::Map, .function = function, .in = std::move(in)}, std::move(result));
}

ValueId Rewrite::cast(ValueId x, DType to) {
  if (type(x).dtype == to) return x;
  return emit({.code = Code::Cast, .in = {x}}, type(x).of(to));
}

}  // namespace tessera::tile
