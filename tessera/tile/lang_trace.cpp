#include "tessera/tile/lang_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "tessera/tile/lang.h"
#include "tessera/tile/type_check.h"

namespace tessera::tile {
namespace {

/// Exception that leaves the traced body at the first error; `Trace::run` catches it.
struct Stop {};

/// Current tracer of the thread: calls such as `arange(0, 8)` do not name the kernel.
Trace*& current_trace() {
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): see above; one per thread
  thread_local Trace* trace = nullptr;
  return trace;
}

std::string line_of(const Source& source) {
  return source.line > 0 ? fmt::format("line {}", source.line) : "a line that is not known";
}

}  // namespace

Trace& Trace::current() {
  Trace* trace = current_trace();
  if (!trace) throw std::logic_error("values of tile kernels exist while tile::kernel traces one");
  return *trace;
}

Trace* Trace::current_or_null() {
  return current_trace();
}

Trace::~Trace() {
  for (Val* variable : alive_) variable->trace_ = nullptr;
}

Expected<Kernel> Trace::run(const std::function<void(Builder&)>& body) {
  struct Restore {
    Trace* outer = current_trace();
    ~Restore() { current_trace() = outer; }
  } restore;
  current_trace() = this;
  try {
    body(builder_);
  } catch (const Stop&) {
    // The builder holds the error.
  }
  TESSERA_TRY(const Kernel kernel, builder_.finish());
  return without_unchanged(kernel);
}

ValueId Trace::checked(ValueId id) {
  if (builder_.failed()) throw Stop{};
  if (id >= made_at_.size()) made_at_.resize(id + 1);
  made_at_[id] = source_;
  return id;
}

void Trace::check() const {
  if (builder_.failed()) throw Stop{};
}

void Trace::fail(std::string id, std::string message, std::string note, std::string help) {
  builder_.fail({.id = std::move(id),
                 .where = place_of(source_),
                 .message = std::move(message),
                 .note = std::move(note),
                 .help = std::move(help)});
  throw Stop{};
}

void Trace::fail_at(const Source& source, std::string id, std::string message, std::string note) {
  source_ = source;
  fail(std::move(id), std::move(message), std::move(note));
}

Trace::Line::Line(Trace& trace, const Place& where) : trace_(trace) {
  if (trace_.pinned_++ == 0) {
    trace_.source_ = {where.file, where.line};
    trace_.builder_.at(trace_.source_);
  }
}

void Trace::dismiss(const Val* variable) {
  const auto found = std::find(alive_.rbegin(), alive_.rend(), variable);
  if (found != alive_.rend()) alive_.erase(std::next(found).base());
}

bool Trace::alive(const Val* variable) const {
  return std::find(alive_.begin(), alive_.end(), variable) != alive_.end();
}

std::vector<Trace::Entry> Trace::assigned() const {
  std::vector<Entry> entries;
  for (Val* variable : alive_) {
    // Views are not variables.
    if (variable->state_ == Val::State::Value && !builder_.type(variable->id_).is_view())
      entries.push_back({variable, variable->id_});
  }
  return entries;
}

Source Trace::source_of(ValueId id) const {
  return id < made_at_.size() && made_at_[id].line > 0 ? made_at_[id] : source_;
}

void Trace::give(const std::vector<Entry>& entries, const std::vector<ValueId>& values) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (values[i] >= made_at_.size()) made_at_.resize(values[i] + 1);
    if (!alive(entries[i].variable)) continue;
    entries[i].variable->state_ = Val::State::Value;
    entries[i].variable->id_ = values[i];
  }
}

std::vector<ValueId> Trace::values_of(const std::vector<Entry>& entries) const {
  std::vector<ValueId> values;
  for (const Entry& entry : entries) values.push_back(entry.value);
  return values;
}

std::vector<ValueId> Trace::next_of(const Open& region) {
  std::vector<ValueId> next;
  for (const auto& [variable, before] : region.entries) {
    const bool has_value = alive(variable) && variable->state_ == Val::State::Value;
    next.push_back(has_value ? variable->id_ : before);
    const Type &was = builder_.type(before), &is = builder_.type(next.back());
    if (was != is) {
      fail_at(source_of(next.back()), "tile-carried",
              fmt::format("a variable that was {} is assigned {}", to_string(was), to_string(is)),
              fmt::format("what the loop or branch at {} hands on keeps its type",
                          line_of(region.source)));
    }
  }
  return next;
}

