#include "tessera/tile/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "tessera/support/hash.h"
#include "tessera/tile/schedule_legality.h"

namespace tessera::tile {
namespace {

constexpr std::int64_t kMostUnrolled = 256;                  // copies of a body
constexpr std::int64_t kMostExtent = std::int64_t{1} << 40;  // of a loop

/// Substitutes expressions for loop names in expressions that primitives create.
Scalar substituted(const Scalar& scalar, std::string_view loop, const Scalar& by) {
  if (const auto* index = std::get_if<node::Index>(&scalar.node()))
    return index->axis == loop ? by : scalar;
  if (const auto* apply = std::get_if<node::Apply>(&scalar.node())) {
    std::vector<Scalar> args;
    for (const Scalar& arg : apply->args) args.push_back(substituted(arg, loop, by));
    return tessera::apply(apply->fn, std::move(args));
  }
  return scalar;
}

}  // namespace

/// Implementation of the primitives on a schedule under construction.
class Primitives {
 public:
  explicit Primitives(const Schedule& schedule) : schedule_(schedule) {}

  Expected<Schedule> apply(const Step& step) {
    using enum Step::Primitive;
    const auto takes = [&](std::size_t names, std::size_t numbers) {
      return step.names.size() == names && step.numbers.size() == numbers;
    };
    const auto run = [&]() -> Expected<Done> {
      const auto& names = step.names;
      const auto& numbers = step.numbers;
      switch (step.primitive) {
        case Split: return takes(1, 1) ? split(names[0], numbers[0]) : miscounted();
        case Cover: return takes(1, 1) ? cover(names[0], numbers[0]) : miscounted();
        case Tile:
          return takes(2, 2) ? tile(names[0], names[1], numbers[0], numbers[1]) : miscounted();
        case Reorder: return step.numbers.empty() ? reorder(names) : miscounted();
        case Fuse: return takes(2, 0) ? fuse(names[0], names[1]) : miscounted();
        case Fission: return takes(1, 0) ? fission(names[0]) : miscounted();
        case Skew: return takes(2, 1) ? skew(names[0], names[1], numbers[0]) : miscounted();
        case Unroll: return takes(1, 0) ? unroll(names[0]) : miscounted();
        case Vectorize: return takes(1, 0) ? vectorize(names[0]) : miscounted();
        case Parallel: return takes(1, 0) ? parallel(names[0]) : miscounted();
        case ComputeAt: return takes(2, 0) ? compute_at(names[0], names[1]) : miscounted();
        case CacheRead: return takes(2, 0) ? cache_read(names[0], names[1]) : miscounted();
        case CacheWrite: return takes(1, 0) ? cache_write(names[0]) : miscounted();
        case Pipeline: return takes(1, 1) ? pipeline(names[0], numbers[0]) : miscounted();
        case Tensorize: return takes(1, 0) ? tensorize(names[0]) : miscounted();
      }
      return miscounted();
    };
    TESSERA_TRY_DONE(run());
    for (Nest& nest : schedule_.nests_) {
      order_loops(nest);
      TESSERA_TRY_DONE(check_nest(schedule_, nest));
    }
    schedule_.steps_.push_back(step);
    return std::move(schedule_);
  }

 private:
  static Diagnostic miscounted() {
    return illegal("this primitive takes other arguments", "docs/schedules.md lists them");
  }

