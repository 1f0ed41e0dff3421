#include "tessera/ops/composite.h"

namespace tessera::define {
namespace {

/// -weight[target] * log_prob[n, target, …], reduced.
Expected<Val> negative_log_likelihood(Body& b, const Attrs& attrs, const Vals& in) {
  const Val& input = in[0];
  if (input.rank() < 2 || in[1].rank() != input.rank() - 1)
    return bad_operands(
        fmt::format("the input has {} axes, the target {}", input.rank(), in[1].rank()),
        "the input has to have a channel axis that the target does not have");
  TESSERA_TRY_DONE(check_word(attrs, "reduction", {"none", "sum", "mean"}));
  const bool weighted = given(in, 2);
  if (weighted) TESSERA_TRY_DONE(check_rank(in[2], "weight", 1));

  Val target = in[1], ignored;
  if (attrs.has("ignore_index")) {
    const auto number = [&](std::int64_t value) {
      return converted(b.ints({value}), in[1].dtype());
    };
    ignored = b.op("equal", {target, number(attrs.i("ignore_index"))});
    target = b.op("where", {ignored, number(0), target});  // any channel will do
  }
  const auto without_ignored = [&](const Val& value) {
    if (!ignored.present()) return value;
    return b.op("where", {ignored, b.number(0, input.dtype()), value});
  };

  const Val taken = b.op("gather_elements", {input, unsqueezed(target, {1})}, {{"axis", 1}});
  Val loss = without_ignored(-b.op("squeeze", {taken, b.ints({1})}));
  Val weight;
  if (weighted) {
    weight = without_ignored(b.op("gather", {in[2], target}, {{"axis", 0}}));
    loss = loss * weight;
  } else if (ignored.present()) {
    weight = converted(b.op("logical_not", {ignored}), input.dtype());
  }

  const std::string& reduction = attrs.s("reduction");
  if (reduction == "none") return loss;
  const auto total = [&](const char* op, const Val& x) { return b.op(op, {x}, {{"keepdims", 0}}); };
  if (reduction == "sum") return total("reduce_sum", loss);
  if (!weight.present()) return total("reduce_mean", loss);
  return total("reduce_sum", loss) / total("reduce_sum", weight);
}

std::vector<AttrSpec> loss_attrs() {
  return {optional_attr("ignore_index", 0), {"reduction", "mean"}};
}

}  // namespace

OpDef negative_log_likelihood_loss() {
  return {
      .name = "negative_log_likelihood_loss",
      .summary = "-weight[target] * input[n, target, …]: each, their sum or their weighted mean",
      .inputs = {"input", "target", "weight?"},
      .attrs = loss_attrs(),
      .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
        TESSERA_TRY(const Val loss, negative_log_likelihood(b, attrs, in));
        return Vals{loss};
      }};
}

OpDef softmax_cross_entropy_loss() {
  return {.name = "softmax_cross_entropy_loss",
          .summary = "the negative log likelihood loss of log_softmax(scores)",
          .inputs = {"scores", "labels", "weights?"},
          .outputs = {"out", "log_prob"},
          .attrs = loss_attrs(),
          .expand = [](Body& b, const Attrs& attrs, const Vals& in) -> Expected<Vals> {
            Vals inner = in;
            inner[0] = b.op("log_softmax", {in[0]}, {{"axis", 1}});
            TESSERA_TRY(const Val loss, negative_log_likelihood(b, attrs, inner));
            return Vals{loss, inner[0]};
          }};
}

}  // namespace tessera::define
