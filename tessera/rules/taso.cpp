#include "tessera/rules/taso.h"

#include <algorithm>
#include <array>
#include <optional>

#include "tessera/rules/taso_graph.h"
#include "tessera/rules/taso_text.h"

namespace tessera::rules {
namespace taso {
namespace {

using Like = Operator::Like;

constexpr std::int64_t kLargestWindow = 31;

Expected<Done> check(const Call& call) {
  const Operator* op = find_operator(call.op);
  if (op == nullptr) return malformed(call.line, "there is no operator " + call.op);
  const bool fits = op->args == Operator::kAny ? !call.args.empty() : call.args.size() == op->args;
  if (!fits)
    return malformed(call.line, fmt::format("{} has {} arguments", call.op, call.args.size()),
                     op->args == Operator::kAny ? "it takes at least one"
                                                : fmt::format("it takes {}", op->args));
  if (op->window == call.window.empty())
    return malformed(call.line, fmt::format("{} has {} window", call.op, op->window ? "no" : "a"));
  if (std::ranges::any_of(call.window, [](std::int64_t k) { return k > kLargestWindow; }))
    return malformed(call.line, fmt::format("the window is {}x{}", call.window[0], call.window[1]),
                     fmt::format("it has at most {} rows and columns", kLargestWindow));
  const auto known = [&](const auto& option) {
    return std::ranges::find(op->options, option.first) != op->options.end();
  };
  for (const auto& option : call.numbers)
    if (!known(option)) return malformed(call.line, "there is no option " + option.first);
  for (const auto& option : call.words)
    if (!known(option)) return malformed(call.line, "there is no option " + option.first);
  return Done{};
}

/// What a rule says of a size of a window.
struct Extent {
  enum class Kind { Odd, AtMost, Exactly };  // the later ones say more
  Kind kind = Kind::Odd;
  std::int64_t size = 0;
};

/// A rule of TASO's with what its text leaves unsaid: the ranks of constants and which inputs are
/// windows.
class Reader {
 public:
  explicit Reader(const Record& record) : record_(record) {
    for (const auto* side : {&record_.source, &record_.target})
      for (const Call& call : *side) calls_.push_back(&call);
  }

  Expected<Rule> rule() {
    for (const Call* call : calls_) TESSERA_TRY_DONE(check(*call));
    literal_ = std::ranges::any_of(calls_, [](const Call* call) {
      return find_operator(call->op)->window && call->op != "conv";
    });
    for (const Input& input : record_.inputs)
      if (input.rank) ranks_[input.name] = *input.rank;
    infer_ranks();
    for (const Call* call : calls_) TESSERA_TRY_DONE(check_ranks(*call));
    for (const auto* side : {&record_.source, &record_.target}) find_windows(*side);

    std::vector<Wildcard> inputs;
    for (const Input& input : record_.inputs) inputs.push_back({input.name, shape_of(input)});
    Likes likes;
    for (const Call* call : calls_) add_like(*call, inputs, likes);

    std::vector<Reference> source, target;
    for (const Equation& map : record_.maps) {
      source.push_back(map.source);
      target.push_back(map.target);
    }
    Rule rule{.name = fmt::format("taso_{}", record_.number),
              .about = record_.about,
              .source = {},
              .target = {},
              .guard = {},
              .numerics = {},
              .found = "by the generator of TASO",
              .constants = {}};
    TESSERA_TRY(rule.source, built(inputs, likes, record_.source, source));
    TESSERA_TRY(rule.target, built(inputs, likes, record_.target, target));
    return rule;
  }

 private:
  /// Values that are of one rank, round after round until nothing changes.
  void infer_ranks() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Call* call : calls_) changed = infer_ranks(*call) || changed;
      for (const Equation& map : record_.maps)
        changed = equate({map.source.name, map.target.name}, {}) || changed;
    }
  }

  /// Values of a call that have one rank, and which, where the call says so.
  struct OneRank {
    std::vector<std::string> names;
    std::optional<int> rank;
  };
  static OneRank one_rank(const Call& call) {
    const Operator& op = *find_operator(call.op);
    OneRank same{.names = {call.name}, .rank = op.rank};
    for (std::size_t i = 0; i < call.args.size(); ++i)
      if (op.rank || op.like == Like::None || is_like_result(op, i))
        same.names.push_back(call.args[i].name);
    if (const auto it = call.numbers.find("ndim"); it != call.numbers.end())
      same.rank = static_cast<int>(it->second[0]);
    if (const auto it = call.numbers.find("perm"); it != call.numbers.end())
      same.rank = static_cast<int>(it->second.size());
    return same;
  }

  bool infer_ranks(const Call& call) {
    const OneRank same = one_rank(call);
    const bool scalar =
        find_operator(call.op)->like == Like::Scaled && equate({call.args[1].name}, 0);
    return equate(same.names, same.rank) || scalar;
  }

