#include <algorithm>

#include "tessera/expr/transform.h"
#include "tessera/lower/contraction.h"

namespace tessera::lower {
namespace {

/// The factor b in panels, over index variables of its own: [batch and panel, sums, column], with
/// the sums in groups [batch and panel, group, column, sum in the group].
Packing packing_of(const Contraction& c, const IndexAxes& batch, const tile::cpu::Panels& panels) {
  const std::int64_t group = panels.k_group, sums = count(c.sums);
  const Axis panel{"panel", Dim(ceil_div(c.column.extent, panels.columns))};
  const Axis within{"within", Dim(panels.columns)};
  const Axis outer{"outer", Dim(ceil_div(sums, group))}, inner{"inner", Dim(group)};
  std::vector<MergedAxis> axes(1);
  for (const IndexAxis& a : batch) axes[0].parts.push_back({a.name, Dim(a.extent)});
  axes[0].parts.push_back(panel);
  std::map<std::string, Scalar> position;
  position.emplace(c.column.name, Scalar(panel) * Scalar(panels.columns) + Scalar(within));
  if (group == 1) {
    MergedAxis merged;
    for (const IndexAxis& a : c.sums) merged.parts.push_back({a.name, Dim(a.extent)});
    axes.insert(axes.end(), {merged, MergedAxis{{within}}});
  } else {
    axes.insert(axes.end(), {MergedAxis{{outer}}, MergedAxis{{within}}, MergedAxis{{inner}}});
    Scalar rest = Scalar(outer) * Scalar(group) + Scalar(inner);
    for (auto a = c.sums.rbegin(); a != c.sums.rend(); ++a) {
      position.emplace(a->name, a + 1 == c.sums.rend() ? rest : mod(rest, Scalar(a->extent)));
      rest = floor_div(rest, Scalar(a->extent));
    }
  }
  Transform transform;
  transform.index = [&](const std::string& name) -> std::optional<Scalar> {
    if (const auto it = position.find(name); it != position.end()) return it->second;
    const bool is_axis = std::ranges::any_of(axes, [&](const MergedAxis& merged) {
      return std::ranges::count(merged.parts, name, &Axis::name) > 0;
    });
    if (!is_axis) return Scalar(std::int64_t{0});  // of one position
    return std::nullopt;
  };
  // The last panel, and the last group, are filled up.
  transform.read = [](const node::Read& read) -> std::optional<Scalar> {
    if (read.otherwise != nullptr) return std::nullopt;
    node::Read filled = read;
    filled.otherwise = std::make_shared<const Scalar>(
        read.sort == Sort::Value ? Scalar(0.0) : Scalar(std::int64_t{0}));
    return Scalar(Node{filled});
  };
  transform.size = [&](const Dim& size) { return resolved(size, c.stage->sizes); };
  Scalar value = transform(*c.known_b);
  if (sums % group != 0)
    value =
        select(Scalar(outer) * Scalar(group) + Scalar(inner) < Scalar(sums), value, like(value, 0));
  if (panels.dtype != DType::F32) value = cast(panels.dtype, value);
  Operand weight = *std::ranges::find(c.stage->operands, c.weight, &Operand::name);
  for (Dim& dim : weight.shape) dim = resolved(dim, c.stage->sizes);
  return {.weight = c.weight,
          .definition = {.inputs = {weight},
                         .outputs = {{.name = c.weight + ".packed",
                                      .dtype = panels.dtype,
                                      .axes = std::move(axes),
                                      .value = std::move(value)}}}};
}

/// The sums of the factor b, of bytes: [batch, column].
Packing sums_of(const Contraction& c, const IndexAxes& batch) {
  std::vector<MergedAxis> axes;
  for (const IndexAxes& part : {batch, IndexAxes{c.column}})
    for (const IndexAxis& a : part) axes.push_back({{{a.name, Dim(a.extent)}}});
  std::set<std::string> open;
  for (const MergedAxis& axis : axes) open.insert(axis.parts[0].name);
  for (const Bound& bound : c.fold->bounds) open.insert(bound.axis);
  Transform transform;
  transform.index = [&](const std::string& name) -> std::optional<Scalar> {
    if (open.contains(name)) return std::nullopt;
    return Scalar(std::int64_t{0});  // of one position
  };
  transform.size = [&](const Dim& size) { return resolved(size, c.stage->sizes); };
  Operand weight = *std::ranges::find(c.stage->operands, c.weight, &Operand::name);
  for (Dim& dim : weight.shape) dim = resolved(dim, c.stage->sizes);
  return {.weight = c.weight,
          .definition = {.inputs = {weight},
                         .outputs = {{.name = c.bytes->b_sums,
                                      .dtype = DType::I32,
                                      .axes = std::move(axes),
                                      .value = transform(sum(c.fold->bounds, *c.known_b))}}}};
}

}  // namespace

void split_weights_bf16(Contraction& c) {
  constexpr std::int64_t kStep = 64, kMost = std::int64_t{1} << 29;
  const std::int64_t products = count(c.batch) * count(c.rows) * count(c.sums) * c.column.extent;
  // A sum of several axes is cut where its steps divide it.
  if (c.bytes || c.sums.empty() || c.sums.back().extent % kStep != 0 || products > kMost) return;
  const IndexAxis part{"weights.part", 2};
  const Scalar whole = *c.known_b, rounded = cast(DType::F32, cast(DType::BF16, whole));
  c.known_b = select(index_of(part.name) < Scalar(std::int64_t{1}), whole, whole - rounded);
  c.sums.insert(c.sums.begin(), part);
}

std::vector<Packing> packings_of(const Contraction& c, const IndexAxes& batch,
                                 const tile::cpu::Panels& panels) {
  std::vector<Packing> all;
  if (!c.known_b) return all;
  all.push_back(packing_of(c, batch, panels));
  if (c.bytes && !c.bytes->b_sums.empty()) all.push_back(sums_of(c, batch));
  return all;
}

}  // namespace tessera::lower
