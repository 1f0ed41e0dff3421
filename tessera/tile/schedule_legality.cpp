#include "tessera/tile/schedule_legality.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/expr/walk.h"
#include "tessera/tile/verify.h"

namespace tessera::tile {
namespace {

constexpr std::size_t kMostLoops = 64;

/// Whether the positions of a read are fixed where the loop begins: inner loops that are not
/// vectorized are ignored.
Expected<Done> check_read(const Nest& nest, const Loop& loop, const std::vector<Scalar>& at,
                          const std::string& what) {
  for (const Scalar& index : at)
    for (const std::string& name : loops_of(nest, index)) {
      const Loop* inner = nest.find(name);
      if (inner == nullptr)
        return illegal(
            fmt::format("{} is read at positions that a fold within runs through", what));
      if (inner->kind != Loop::Kind::Vector && inner > &loop)
        return illegal(fmt::format("{} is read at positions that vary with loop {}", what, name),
                       fmt::format("it lies inside of loop {}", loop.name));
    }
  return Done{};
}

/// Whether the vectorized loops of a tensorized nest are the axes of a matrix multiplication.
Expected<Done> check_contraction(const Schedule& schedule, const Nest& nest) {
  const auto fold = main_fold(stage_of(schedule, nest));
  const auto product = fold == nullptr ? std::nullopt : product_of(*fold);
  if (!product)
    return illegal(fmt::format("stage {} is no product of matrices", nest.stage),
                   "that is a sum of products of two numbers");
  const std::vector<std::string> left = loops_of(nest, product->first),
                                 right = loops_of(nest, product->second);
  bool sums = false;
  for (const Loop& loop : nest.loops) {
    if (loop.kind != Loop::Kind::Vector) continue;
    const bool in_left = std::ranges::count(left, loop.name) > 0,
               in_right = std::ranges::count(right, loop.name) > 0;
    sums = sums || loop.reduces;
    if (loop.reduces && !(in_left && in_right))
      return illegal(fmt::format("the factors do not both vary with loop {}", loop.name),
                     "the sum of a product of matrices runs through both");
    if (!loop.reduces && in_left == in_right)
      return illegal(fmt::format("{} vary with loop {}",
                                 in_left ? "both factors" : "none of the factors", loop.name),
                     "an axis of a product of matrices belongs to one of the two");
  }
  if (!sums) return illegal("no loop of the sum is a vector", "vectorize one");
  return Done{};
}

}  // namespace

Diagnostic illegal(std::string message, std::string note) {
  return {
      .id = "schedule-illegal", .message = std::move(message), .note = std::move(note), .help = {}};
}

bool commutes(const Fold& fold) {
  return fold.simple().has_value();  // sum, product, min, max, and, or
}

const Stage& stage_of(const Schedule& schedule, const Nest& nest) {
  return *std::ranges::find_if(schedule.stages(),
                               [&](const Stage& stage) { return stage.name() == nest.stage; });
}

Expected<Done> check_positions(const Schedule& schedule, const Nest& nest, const Loop& loop,
                               const std::string& tensor) {
  std::optional<Diagnostic> error;
  bool any = false;
  for_each_read(stage_of(schedule, nest).output.value, [&](const node::Read& read) {
    if (read.operand != tensor) return;
    any = true;
    if (auto done = check_read(nest, loop, read.at, tensor); !done && !error)
      error = std::move(done).error();
  });
  if (error) return *error;
  if (!any) return illegal(fmt::format("stage {} does not read {}", nest.stage, tensor));
  return Done{};
}

Expected<Done> check_nest(const Schedule& schedule, const Nest& nest) {
  if (nest.loops.size() > kMostLoops) return illegal("there are too many loops");
  const Loop* fold = nullptr;
  const Loop* other = nullptr;
  std::int64_t elements = 1;
  int vectors = 0;
  for (const Loop& loop : nest.loops) {
    if (loop.kind == Loop::Kind::Vector) {
      if (loop.extent > kMostElements / elements)
        return illegal("the tile would have too many elements",
                       fmt::format("{} are the most", kMostElements));
      elements *= loop.extent;
      if (++vectors > kMostAxes)
        return illegal("the tile would have too many axes",
                       fmt::format("{} are the most", kMostAxes));
      continue;
    }
    if (loop.kind != Loop::Kind::Parallel) other = &loop;
    if (loop.kind == Loop::Kind::Parallel && other != nullptr)
      return illegal(fmt::format("loop {} lies inside of loop {}, which is not parallel", loop.name,
                                 other->name));
    if (loop.reduces) fold = &loop;
    if (!loop.reduces && fold != nullptr)
      return illegal(fmt::format("loop {} of the output lies inside of loop {} of the fold",
                                 loop.name, fold->name),
                     "every element would need an accumulator of its own; vectors have one");
  }
  for (const Nest::Place& read : nest.reads) {
    const Loop* loop = nest.find(read.loop);
    TESSERA_CHECK(loop != nullptr, "loop {} is gone", read.loop);
    TESSERA_TRY_DONE(check_positions(schedule, nest, *loop, read.what));
  }
  for (const Nest& producer : schedule.nests())
    if (producer.at && producer.at->what == nest.stage) {
      const Loop* loop = nest.find(producer.at->loop);
      TESSERA_CHECK(loop != nullptr, "loop {} is gone", producer.at->loop);
      TESSERA_TRY_DONE(check_positions(schedule, nest, *loop, producer.stage));
    }
  if (nest.write) {
    const Loop* loop = nest.find(*nest.write);
    TESSERA_CHECK(loop != nullptr, "loop {} is gone", *nest.write);
    for (const Loop* inner = loop + 1; inner < nest.loops.data() + nest.loops.size(); ++inner) {
      if (inner->reduces || inner->kind == Loop::Kind::Vector) continue;
      if (inner->kind != Loop::Kind::Unrolled)
        return illegal(fmt::format("loop {} lies inside of loop {}, where the result is stored",
                                   inner->name, loop->name),
                       "what is collected in a tile comes from vectors and unrolled loops");
      if (++vectors > kMostAxes) return illegal("the tile would have too many axes");
    }
  }
  return nest.tensorized ? check_contraction(schedule, nest) : Done{};
}

}  // namespace tessera::tile
