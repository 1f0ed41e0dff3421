#include "tessera/rules/region.h"

#include <algorithm>
#include <limits>

#include "tessera/ir/builder.h"
#include "tessera/ir/literal.h"
#include "tessera/ir/text.h"
#include "tessera/ops/composite.h"
#include "tessera/ops/operators.h"

namespace tessera::rules {
namespace {

constexpr std::int64_t kToTheEnd = std::numeric_limits<std::int64_t>::max();

Diagnostic wrong_region(std::string message, std::string note = {}) {
  return {.id = "rule-region", .message = std::move(message), .note = std::move(note)};
}

/// Half the sum of multiples of two sizes of inputs and a number.
struct SizeCombination {
  struct Multiple {
    std::size_t size = 0;
    std::int64_t factor = 0;
  };
  std::vector<Multiple> multiples = {};
  std::int64_t constant = 0;
};

/// Writes the corrected graph.
class Corrector {
 public:
  explicit Corrector(const Graph& source) {
    for (const ValueId id : source.inputs())
      inputs_.push_back(
          out_.input(source.is_named(id) ? source.name(id) : "", {.type = source.type(id)}));
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      for (int axis = 0; axis < inputs_[i].rank(); ++axis)
        if (!inputs_[i].dim(axis).constant()) sizes_.push_back({i, axis});
  }

  Expected<Graph> made(const Graph& source, const Graph& mutant, const Region& wrong) {
    const Vals original = out_.inlined(source, inputs_);
    Vals results = out_.inlined(mutant, inputs_);
    if (out_.failed()) return *out_.error();
    for (const Box& box : wrong) {
      if (box.output >= results.size() || results.size() != original.size())
        return wrong_region(fmt::format("there is no output {}", box.output));
      TESSERA_TRY(results[box.output], with_box(results[box.output], original[box.output], box));
    }
    return out_.finish(results);
  }

 private:
  struct InputSize {
    std::size_t input = 0;
    int axis = 0;
  };

  /// The result with the box taken from the original.
  Expected<Val> with_box(const Val& result, const Val& original, const Box& box) {
    if (out_.failed()) return *out_.error();
    if (static_cast<int>(box.axes.size()) != result.rank())
      return wrong_region(fmt::format("{} has {} axes", to_text(box), box.axes.size()),
                          fmt::format("output {} has {}", box.output, result.rank()));
    Vals begins, ends, starts;
    Ints axes;
    for (std::size_t axis = 0; axis < box.axes.size(); ++axis) {
      if (!box.axes[axis]) {
        starts.push_back(out_.ints({0}));
        continue;
      }
      TESSERA_TRY(const Val begin, size_value(box.axes[axis]->begin));
      TESSERA_TRY(const Val end, size_value(box.axes[axis]->end));
      begins.push_back(begin);
      starts.push_back(begin);
      ends.push_back(end);
      axes.push_back(static_cast<std::int64_t>(axis));
    }
    if (axes.empty()) return original;
    const Val piece = out_.op(*op::slice, {original, list(begins), list(ends), out_.ints(axes)});
    return out_.op(*op::update_slice, {result, piece, list(starts)});
  }

  Val list(const Vals& parts) { return parts.size() == 1 ? parts[0] : joined(parts, 0); }

  /// A size as a list of one number, computed from the sizes of inputs.
  Expected<Val> size_value(const Dim& size) {
    if (const auto number = size.constant()) return out_.ints({*number});
    const std::vector<Dim::Operation> operations = size.operations();
    if (!operations.empty() && operations[0].whole == size && operations[0].op == Dim::Op::Max) {
      TESSERA_TRY(const Val a, size_value(operations[0].a));
      TESSERA_TRY(const Val b, size_value(operations[0].b));
      return out_.op(*op::max, {a, b});
    }
    const std::optional<SizeCombination> sum = combination(size);
    if (!sum)
      return wrong_region(
          fmt::format("{} does not follow from the sizes of inputs", size.to_string()),
          "a border is half a sum of multiples of at most two sizes of inputs and a number");
    bool halves = sum->constant % 2 != 0;
    for (const SizeCombination::Multiple& part : sum->multiples)
      halves = halves || part.factor % 2 != 0;
    const std::int64_t scale = halves ? 1 : 2;
    std::optional<Val> total;
    for (const SizeCombination::Multiple& part : sum->multiples) {
      if (part.factor == 0) continue;
      const InputSize& from = sizes_[part.size];
      const Val one = sizes_of(inputs_[from.input], from.axis, from.axis + 1);
      const std::int64_t factor = part.factor / scale;
      const Val multiple = factor == 1 ? one : out_.op(*op::mul, {one, out_.ints({factor})});
      total = total ? *total + multiple : multiple;
    }
    const std::int64_t constant = sum->constant / scale;
    if (constant != 0) total = *total + out_.ints({constant});
    return halves ? *total / out_.ints({2}) : *total;
  }

