#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tessera/expr/text.h"
#include "tessera/expr/transform.h"
#include "tessera/expr/walk.h"
#include "tessera/lower/group.h"
#include "tessera/lower/lower.h"

namespace tessera::lower {

using tile::Stage;
using tile::Stages;

namespace {

/// Reads of one tensor in an expression.
struct ReadSites {
  std::vector<std::vector<Scalar>> at = {};  // the different positions, by their text
  std::set<std::string> texts = {};
  bool in_fold = false, has_otherwise = false;
};

ReadSites reading(const Scalar& value, const std::string& tensor) {
  ReadSites result;
  std::set<std::pair<const void*, bool>> seen;
  const std::function<void(const Scalar&, bool)> walk = [&](const Scalar& s, bool in_fold) {
    if (!seen.insert({s.id(), in_fold}).second) return;
    if (const auto* read = std::get_if<node::Read>(&s.node());
        read != nullptr && read->operand == tensor) {
      std::string text;
      for (const Scalar& index : read->at) text += to_text(index) + ", ";
      if (result.texts.insert(text).second) result.at.push_back(read->at);
      result.in_fold = result.in_fold || in_fold;
      result.has_otherwise = result.has_otherwise || read->otherwise != nullptr;
    }
    const bool inside = in_fold || std::holds_alternative<node::Component>(s.node());
    for_each_part(s, [&](const Scalar& part) { walk(part, inside); });
  };
  walk(value, false);
  return result;
}

bool reads(const Stage& stage, const std::string& tensor) {
  return !reading(stage.output.value, tensor).at.empty();
}

/// Value after a round trip through the storage dtype. `wide`: numbers are computed in f64.
Scalar as_stored(DType dtype, const Scalar& value, bool wide) {
  const bool is_kept = (dtype == DType::F32 && !wide) || dtype == DType::F64 ||
                       dtype == DType::Bool || dtype == DType::I64 || dtype == DType::U64;
  return is_kept ? value : cast(dtype, value);
}

/// Positions of the parts of a merged axis at this position.
void place(const MergedAxis& merged, Scalar at,
           std::map<std::string, Scalar, std::less<>>& places) {
  for (std::size_t i = merged.parts.size(); i-- > 0;) {
    const Axis& part = merged.parts[i];
    const Dim size = part.size();
    if (size.is(1)) {
      places.insert_or_assign(part.name, Scalar(0));
    } else if (i == 0 || std::ranges::all_of(merged.parts.begin(),
                                             merged.parts.begin() + static_cast<std::ptrdiff_t>(i),
                                             [](const Axis& a) { return a.size().is(1); })) {
      places.insert_or_assign(part.name, at);
    } else {
      places.insert_or_assign(part.name, mod(at, Scalar(size)));
      at = floor_div(at, Scalar(size));
    }
  }
}

/// Puts stages into others, giving new names to the axes of folds that come in several times.
class Inliner {
 public:
  explicit Inliner(bool wide) : wide_(wide) {}

  /// The stage with what it reads of `from` put in its place.
  Stage without_fold(Stage into, const Stage& from) {
    std::map<std::string, Scalar> made;  // by position: what is read twice is computed once
    Transform transform;
    transform.read = [&](const node::Read& read) -> std::optional<Scalar> {
      if (read.operand != from.name()) return std::nullopt;
      std::string text;
      for (const Scalar& index : read.at) text += to_text(index) + ", ";
      if (const auto it = made.find(text); it != made.end()) return it->second;
      std::map<std::string, Scalar, std::less<>> places;
      for (std::size_t i = 0; i < read.at.size(); ++i)
        place(from.output.axes[i], read.at[i], places);
      return made.emplace(text, value_at(from, places)).first->second;
    };
    into.output.value = transform(into.output.value);
    merge_operands(into, from);
    return into;
  }