  Expected<Done> check_ranks(const Call& call) const {
    std::optional<int> rank = one_rank(call).rank;
    if (rank.value_or(0) > kHighestRank)
      return malformed(call.line, fmt::format("{} has {} axes", call.op, *rank),
                       fmt::format("there are at most {}", kHighestRank));
    for (const std::string& name : one_rank(call).names) {
      const auto it = ranks_.find(name);
      if (it == ranks_.end()) continue;
      if (!rank) rank = it->second;
      if (*rank != it->second)
        return malformed(call.line, fmt::format("{} has {} axes", name, it->second),
                         fmt::format("{} are expected", *rank));
    }
    return Done{};
  }

  bool equate(const std::vector<std::string>& names, std::optional<int> rank) {
    for (const std::string& name : names)
      if (const auto it = ranks_.find(name); it != ranks_.end() && !rank) rank = it->second;
    bool changed = false;
    for (const std::string& name : names)
      if (rank) changed = ranks_.try_emplace(name, *rank).second || changed;
    return changed;
  }

  static bool is_like_result(const Operator& op, std::size_t arg) {
    return op.like == Like::All || (op.like != Like::None && arg == 0);
  }

  void want(const std::string& value, std::size_t axis, const Extent& extent) {
    const auto [it, added] = windows_[axis].try_emplace(value, extent);
    Extent& known = it->second;
    if (added || extent.kind < known.kind) return;
    // Two sizes for one window: it is any.
    if (extent.kind == known.kind && extent.size != known.size)
      known = {};
    else
      known = extent;
  }

  /// Backwards from what convolutions and enlarged windows read.
  void find_windows(const std::vector<Call>& calls) {
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
      const Operator& op = *find_operator(call->op);
      for (const std::size_t axis : {0, 1}) {
        if (const auto found = windows_[axis].find(call->name); found != windows_[axis].end()) {
          const Extent extent = found->second;
          for (std::size_t i = 0; i < call->args.size(); ++i)
            if (is_like_result(op, i)) want(call->args[i].name, axis, extent);
        }
        if (!op.window || call->args.empty()) continue;
        const std::int64_t size = call->window[axis];
        if (op.args == 2)
          want(call->args[1].name, axis, literal_ ? Extent{Extent::Kind::Exactly, size} : Extent{});
        else if (op.like == Like::None)
          want(call->args[0].name, axis, {Extent::Kind::AtMost, size});
      }
    }
  }

  Shape shape_of(const Input& input) const {
    // What is of any rank is only ever an operand where all have one shape.
    const auto rank = ranks_.find(input.name);
    if (rank == ranks_.end()) return {Dim::symbol("*s")};
    Shape shape;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(rank->second); ++axis) {
      const std::string name = fmt::format("{}.{}", input.name, axis);
      shape.push_back(Dim::symbol(name));
      if (const auto fixed = input.fixed.find(axis); fixed != input.fixed.end()) {
        shape.back() = fixed->second;
      } else if (rank->second == 4 && axis >= 2) {
        const auto window = windows_[axis - 2].find(input.name);
        if (window == windows_[axis - 2].end()) continue;
        const Dim half = Dim::symbol(name + "r");
        switch (window->second.kind) {
          case Extent::Kind::Odd: shape.back() = half * 2 + 1; break;
          case Extent::Kind::AtMost: shape.back() = window->second.size - half * 2; break;
          case Extent::Kind::Exactly: shape.back() = window->second.size; break;
        }
      }
    }
    return shape;
  }

  void add_like(const Call& call, std::vector<Wildcard>& inputs, Likes& likes) const {
    if (!call.args.empty()) return;
    const std::string name = fmt::format("like{}", likes.size());
    if (!likes.emplace(call.name, name).second) return;
    const Dim size = Dim::symbol(name + ".0");
    Shape shape;
    if (call.op == "constant_pool") {
      shape = {size};
    } else if (call.op != "constant_one") {
      shape = {size, size};
    } else {
      const auto rank = ranks_.find(call.name);
      if (rank == ranks_.end()) shape.push_back(Dim::symbol("*s"));
      for (int axis = 0; rank != ranks_.end() && axis < rank->second; ++axis)
        shape.push_back(Dim::symbol(fmt::format("{}.{}", name, axis)));
    }
    inputs.push_back({name, std::move(shape)});
  }

  const Record& record_;
  std::vector<const Call*> calls_;  // of both sides
  bool literal_ = false;            // windows are of the sizes that they are written with
  std::map<std::string, int> ranks_;
  std::array<std::map<std::string, Extent>, 2> windows_;  // rows and columns, by value
};

}  // namespace
}  // namespace taso

Expected<std::vector<Rule>> parse_taso(std::string_view text, const std::string& file) {
  const auto located_in = [&](Diagnostic diagnostic) {
    return located(std::move(diagnostic), {.file = file});
  };
  auto records = taso::parse_records(text);
  if (!records) return located_in(std::move(records).error());
  std::vector<Rule> rules;
  for (const taso::Record& record : *records) {
    auto rule = taso::Reader(record).rule();
    if (!rule) return located_in(std::move(rule).error());
    rules.push_back(*std::move(rule));
  }
  return rules;
}

}  // namespace tessera::rules