void Trace::leave(const Open& region) {
  for (const Val* variable : alive_) {
    if (variable->state_ != Val::State::Value || variable->id_ < region.first) continue;
    variable->state_ = Val::State::Gone;
    variable->gone_ = region.source;
  }
}

void Trace::open_for(ValueId from, ValueId to, ValueId step, std::vector<std::int64_t> hints,
                     ValueId& index) {
  Open region{.entries = assigned(), .source = source_};
  const Builder::Loop loop =
      builder_.open_for(from, to, step, values_of(region.entries), std::move(hints));
  index = region.first = checked(loop.index);
  give(region.entries, loop.carried);
  for (std::size_t i = 0; i < loop.carried.size(); ++i) region.entries[i].value = loop.carried[i];
  open_.push_back(std::move(region));
}

void Trace::close_for() {
  const Open region = std::move(open_.back());
  open_.pop_back();
  const std::vector<ValueId> next = next_of(region);
  leave(region);
  builder_.at(region.source);
  const std::vector<ValueId> results = builder_.close_for(next);
  check();
  give(region.entries, results);
}

void Trace::abandon_for() noexcept {
  builder_.fail({.id = "tile-control",
                 .where = place_of(open_.back().source),
                 .message = "the loop is left before its end",
                 .note = "its body is traced once, for all rounds: no break, no return",
                 .help = "bound the loop, or put the rest of its body into tile::when"});
  open_.pop_back();
}

std::vector<ValueId> Trace::apart(const std::function<std::vector<ValueId>()>& body) {
  const Open region{.entries = {}, .first = next_id(), .source = source_};
  std::vector<ValueId> results = in_region(body);
  leave(region);
  return results;
}

std::vector<ValueId> Trace::in_region(const std::function<std::vector<ValueId>()>& body) {
  // User code sets its own lines; operations after it are attributed to this line again.
  const int pinned = std::exchange(pinned_, 0);
  const Source source = source_;
  std::vector<ValueId> results = body();
  pinned_ = pinned;
  source_ = source;
  builder_.at(source);
  return results;
}

void Trace::while_loop(const std::function<ValueId()>& condition,
                       const std::function<void()>& body) {
  Open region{.entries = assigned(), .first = next_id(), .source = source_};
  const std::vector<Entry> before = region.entries;
  const auto enter = [&](const std::vector<ValueId>& params) {
    give(region.entries, params);
    for (std::size_t i = 0; i < params.size(); ++i) region.entries[i].value = params[i];
  };
  const std::vector<ValueId> results = builder_.while_loop(
      values_of(before),
      [&](const std::vector<ValueId>& params) {
        enter(params);
        return in_region([&]() -> std::vector<ValueId> {
          const ValueId holds = condition();
          if (next_of(region) != values_of(region.entries)) {
            fail_at(region.source, "tile-control", "the condition of the loop assigns a variable",
                    "a condition is computed anew each time and changes nothing");
          }
          return {holds};
        });
      },
      [&](const std::vector<ValueId>& params) {
        enter(params);
        return in_region([&] {
          body();
          return next_of(region);
        });
      });
  check();
  leave(region);
  give(region.entries, results);
}

void Trace::if_else(ValueId condition, const std::function<void()>& then,
                    const std::function<void()>& otherwise) {
  const std::vector<Val*> variables = alive_;
  const std::vector<Entry> before = assigned();
  Open region{.entries = {}, .first = next_id(), .source = source_};
  std::vector<Val*> missing;  // assigned by the first branch only
  const auto first = [&] {
    then();
    for (const Entry& entry : assigned()) {
      const bool older =
          std::find(variables.begin(), variables.end(), entry.variable) != variables.end();
      if (older) region.entries.push_back(entry);
    }
    // Variables with a value keep its type; where they had none, the second branch keeps the
    // first's.
    Open kept = region;
    for (Entry& entry : kept.entries) {
      for (const Entry& old : before)
        if (old.variable == entry.variable) entry.value = old.value;
    }
    return next_of(kept);
  };
  const auto second = [&] {
    for (const Entry& entry : region.entries) {
      if (alive(entry.variable)) entry.variable->state_ = Val::State::Nothing;
    }
    give(before, values_of(before));
    if (otherwise) otherwise();
    for (const Entry& entry : region.entries) {
      Val* variable = entry.variable;
      if (!alive(variable) || variable->state_ == Val::State::Value) continue;
      missing.push_back(variable);
      const Type type = builder_.type(entry.value);
      if (!type.is_number()) {
        fail_at(region.source, "tile-carried",
                fmt::format("one branch alone makes {}", to_string(type)),
                "both branches, or a value before");
      }
      variable->state_ = Val::State::Value;  // unassigned before the branch: never read
      variable->id_ = checked(builder_.constant(type, 0.0));
    }
    return next_of(region);
  };
  const std::vector<ValueId> results = builder_.if_else(
      condition, [&] { return in_region(first); }, [&] { return in_region(second); });
  check();
  leave(region);
  give(region.entries, results);
  for (const Val* variable : missing) {
    variable->state_ = Val::State::Gone;
    variable->gone_ = region.source;
  }
}