  /// Finds a loop by `name` or `stage/name`.
  struct Found {
    Nest* nest = nullptr;
    std::size_t index = 0;
    Loop& loop() const { return nest->loops[index]; }
  };
  Expected<Found> find(const std::string& text) {
    const std::size_t slash = text.find('/');
    const std::string stage = slash == std::string::npos ? "" : text.substr(0, slash);
    const std::string name = slash == std::string::npos ? text : text.substr(slash + 1);
    std::vector<Found> found;
    for (Nest& nest : schedule_.nests_) {
      if (!stage.empty() && nest.stage != stage) continue;
      for (std::size_t i = 0; i < nest.loops.size(); ++i)
        if (nest.loops[i].name == name) found.push_back({&nest, i});
    }
    if (found.empty()) return illegal(fmt::format("there is no loop {}", text));
    if (found.size() > 1)
      return illegal(fmt::format("several stages have a loop {}", text),
                     "stage/loop says which one is meant");
    if (found[0].nest->at)
      return illegal(fmt::format("stage {} is computed in a loop of {}", found[0].nest->stage,
                                 found[0].nest->at->what),
                     "its loops are gone");
    return found[0];
  }
  Expected<Nest*> find_stage(const std::string& name) {
    for (Nest& nest : schedule_.nests_)
      if (nest.stage == name) return &nest;
    return illegal(fmt::format("there is no stage {}", name));
  }

  static void replace(Nest& nest, std::string_view loop, const Scalar& by) {
    for (Nest::Axis& axis : nest.axes) axis.at = substituted(axis.at, loop, by);
    for (Nest::Axis& guard : nest.guards) guard.at = substituted(guard.at, loop, by);
  }
  /// Replaces the loop by an expression that may leave its range (adds a guard).
  static void add_guard(Nest& nest, const Loop& loop, const Scalar& at) {
    const bool is_axis = std::ranges::count(nest.axes, loop.name, &Nest::Axis::name) > 0;
    nest.guards.push_back({is_axis ? loop.name : "", loop.extent, loop.reduces, at});
  }
  static Expected<Done> unclaimed(const Nest& nest, const std::vector<std::string>& names) {
    for (const std::string& name : names)
      if (nest.find(name) != nullptr)
        return illegal(fmt::format("there is a loop {} already", name));
    return Done{};
  }
  /// Loops that an earlier step refers to cannot be changed.
  Expected<Done> plain(const Found& found) const {
    const std::string& name = found.loop().name;
    if (found.loop().kind != Loop::Kind::Serial || found.loop().pipeline_depth != 0)
      return illegal(fmt::format("loop {} is serial no more", name), "do this before");
    for (const Nest::Place& read : found.nest->reads)
      if (read.loop == name)
        return illegal(fmt::format("operand {} is loaded in loop {}", read.what, name),
                       "do this before");
    for (const Nest& nest : schedule_.nests_)
      if (nest.at && nest.at->what == found.nest->stage && nest.at->loop == name)
        return illegal(fmt::format("stage {} is computed in loop {}", nest.stage, name),
                       "do this before");
    if (found.nest->write == name)
      return illegal(fmt::format("the result is stored in loop {}", name), "do this before");
    return Done{};
  }

  enum class Rest : std::uint8_t { Masked, Covered };
  Expected<Done> split(const std::string& name, std::int64_t factor, Rest rest = Rest::Masked) {
    TESSERA_TRY(const Found found, find(name));
    TESSERA_TRY_DONE(plain(found));
    if (factor <= 0) return illegal(fmt::format("a loop cannot be split by {}", factor));
    if (factor > kMostExtent) return illegal(fmt::format("{} is beyond any loop", factor));
    Loop outer = found.loop(), inner = found.loop();
    outer.name += ".o";
    inner.name += ".i";
    TESSERA_TRY_DONE(unclaimed(*found.nest, {outer.name, inner.name}));
    outer.extent = (found.loop().extent + factor - 1) / factor;
    inner.extent = factor;
    const bool is_whole = found.loop().extent % factor == 0;
    Scalar first = index_of(outer.name) * factor;
    if (!is_whole && rest == Rest::Covered)
      first = min(first, Scalar(found.loop().extent - factor));
    const Scalar at = first + index_of(inner.name);
    replace(*found.nest, found.loop().name, at);
    if (!is_whole && rest == Rest::Masked) add_guard(*found.nest, found.loop(), at);
    auto& loops = found.nest->loops;
    found.loop() = inner;
    loops.insert(loops.begin() + static_cast<std::ptrdiff_t>(found.index), outer);
    return Done{};
  }

