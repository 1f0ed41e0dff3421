#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>

#include "tessera/expr/segments.h"
#include "tessera/expr/transform.h"
#include "tessera/lower/affine.h"
#include "tessera/lower/group.h"
#include "tessera/lower/target_traits.h"
#include "tessera/tile/passes/for_grid.h"
#include "tessera/tile/passes/merge.h"

namespace tessera::lower {

using tile::Stage;

namespace {

/// The stage from `begin` to `end` along the axis, as a stage of its own.
Stage cut(const Stage& stage, const Segments& segments, std::size_t part, std::int64_t end) {
  const std::int64_t begin = segments.parts[part].begin;
  Stage made = stage;
  AxisExtents extents;
  for (MergedAxis& merged : made.output.axes)
    for (Axis& axis : merged.parts) {
      if (axis.name == segments.axis) axis.extent = Dim(end - begin);
      extents.emplace(axis.name, axis.size().constant().value_or(1));
    }
  Transform transform;
  transform.index = [&](const std::string& axis) -> std::optional<Scalar> {
    if (axis != segments.axis) return std::nullopt;
    return index_of(axis) + Scalar(begin);
  };
  // Within its segment a part reads nothing beyond its tensor.
  transform.read = [&](const node::Read& read) -> std::optional<Scalar> {
    if (read.otherwise == nullptr) return std::nullopt;
    const auto operand = std::ranges::find(stage.operands, read.operand, &Operand::name);
    std::vector<Scalar> at;
    for (std::size_t i = 0; i < read.at.size(); ++i) {
      const auto index = affine(read.at[i], extents);
      if (operand == stage.operands.end() || !index ||
          !range(*index, extents).within(operand->shape[i].constant().value_or(0)))
        return std::nullopt;
      Scalar plain = Scalar(index->base);
      for (const auto& [axis, factor] : index->terms)
        plain = plain + index_of(axis) * Scalar(factor);
      at.push_back(plain);
    }
    return Scalar(Node(node::Read{read.operand, read.sort, std::move(at), nullptr}));
  };
  made.output.value = transform(segments.parts[part].value);
  erase_unread_operands(made);
  return made;
}

/// Directs the stores of a kernel into a box of its result, at this position of the whole tensor;
/// false where the kernel does more than store elements at their own positions.
bool store_in_box(Lowered& lowered, DType dtype, const OutputBox& box) {
  const tile::ValueId result = lowered.kernel.params().back();
  tile::Type& type = lowered.kernel.values[result].type;
  const bool plain = std::ranges::none_of(lowered.kernel.ops, [&](const tile::Operation& op) {
    return std::ranges::count(op.in, result) > 0 && op.code != tile::Code::Vstore;
  });
  if (!type.is_view() || type.shape.size() != box.whole.size() || !plain) return false;
  type.strides = tile::Type::view(dtype, box.whole).strides;
  lowered.offsets.resize(lowered.arguments.size());
  for (std::size_t i = 0; i < box.start.size(); ++i)
    lowered.offsets.back() += box.start[i] * type.strides[i];
  return true;
}

/// Kernels of several parts each: launches cost more than copies of a few thousand elements.
std::vector<Lowered> merged(std::vector<Lowered> parts) {
  constexpr std::size_t kMostWords = 400;  // of arguments: 4096 bytes are allowed everywhere
  std::vector<Lowered> result;
  const auto words_of = [](const Lowered& part) {
    std::size_t words = 0;
    for (const tile::ValueId param : part.kernel.params())
      words += 1 + 2 * part.kernel.type(param).shape.size();
    return words;
  };
  for (std::size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    std::size_t words = words_of(parts[begin]);
    for (end = begin + 1; end < parts.size(); ++end)
      if (words += words_of(parts[end]); words > kMostWords) break;
    if (end == begin + 1) {
      result.push_back(std::move(parts[begin]));
      continue;
    }
    std::vector<tile::Kernel> kernels;
    std::vector<std::int64_t> programs;
    Lowered made;
    for (Lowered& part : std::span(parts).subspan(begin, end - begin)) {
      programs.push_back(part.grid[0] * part.grid[1] * part.grid[2]);
      kernels.push_back(tile::along_one_axis(part.kernel, part.grid));
      std::ranges::move(part.arguments, std::back_inserter(made.arguments));
      std::ranges::move(part.offsets, std::back_inserter(made.offsets));
    }
    made.kernel = tile::merge(kernels, programs);
    made.grid = {std::accumulate(programs.begin(), programs.end(), std::int64_t{0}), 1, 1};
    result.push_back(std::move(made));
  }
  return result;
}

}  // namespace

Expected<Attempt> lower_box(const Group& group, const machine::Machine& machine,
                            const GroupOptions& options) {
  if (group.stages.size() != 1 || group.stages[0].output.forward) return Attempt{};
  Group alone = group;
  alone.box.reset();
  TESSERA_TRY(Attempt made, lower_elementwise(alone, machine, options));
  if (!made || made->kernels.size() != 1 ||
      !store_in_box(made->kernels[0], group.stages[0].output.dtype, *group.box))
    return Attempt{};
  made->strategy = "in place";
  made->schedule.reset();
  return made;
}

Expected<Attempt> lower_copy(const Group& group, const machine::Machine& machine,
                             const GroupOptions& options) {
  if (group.stages.size() != 1 || group.stages[0].output.forward) return Attempt{};
  const Stage& stage = group.stages[0];
  const auto segments = segments_of(stage.output.value, {});
  if (!segments) return Attempt{};
  std::size_t along = stage.output.axes.size();
  tile::Extents shape;
  for (std::size_t i = 0; i < stage.output.axes.size(); ++i) {
    const MergedAxis& merged = stage.output.axes[i];
    const auto extent = Dim(merged).constant();
    if (!extent || *extent == 0) return Attempt{};
    shape.push_back(*extent);
    if (merged.parts.size() == 1 && merged.parts[0].name == segments->axis) along = i;
  }
  if (along == shape.size()) return Attempt{};

  GroupCode code{.strategy = "copy"};
  for (std::size_t i = 0; i < segments->parts.size(); ++i) {
    const std::int64_t begin = segments->parts[i].begin;
    const std::int64_t end =
        i + 1 < segments->parts.size() ? segments->parts[i + 1].begin : shape[along];
    if (begin >= end) continue;
    const Group part{.stages = {cut(stage, *segments, i, end)},
                     .results = group.results,
                     .weights = group.weights};
    TESSERA_TRY(Attempt made, lower_elementwise(part, machine, options));
    if (!made || made->kernels.size() != 1) return Attempt{};
    OutputBox box{.whole = shape, .start = tile::Extents(shape.size())};
    box.start[along] = begin;
    if (!store_in_box(made->kernels[0], stage.output.dtype, box)) return Attempt{};
    code.kernels.push_back(std::move(made->kernels[0]));
    for (Packing& packing : made->packings)
      if (std::ranges::none_of(code.packings, [&](const Packing& other) {
            return other.definition.outputs[0].name == packing.definition.outputs[0].name;
          }))
        code.packings.push_back(std::move(packing));
  }
  if (traits_of(machine).has_thread_blocks) code.kernels = merged(std::move(code.kernels));
  return Attempt(std::move(code));
}

}  // namespace tessera::lower