namespace {

/// Removes region parameters and results that never change, innermost first.
class Unchanged {
 public:
  explicit Unchanged(const Kernel& kernel) : kernel_(kernel), same_(kernel.values.size()) {
    std::iota(same_.begin(), same_.end(), 0);
  }

  Kernel dropped() {
    visit(kernel_.body);
    Kernel result{.name = kernel_.name};
    result.body = copied(kernel_.body, result);
    return result;
  }

 private:
  void visit(const Region& region) {
    for (const OpId id : region.ops) {
      Operation& op = kernel_.ops[id];
      for (const Region& inner : op.regions) visit(inner);
      if (op.code == Code::For) drop(op, 3, 1);
      if (op.code == Code::While) drop(op, 0, 0);
      if (op.code == Code::If) drop_results(op);
    }
  }

  /// Loop whose carried values start at these positions among the operands and the parameters.
  void drop(Operation& op, std::size_t first_in, std::size_t first_param) {
    std::vector<ValueId>& next = yields(op.regions.back());
    for (std::size_t i = op.out.size(); i-- > 0;) {
      const ValueId start = op.in[first_in + i];
      if (same(next[i]) != same(op.regions.back().params[first_param + i])) continue;
      same_[op.out[i]] = start;
      for (Region& region : op.regions) {
        same_[region.params[first_param + i]] = start;
        erase(region.params, first_param + i);
      }
      erase(op.in, first_in + i);
      erase(op.out, i);
      erase(next, i);
    }
  }

  void drop_results(Operation& op) {
    std::vector<ValueId>&then = yields(op.regions[0]), &otherwise = yields(op.regions[1]);
    for (std::size_t i = op.out.size(); i-- > 0;) {
      if (same(then[i]) != same(otherwise[i])) continue;
      same_[op.out[i]] = same(then[i]);
      erase(op.out, i);
      erase(then, i);
      erase(otherwise, i);
    }
  }

  ValueId same(ValueId id) const {
    while (same_[id] != id) id = same_[id];
    return id;
  }
  std::vector<ValueId>& yields(const Region& region) { return kernel_.ops[region.ops.back()].in; }
  static void erase(std::vector<ValueId>& list, std::size_t position) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(position));
  }

  /// Copies to the result, renumbering values and operations in order.
  Region copied(const Region& region, Kernel& result) {
    Region copy;
    for (const ValueId id : region.params) copy.params.push_back(define(id, result));
    for (const OpId id : region.ops) {
      Operation op = kernel_.ops[id];
      for (ValueId& in : op.in) in = renamed_.at(same(in));
      for (Region& inner : op.regions) inner = copied(inner, result);
      for (ValueId& out : op.out) out = define(out, result);
      result.ops.push_back(std::move(op));
      copy.ops.push_back(static_cast<OpId>(result.ops.size() - 1));
    }
    return copy;
  }
  ValueId define(ValueId id, Kernel& result) {
    result.values.push_back(kernel_.values[id]);
    return renamed_[id] = static_cast<ValueId>(result.values.size() - 1);
  }

  Kernel kernel_;
  std::vector<ValueId> same_;  // representative of each value's equivalence class
  std::map<ValueId, ValueId> renamed_;
};

}  // namespace

Kernel without_unchanged(const Kernel& kernel) {
  return Unchanged(kernel).dropped();
}

}  // namespace tessera::tile