  /// Some elements of the last part are computed twice, so the loop must not be a reduction.
  Expected<Done> cover(const std::string& name, std::int64_t factor) {
    TESSERA_TRY(const Found found, find(name));
    if (found.loop().reduces) return illegal("what a fold takes in is taken in once");
    if (factor > found.loop().extent)
      return illegal(fmt::format("loop {} has no {} rounds", name, factor));
    return split(name, factor, Rest::Covered);
  }

  Expected<Done> tile(const std::string& i, const std::string& j, std::int64_t n, std::int64_t m) {
    if (i == j) return illegal("a tile has two loops");
    TESSERA_TRY_DONE(split(i, n));
    TESSERA_TRY_DONE(split(j, m));
    return reorder({i + ".o", j + ".o", i + ".i", j + ".i"});
  }

  Expected<Done> reorder(const std::vector<std::string>& names) {
    if (names.size() < 2) return illegal("to reorder takes two loops or more");
    std::vector<std::size_t> places;
    std::vector<Loop> moved;
    Nest* nest = nullptr;
    for (const std::string& name : names) {
      TESSERA_TRY(const Found found, find(name));
      if (nest != nullptr && found.nest != nest)
        return illegal("loops of different stages have no order");
      nest = found.nest;
      if (std::ranges::count(places, found.index) > 0)
        return illegal(fmt::format("loop {} is named twice", name));
      places.push_back(found.index);
      moved.push_back(found.loop());
    }
    const std::vector<Loop> before = nest->loops;
    std::ranges::sort(places);
    for (std::size_t i = 0; i < places.size(); ++i) nest->loops[places[i]] = moved[i];
    const auto fold = main_fold(stage_of(schedule_, *nest));
    std::vector<std::string> was, is;
    for (const Loop& loop : before)
      if (loop.reduces) was.push_back(loop.name);
    for (const Loop& loop : nest->loops)
      if (loop.reduces) is.push_back(loop.name);
    if (was != is && fold != nullptr && !commutes(*fold))
      return illegal("the order in which the fold takes things in matters",
                     "it is no sum, product, minimum or maximum");
    return Done{};
  }

  Expected<Done> fuse(const std::string& outer, const std::string& inner) {
    TESSERA_TRY(const Found a, find(outer));
    TESSERA_TRY(const Found b, find(inner));
    if (a.nest != b.nest || b.index != a.index + 1)
      return illegal(fmt::format("loop {} does not follow loop {}", inner, outer));
    TESSERA_TRY_DONE(plain(a));
    TESSERA_TRY_DONE(plain(b));
    if (a.loop().reduces != b.loop().reduces)
      return illegal("a loop of the output and one of the fold are not fused");
    if (b.loop().extent > 0 && a.loop().extent > kMostExtent / b.loop().extent)
      return illegal("the loop would be too long");
    Loop fused = a.loop();
    fused.name += "_" + b.loop().name;
    TESSERA_TRY_DONE(unclaimed(*a.nest, {fused.name}));
    fused.extent *= b.loop().extent;
    const std::int64_t width = std::max<std::int64_t>(b.loop().extent, 1);
    const std::string first = a.loop().name, second = b.loop().name;
    replace(*a.nest, first, floor_div(index_of(fused.name), Scalar(width)));
    replace(*a.nest, second, mod(index_of(fused.name), Scalar(width)));
    a.loop() = fused;
    a.nest->loops.erase(a.nest->loops.begin() + static_cast<std::ptrdiff_t>(b.index));
    return Done{};
  }

  Expected<Done> fission(const std::string& name) {
    TESSERA_TRY(const Found found, find(name));
    bool any = false;
    for (Nest& nest : schedule_.nests_) {
      if (!nest.at || nest.at->what != found.nest->stage || nest.at->loop != found.loop().name)
        continue;
      nest.at.reset();
      any = true;
    }
    if (!any) return illegal(fmt::format("no stage is computed in loop {}", name));
    return Done{};
  }