  /// The same where `from` has a fold and is read at the positions of `into`, whose axes are then
  /// those of `from`.
  std::optional<Stage> with_fold(Stage into, const Stage& from) {
    const ReadSites how = reading(into.output.value, from.name());
    if (how.at.size() != 1 || how.in_fold || how.has_otherwise) return std::nullopt;
    std::map<std::string, MergedAxis, std::less<>> axis_of;  // of `into`, as it is called in `from`
    for (std::size_t i = 0; i < how.at[0].size(); ++i) {
      const MergedAxis& merged = from.output.axes[i];
      if (Dim(merged).is(1)) continue;
      const auto* index = std::get_if<node::Index>(&how.at[0][i].node());
      if (index == nullptr || !axis_of.emplace(index->axis, merged).second) return std::nullopt;
    }
    std::vector<MergedAxis> axes;
    std::map<std::string, Scalar, std::less<>> places;
    for (const MergedAxis& merged : into.output.axes) {
      MergedAxis& made = axes.emplace_back();
      for (const Axis& part : merged.parts) {
        const auto it = axis_of.find(part.name);
        if (it == axis_of.end()) {
          if (!part.size().is(1)) return std::nullopt;  // `from` would be computed again
          made.parts.push_back(part);
          continue;
        }
        if (Dim(it->second) != part.size()) return std::nullopt;  // a part of it is read
        places.insert_or_assign(part.name, Scalar(it->second));
        made.parts.insert(made.parts.end(), it->second.parts.begin(), it->second.parts.end());
      }
    }
    std::map<std::string, Scalar, std::less<>> ones;  // axes that hold one position
    for (const MergedAxis& merged : from.output.axes)
      if (Dim(merged).is(1))
        for (const Axis& part : merged.parts) ones.insert_or_assign(part.name, Scalar(0));
    std::optional<Scalar> value;
    Transform transform;
    transform.index = [&](const std::string& axis) -> std::optional<Scalar> {
      const auto it = places.find(axis);
      if (it == places.end()) return std::nullopt;
      return it->second;
    };
    transform.read = [&](const node::Read& read) -> std::optional<Scalar> {
      if (read.operand != from.name()) return std::nullopt;
      if (!value) value = value_at(from, ones);
      return value;
    };
    into.output.value = transform(into.output.value);
    into.output.axes = std::move(axes);
    merge_operands(into, from);
    return into;
  }

 private:
  Scalar value_at(const Stage& stage, const std::map<std::string, Scalar, std::less<>>& places) {
    const int copy = copies_[stage.name()]++;
    Transform transform;
    transform.index = [&](const std::string& axis) -> std::optional<Scalar> {
      const auto it = places.find(axis);
      if (it == places.end()) return std::nullopt;
      return it->second;
    };
    if (copy > 0)
      transform.bound = [&](const std::string& axis) { return fmt::format("{}_{}", axis, copy); };
    return as_stored(stage.output.dtype, transform(stage.output.value), wide_);
  }

  static void merge_operands(Stage& into, const Stage& from) {
    std::erase_if(into.operands, [&](const Operand& o) { return o.name == from.name(); });
    for (const Operand& operand : from.operands)
      if (std::ranges::find(into.operands, operand.name, &Operand::name) == into.operands.end())
        into.operands.push_back(operand);
  }

  std::map<std::string, int, std::less<>> copies_;
  bool wide_;
};

}  // namespace

Expected<Stages> inlined(Stages stages, const std::vector<std::string>& results) {
  Inliner inliner(std::ranges::any_of(stages, is_wide));
  const auto is_result = [&](const std::string& name) {
    return std::ranges::find(results, name) != results.end();
  };
  for (std::size_t i = 0; i < stages.size();) {
    const Stage from = stages[i];
    std::vector<std::size_t> readers;
    for (std::size_t j = i + 1; j < stages.size(); ++j)
      if (reads(stages[j], from.name())) readers.push_back(j);
    const bool folds = has_fold(from.output.value);
    const bool guarded = std::ranges::any_of(readers, [&](std::size_t j) {
      return reading(stages[j].output.value, from.name()).has_otherwise;
    });
    if (from.output.forward || guarded || readers.empty()) {
      ++i;
      continue;
    }
    bool gone = false;
    if (!folds) {
      for (const std::size_t j : readers) stages[j] = inliner.without_fold(stages[j], from);
      gone = true;
    } else if (readers.size() == 1 && !is_result(from.name()) &&
               !has_fold(stages[readers[0]].output.value)) {
      if (auto made = inliner.with_fold(stages[readers[0]], from)) {
        stages[readers[0]] = *std::move(made);
        gone = true;
      }
    }
    if (gone && !is_result(from.name())) {
      // One that had several readers may have one now.
      stages.erase(stages.begin() + static_cast<std::ptrdiff_t>(i));
      i = 0;
    } else {
      ++i;
    }
  }
  return stages;
}

Expected<Stages> reordered(Stages stages, const std::string& tensor,
                           const std::vector<int>& order) {
  const auto permuted = [&](const auto& list) {
    auto result = list;
    for (std::size_t i = 0; i < order.size(); ++i)
      result[i] = list[static_cast<std::size_t>(order[i])];
    return result;
  };
  for (Stage& stage : stages) {
    bool is_read = false;
    for (Operand& operand : stage.operands)
      if (operand.name == tensor) {
        if (operand.shape.size() != order.size())
          return Diagnostic{.id = "schedule-stage",
                            .message = fmt::format("{} has {} axes, not {}", tensor,
                                                   operand.shape.size(), order.size())};
        operand.shape = permuted(operand.shape);
        is_read = true;
      }
    if (is_read) {
      Transform transform;
      transform.read = [&](const node::Read& read) -> std::optional<Scalar> {
        if (read.operand != tensor) return std::nullopt;
        return Scalar(Node(node::Read{read.operand, read.sort, permuted(read.at), read.otherwise}));
      };
      stage.output.value = transform(stage.output.value);
    }
    if (stage.name() == tensor && stage.output.axes.size() == order.size())
      stage.output.axes = permuted(stage.output.axes);
  }
  return stages;
}

}  // namespace tessera::lower