  std::optional<SizeCombination> combination(const Dim& size) const {
    constexpr std::int64_t kMostTimes = 4;  // of a half
    const Dim twice = size * 2;
    for (std::size_t a = 0; a < sizes_.size(); ++a)
      for (std::int64_t times = -kMostTimes; times <= kMostTimes; ++times) {
        const Dim rest = twice - dim(a) * times;
        if (const auto constant = rest.constant()) return SizeCombination{{{a, times}}, *constant};
      }
    for (std::size_t a = 0; a < sizes_.size(); ++a)
      for (std::size_t b = a + 1; b < sizes_.size(); ++b) {
        if (!may_cancel(twice, dim(a), dim(b))) continue;
        for (std::int64_t first = -kMostTimes; first <= kMostTimes; ++first)
          for (std::int64_t second = -kMostTimes; second <= kMostTimes; ++second) {
            const Dim rest = twice - dim(a) * first - dim(b) * second;
            if (const auto constant = rest.constant())
              return SizeCombination{{{a, first}, {b, second}}, *constant};
          }
      }
    return std::nullopt;
  }

  /// Whether a combination of all three sizes may be a constant: a symbol of one of them has to be
  /// cancelled by another.
  static bool may_cancel(const Dim& x, const Dim& y, const Dim& z) {
    const auto covered = [](const Dim& size, const Dim& by, const Dim& or_by) {
      return !size.any_symbol(
          [&](std::string_view symbol) { return !by.contains(symbol) && !or_by.contains(symbol); });
    };
    return covered(x, y, z) && covered(y, x, z) && covered(z, x, y);
  }

  const Dim& dim(std::size_t size) const {
    return inputs_[sizes_[size].input].dim(sizes_[size].axis);
  }

  GraphBuilder out_;
  Vals inputs_;
  std::vector<InputSize> sizes_;
};

}  // namespace

std::string to_text(const Box& box) {
  std::string text = box.output == 0 ? "[" : fmt::format("{}[", box.output);
  for (std::size_t axis = 0; axis < box.axes.size(); ++axis) {
    if (axis > 0) text += ", ";
    const auto& interval = box.axes[axis];
    text += interval ? interval->begin.to_string() + " : " + interval->end.to_string() : "_";
  }
  return text + "]";
}

std::string to_text(const Region& region) {
  std::string text;
  for (const Box& box : region) text += (text.empty() ? "" : ", ") + to_text(box);
  return text;
}

Expected<Box> parse_box(Lexer& lexer) {
  Box box;
  if (!lexer.at("[")) {
    TESSERA_TRY(const double output, lexer.number("the number of an output, or ["));
    if (!(output >= 0 && output < 1e6)) return lexer.expected("the number of an output");
    box.output = static_cast<std::size_t>(output);
  }
  TESSERA_TRY_DONE(lexer.expect("["));
  while (!lexer.accept("]")) {
    if (lexer.accept("_")) {
      box.axes.emplace_back();
    } else {
      Interval interval;
      TESSERA_TRY(interval.begin, parse_size(lexer));
      TESSERA_TRY_DONE(lexer.expect(":"));
      TESSERA_TRY(interval.end, parse_size(lexer));
      box.axes.emplace_back(std::move(interval));
    }
    if (!lexer.at("]")) TESSERA_TRY_DONE(lexer.expect(","));
  }
  return box;
}

std::string in_words(const Box& box) {
  std::string text;
  for (std::size_t axis = 0; axis < box.axes.size(); ++axis)
    if (const auto& interval = box.axes[axis])
      text += fmt::format("{}{} <= axis {} < {}", text.empty() ? " where " : " and ",
                          interval->begin.to_string(), axis, interval->end.to_string());
  return fmt::format("output {}{}", box.output, text.empty() ? " everywhere" : text);
}

std::string in_words(const Region& region) {
  std::string text;
  for (const Box& box : region) text += (text.empty() ? "" : "; ") + in_words(box);
  return text;
}

Expected<Graph> corrected(const Graph& source, const Graph& mutant, const Region& wrong) {
  if (source.inputs().size() != mutant.inputs().size())
    return wrong_region("the two graphs do not have the same inputs");
  return Corrector(source).made(source, mutant, wrong);
}

Expected<double> share_of(const Region& region, const Graph& source, const SizeValues& sizes) {
  double inside = 0, all = 0;
  const auto number = [&](const Dim& dim) -> Expected<double> {
    const Dim value = dim.substituted([&](std::string_view name) -> std::optional<Dim> {
      const auto it = sizes.find(name);
      return it == sizes.end() ? std::nullopt : std::optional(Dim(it->second));
    });
    if (const auto constant = value.constant()) return static_cast<double>(*constant);
    return wrong_region(fmt::format("the size {} is not known", value.to_string()));
  };
  for (std::size_t output = 0; output < source.outputs().size(); ++output) {
    const Shape shape = source.type(source.outputs()[output]).shape.value_or(Shape{});
    std::vector<double> extents;
    double elements = 1;
    for (const Dim& dim : shape) {
      TESSERA_TRY(extents.emplace_back(), number(dim));
      elements *= extents.back();
    }
    all += elements;
    for (const Box& box : region) {
      if (box.output != output || box.axes.size() != shape.size()) continue;
      double part = 1;
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (!box.axes[axis]) {
          part *= extents[axis];
          continue;
        }
        TESSERA_TRY(const double begin, number(box.axes[axis]->begin));
        TESSERA_TRY(const double end, number(box.axes[axis]->end));
        part *= std::max(0.0, std::min(end, extents[axis]) - std::max(begin, 0.0));
      }
      inside += part;
    }
  }
  return all == 0 ? 0.0 : inside / all;
}

}  // namespace tessera::rules