  Expected<Done> skew(const std::string& i, const std::string& j, std::int64_t factor) {
    TESSERA_TRY(const Found a, find(i));
    TESSERA_TRY(const Found b, find(j));
    if (a.nest != b.nest || b.index <= a.index)
      return illegal(fmt::format("loop {} does not lie inside of loop {}", j, i));
    TESSERA_TRY_DONE(plain(b));
    if (a.loop().reduces != b.loop().reduces)
      return illegal(
          "a loop of the output is not skewed along one of the fold, nor one of the "
          "fold along one of the output");
    if (factor <= 0 || factor > kMostExtent / std::max<std::int64_t>(a.loop().extent, 1))
      return illegal(fmt::format("a loop cannot be skewed by {}", factor));
    if (a.loop().extent == 0 || b.loop().extent == 0) return illegal("the loops are empty");
    Loop skewed = b.loop();
    skewed.name += ".s";
    TESSERA_TRY_DONE(unclaimed(*b.nest, {skewed.name}));
    skewed.extent += factor * (a.loop().extent - 1);
    const Scalar at = index_of(skewed.name) - index_of(a.loop().name) * factor;
    replace(*b.nest, b.loop().name, at);
    add_guard(*b.nest, b.loop(), at);
    b.loop() = skewed;
    return Done{};
  }

  Expected<Done> unroll(const std::string& name) {
    TESSERA_TRY(const Found found, find(name));
    TESSERA_TRY_DONE(plain_kind(found));
    found.loop().kind = Loop::Kind::Unrolled;
    std::int64_t copies = 1;
    for (const Loop& loop : found.nest->loops)
      if (loop.kind == Loop::Kind::Unrolled &&
          (copies *= std::max<std::int64_t>(loop.extent, 1)) > kMostUnrolled)
        return illegal(fmt::format("loop {} would make the code {} times as long", name, copies),
                       fmt::format("{} is the most", kMostUnrolled));
    return Done{};
  }
  static Expected<Done> plain_kind(const Found& found) {
    if (found.loop().kind != Loop::Kind::Serial || found.loop().pipeline_depth != 0)
      return illegal(fmt::format("loop {} is serial no more", found.loop().name));
    return Done{};
  }

  Expected<Done> vectorize(const std::string& name) {
    TESSERA_TRY(const Found found, find(name));
    TESSERA_TRY_DONE(plain(found));
    const Loop vector = found.loop();
    if (vector.extent < 1) return illegal(fmt::format("loop {} is empty", name));
    auto& loops = found.nest->loops;
    const auto fold = main_fold(stage_of(schedule_, *found.nest));
    if (vector.reduces && fold != nullptr && !commutes(*fold))
      for (std::size_t i = found.index + 1; i < loops.size(); ++i)
        if (loops[i].reduces && loops[i].kind != Loop::Kind::Vector)
          return illegal(
              fmt::format("loop {} carries a dependence across loop {}", name, loops[i].name),
              "the order in which the fold takes things in matters");
    // Vectors follow the order of the loops, those of the fold last.
    loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(found.index));
    loops.push_back(vector);
    loops.back().kind = Loop::Kind::Vector;
    return Done{};
  }

  Expected<Done> parallel(const std::string& name) {
    TESSERA_TRY(const Found found, find(name));
    TESSERA_TRY_DONE(plain_kind(found));
    if (found.loop().reduces)
      return illegal(fmt::format("loop {} runs through what a fold takes in", name),
                     "its rounds depend on each other");
    for (std::size_t i = 0; i < found.index; ++i)
      if (found.nest->loops[i].kind != Loop::Kind::Parallel)
        return illegal(fmt::format("loop {} lies inside of loop {}, which is not parallel", name,
                                   found.nest->loops[i].name),
                       "parallel loops come first; reorder moves them");
    found.loop().kind = Loop::Kind::Parallel;
    return Done{};
  }

