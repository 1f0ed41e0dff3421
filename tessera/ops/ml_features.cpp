#include <cmath>
#include <limits>

#include "tessera/ops/families.h"
#include "tessera/ops/ml_scores.h"

// Operators of ai.onnx.ml that prepare features.

namespace tessera::define {
namespace {

/// A list of one number, or one for each feature along the last axis.
Expected<Done> check_per_feature(const Val& x, std::string_view name, std::size_t count) {
  if (count == 1) return Done{};
  const Dim features = x.rank() == 0 ? Dim(1) : x.dim(x.rank() - 1);
  if (count != 0 && (!features.constant() || features.is(static_cast<std::int64_t>(count))))
    return Done{};
  return bad_operands(fmt::format("{} has {} entries", name, count),
                      fmt::format("there have to be 1 or {}", features.to_string()));
}

}  // namespace

OpDef ml_binarizer() {
  return elementwise("ml_binarizer", "1 where x is above threshold, else 0", {{"threshold", 0.0}},
                     [](const Attrs& attrs, const Scalar& x) {
                       const double threshold = attrs.f("threshold");
                       const auto above = [&]() -> Scalar {
                         if (x.sort() == Sort::Value) return x > threshold;
                         // Of integers, those above the largest one that is not.
                         if (!(threshold < 0x1p63)) return truth(false);
                         if (threshold < -0x1p63) return truth(true);
                         return x > Scalar(static_cast<std::int64_t>(std::floor(threshold)));
                       };
                       return select(above(), like(x, 1), like(x, 0));
                     });
}

OpDef ml_scaler() {
  return {.name = "ml_scaler",
          .summary = "(x - offset) * scale, for all features or each",
          .inputs = {"x"},
          .attrs = {{"offset", Floats{}}, {"scale", Floats{}}},
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            const DType dtype = in[0].dtype() == DType::F64 ? DType::F64 : DType::F32;
            Val x = converted(in[0], dtype);
            for (const auto& [name, op] : {std::pair{"offset", "sub"}, std::pair{"scale", "mul"}}) {
              const Floats& list = attrs.floats(name);
              if (list.empty()) continue;
              TESSERA_TRY_DONE(check_per_feature(x, name, list.size()));
              const Val numbers = float_constant(b, {std::ssize(list)}, list);
              x = b.op(op, {x, converted(numbers, dtype)});
            }
            return Vals{converted(x, DType::F32)};
          }};
}

OpDef ml_normalizer() {
  return {
      .name = "ml_normalizer",
      .summary = "each row divided by its maximum, its sum of magnitudes or its length",
      .inputs = {"x"},
      .attrs = {{"norm", "MAX"}},
      .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
        TESSERA_TRY_DONE(check_word(attrs, "norm", {"MAX", "L1", "L2"}));
        if (in[0].rank() != 1 && in[0].rank() != 2)
          return bad_operands(fmt::format("x has {} axes", in[0].rank()), "it has to have 1 or 2");
        const Val x = converted(in[0], DType::F32);
        const auto number = [&](double value) { return b.number(value, DType::F32); };
        const std::string& norm = attrs.s("norm");
        Val divisor;
        if (norm == "MAX") {
          // NaN entries are ignored.
          const double lowest = std::numeric_limits<float>::lowest();
          divisor =
              reduced("reduce_max", b.op("where", {b.op("is_nan", {x}), number(lowest), x}), {-1});
        } else {
          divisor = reduced(norm == "L1" ? "reduce_l1" : "reduce_l2", x, {-1});
        }
        const Val zero = b.op("equal", {divisor, number(0)});
        return Vals{x / b.op("where", {zero, number(1), divisor})};
      }};
}

OpDef ml_imputer() {
  return {.name = "ml_imputer",
          .summary = "x with one value replaced by another, for all features or each",
          .inputs = {"x"},
          .attrs = {{"imputed_value_floats", Floats{}},
                    {"imputed_value_int64s", Ints{}},
                    {"replaced_value_float", 0.0},
                    {"replaced_value_int64", 0}},
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            const Val& x = in[0];
            if (is_float(x.dtype())) {
              const Floats& list = attrs.floats("imputed_value_floats");
              TESSERA_TRY_DONE(check_per_feature(x, "imputed_value_floats", list.size()));
              const double replaced = attrs.f("replaced_value_float");
              const Val found = std::isnan(replaced)
                                    ? b.op("is_nan", {x})
                                    : b.op("equal", {x, b.number(replaced, x.dtype())});
              const Val values = float_constant(b, {std::ssize(list)}, list);
              return Vals{b.op("where", {found, converted(values, x.dtype()), x})};
            }
            TESSERA_TRY_DONE(check_domain(Domain::Integers, x.dtype()));
            const Ints& list = attrs.ints("imputed_value_int64s");
            TESSERA_TRY_DONE(check_per_feature(x, "imputed_value_int64s", list.size()));
            // Compared in 64 bits, which a value out of range of the dtype does not fit.
            const Val replaced = b.ints({attrs.i("replaced_value_int64")});
            const Val found = b.op("equal", {converted(x, DType::I64), replaced});
            return Vals{b.op("where", {found, converted(b.ints(list), x.dtype()), x})};
          }};
}

OpDef ml_array_feature_extractor() {
  return {.name = "ml_array_feature_extractor",
          .summary = "elements along the last axis; a list is one row",
          .inputs = {"x", "indices"},
          .expand = [](Body& b, const Attrs&, const Vals& in) -> Expected<Vals> {
            if (in[0].rank() == 0) return bad_operands("x has no axes", "it needs at least one");
            const Val x = in[0].rank() == 1 ? unsqueezed(in[0], {0}) : in[0];
            const Val indices = reshaped(in[1], {-1});
            return Vals{b.op("gather", {x, indices}, {{"axis", -1}})};
          }};
}

OpDef ml_feature_vectorizer() {
  return {.name = "ml_feature_vectorizer",
          .summary = "the rows of all inputs side by side, each cut or padded to its size",
          .inputs = {"x+"},
          .attrs = {{"inputdimensions", Ints{}}},
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            const Ints& sizes = attrs.ints("inputdimensions");
            if (!sizes.empty() && sizes.size() != in.size())
              return bad_operands(fmt::format("inputdimensions has {} entries", sizes.size()),
                                  fmt::format("there are {} inputs", in.size()));
            Vals parts;
            for (std::size_t i = 0; i < in.size(); ++i) {
              TESSERA_TRY(Val x, feature_rows(in[i]));
              if (!sizes.empty()) {
                const auto have = x.dim(1).constant();
                if (!have) return needs_value("shape");
                if (sizes[i] < 0) return bad_operands("inputdimensions has a negative entry");
                if (sizes[i] < *have) x = sliced(x, 1, 0, sizes[i]);
                if (sizes[i] > *have)
                  x = joined(
                      {x, filled(0, DType::F32, {sizes_of(x, 0, 1), b.ints({sizes[i] - *have})})},
                      1);
              }
              parts.push_back(x);
            }
            return Vals{joined(parts, 1)};
          }};
}

}  // namespace tessera::define