  Expected<Done> compute_at(const std::string& name, const std::string& loop) {
    TESSERA_TRY(Nest* const producer, find_stage(name));
    TESSERA_TRY(const Found found, find(loop));
    if (producer == found.nest) return illegal("a stage is not computed in itself");
    if (producer->at) return illegal(fmt::format("stage {} has its place already", name));
    for (const Stage& other : *schedule_.stages_) {
      if (other.name() == found.nest->stage || other.name() == name) continue;
      if (std::ranges::count(other.operands, name, &tessera::Operand::name) > 0)
        return illegal(fmt::format("stage {} reads {} too", other.name(), name));
    }
    for (const Nest& nest : schedule_.nests_)
      if (nest.at && nest.at->what == name)
        return illegal(fmt::format("stage {} is computed in a loop of {}", nest.stage, name),
                       "those loops would be gone");
    if (&schedule_.stages_->back() == &stage_of(schedule_, *producer))
      return illegal(fmt::format("stage {} is a result", name));
    if (stage_of(schedule_, *producer).output.dtype != DType::F32 &&
        stage_of(schedule_, *producer).output.dtype != DType::F64)
      return illegal("a stage that is stored rounded is stored");
    TESSERA_TRY_DONE(check_positions(schedule_, *found.nest, found.loop(), name));
    producer->at = Nest::Place{found.nest->stage, found.loop().name};
    return Done{};
  }

  Expected<Done> cache_read(const std::string& operand, const std::string& loop) {
    TESSERA_TRY(const Found found, find(loop));
    if (found.loop().kind == Loop::Kind::Vector)
      return illegal(fmt::format("loop {} is a vector", loop), "a tile is loaded in a loop");
    for (const Nest::Place& read : found.nest->reads)
      if (read.what == operand)
        return illegal(fmt::format("{} is loaded in loop {} already", operand, read.loop));
    for (const Nest& nest : schedule_.nests_)
      if (nest.at && nest.stage == operand)
        return illegal(fmt::format("stage {} is computed, not loaded", operand));
    TESSERA_TRY_DONE(check_positions(schedule_, *found.nest, found.loop(), operand));
    found.nest->reads.push_back({operand, found.loop().name});
    return Done{};
  }

  Expected<Done> cache_write(const std::string& name) {
    TESSERA_TRY(const Found found, find(name));
    if (found.nest->write) return illegal("the result has its place already");
    if (found.loop().reduces)
      return illegal(fmt::format("loop {} runs through what a fold takes in", name),
                     "the result is known after it");
    found.nest->write = found.loop().name;
    return Done{};
  }

  Expected<Done> pipeline(const std::string& name, std::int64_t rounds) {
    TESSERA_TRY(const Found found, find(name));
    TESSERA_TRY_DONE(plain_kind(found));
    if (rounds < 1 || rounds > 16)
      return illegal(fmt::format("{} rounds cannot be in flight", rounds), "1 to 16 can");
    found.loop().pipeline_depth = rounds;
    return Done{};
  }

  Expected<Done> tensorize(const std::string& name) {
    TESSERA_TRY(Nest* const nest, find_stage(name));
    if (nest->at) return illegal(fmt::format("stage {} has no loops of its own", name));
    nest->tensorized = true;
    return Done{};
  }

  /// Vectorized loops are innermost, those of the fold last.
  static void order_loops(Nest& nest) {
    std::stable_sort(nest.loops.begin(), nest.loops.end(), [](const Loop& a, const Loop& b) {
      const auto rank = [](const Loop& loop) {
        return loop.kind != Loop::Kind::Vector ? 0 : loop.reduces ? 2 : 1;
      };
      return rank(a) < rank(b);
    });
  }

  Schedule schedule_;
};

const Loop* Nest::find(std::string_view loop) const {
  const auto it = std::ranges::find(loops, loop, &Loop::name);
  return it == loops.end() ? nullptr : &*it;
}

const Nest& Schedule::nest(std::string_view stage) const {
  const auto it = std::ranges::find(nests_, stage, &Nest::stage);
  TESSERA_CHECK(it != nests_.end(), "there is no stage {}", stage);
  return *it;
}

Expected<Schedule> Schedule::of(Stages stages) {
  Schedule schedule;
  for (const Stage& stage : stages) {
    Nest nest{.stage = stage.name()};
    const auto add = [&](const std::string& name, const Scalar& size,
                         bool reduces) -> Expected<Done> {
      const auto extent = number_of_size(size, stage.sizes);
      if (!extent || *extent < 0 || *extent > kMostExtent)
        return Diagnostic{.id = "schedule-size",
                          .where = {.item = stage.name()},
                          .message = fmt::format("the extent of axis {} is no number", name)};
      nest.loops.push_back({.name = name, .extent = *extent, .reduces = reduces});
      nest.axes.push_back(
          {.name = name, .extent = *extent, .reduces = reduces, .at = index_of(name)});
      return Done{};
    };
    for (const MergedAxis& merged : stage.output.axes)
      for (const tessera::Axis& axis : merged.parts)
        TESSERA_TRY_DONE(add(axis.name, Scalar(axis.size()), false));
    if (const auto fold = main_fold(stage))
      for (const tessera::Bound& bound : fold->bounds)
        TESSERA_TRY_DONE(add(bound.axis, bound.extent, true));
    schedule.nests_.push_back(std::move(nest));
  }
  schedule.stages_ = std::make_shared<const Stages>(std::move(stages));
  return schedule;
}

Expected<Schedule> Schedule::apply(const Step& step) const {
  return Primitives(*this).apply(step);
}

Expected<Schedule> Schedule::apply(const std::vector<Step>& steps) const {
  Schedule schedule = *this;
  for (const Step& step : steps) {
    TESSERA_TRY(schedule, schedule.apply(step));
  }
  return schedule;
}

using enum Step::Primitive;

Expected<Schedule> Schedule::cover(const std::string& loop, std::int64_t factor) const {
  return apply({Cover, {loop}, {factor}});
}
Expected<Schedule> Schedule::split(const std::string& loop, std::int64_t factor) const {
  return apply({Split, {loop}, {factor}});
}
Expected<Schedule> Schedule::tile(const std::string& i, const std::string& j, std::int64_t n,
                                  std::int64_t m) const {
  return apply({Tile, {i, j}, {n, m}});
}
Expected<Schedule> Schedule::reorder(const std::vector<std::string>& loops) const {
  return apply({Reorder, loops, {}});
}
Expected<Schedule> Schedule::fuse(const std::string& outer, const std::string& inner) const {
  return apply({Fuse, {outer, inner}, {}});
}
Expected<Schedule> Schedule::fission(const std::string& loop) const {
  return apply({Fission, {loop}, {}});
}
Expected<Schedule> Schedule::skew(const std::string& i, const std::string& j,
                                  std::int64_t factor) const {
  return apply({Skew, {i, j}, {factor}});
}
Expected<Schedule> Schedule::unroll(const std::string& loop) const {
  return apply({Unroll, {loop}, {}});
}
Expected<Schedule> Schedule::vectorize(const std::string& loop) const {
  return apply({Vectorize, {loop}, {}});
}
Expected<Schedule> Schedule::parallel(const std::string& loop) const {
  return apply({Parallel, {loop}, {}});
}
Expected<Schedule> Schedule::compute_at(const std::string& stage, const std::string& loop) const {
  return apply({ComputeAt, {stage, loop}, {}});
}
Expected<Schedule> Schedule::cache_read(const std::string& operand, const std::string& loop) const {
  return apply({CacheRead, {operand, loop}, {}});
}
Expected<Schedule> Schedule::cache_write(const std::string& loop) const {
  return apply({CacheWrite, {loop}, {}});
}
Expected<Schedule> Schedule::pipeline(const std::string& loop, std::int64_t rounds) const {
  return apply({Pipeline, {loop}, {rounds}});
}
Expected<Schedule> Schedule::tensorize(const std::string& stage) const {
  return apply({Tensorize, {stage}, {}});
}

std::uint64_t Schedule::hash() const {
  Hasher hasher;
  hasher.add_text(to_text(*this));
  return hasher.value();
}

}  // namespace tessera::tile
