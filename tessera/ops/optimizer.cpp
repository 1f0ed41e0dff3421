#include "tessera/ops/composite.h"

// Optimizer steps of training. Inputs: learning rate, number of updates so far, then the
// parameters, their gradients and the optimizer state tensors of each kind; outputs: the new
// parameters, then the new state tensors of each kind.

namespace tessera::define {
namespace {

/// One parameter with its gradient and optimizer state.
struct TrainedParameter {
  Val rate, updates, x, gradient;
  Vals kept;

  /// Selects `then` after the first update, `otherwise` before it.
  Val after_first(const Val& then, const Val& otherwise) const {
    Body& b = x.body();
    const Val later = b.op("greater", {updates, b.number(0, updates.dtype())});
    return b.op("where", {later, then, otherwise});
  }
};

using Train = std::function<Vals(Body&, const Attrs&, const TrainedParameter&)>;
OpDef optimizer(std::string name, std::string summary, std::size_t kinds,
                std::vector<AttrSpec> attrs, Train train) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .inputs = {"rate", "updates", "tensors*"},
          .outputs = {"out*"},
          .attrs = std::move(attrs),
          .expand = [kinds, train = std::move(train)](Body& b, const Attrs& given,
                                                      const Vals& in) -> Expected<Vals> {
            const std::size_t tensors = in.size() - 2, count = tensors / (kinds + 2);
            if (count == 0 || tensors % (kinds + 2) != 0)
              return bad_operands(
                  fmt::format("there are {} tensors", tensors),
                  fmt::format("their number has to be a multiple of {}", kinds + 2));
            Vals results((kinds + 1) * count);
            for (std::size_t i = 0; i < count; ++i) {
              const auto tensor = [&](std::size_t kind) { return in[2 + kind * count + i]; };
              const Val x = tensor(0);
              TrainedParameter trained{converted(in[0], x.dtype()),
                                       in[1],
                                       x,
                                       x * given.f("norm_coefficient") + tensor(1),
                                       {}};
              for (std::size_t kind = 0; kind < kinds; ++kind)
                trained.kept.push_back(tensor(2 + kind));
              const Vals news = train(b, given, trained);
              for (std::size_t kind = 0; kind <= kinds; ++kind)
                results[kind * count + i] = news[kind];
            }
            return results;
          }};
}

}  // namespace

OpDef adagrad() {
  return optimizer("adagrad", "a step of Adagrad, which keeps the sum of squared gradients", 1,
                   {{"decay_factor", 0.0}, {"epsilon", 1e-6}, {"norm_coefficient", 0.0}},
                   [](Body& b, const Attrs& attrs, const TrainedParameter& t) -> Vals {
                     const Val updates = converted(t.updates, t.x.dtype());
                     const Val rate = t.rate / (updates * attrs.f("decay_factor") + 1.0);
                     const Val squares = t.kept[0] + t.gradient * t.gradient;
                     const Val adapted = b.op("sqrt", {squares}) + attrs.f("epsilon");
                     return {t.x - rate * t.gradient / adapted, squares};
                   });
}

OpDef adam() {
  return optimizer(
      "adam", "a step of Adam, which keeps running means of gradients and of their squares", 2,
      {{"alpha", 0.9},
       {"beta", 0.999},
       {"epsilon", 1e-6},
       {"norm_coefficient", 0.0},
       {"norm_coefficient_post", 0.0}},
      [](Body& b, const Attrs& attrs, const TrainedParameter& t) -> Vals {
        const double alpha = attrs.f("alpha"), beta = attrs.f("beta");
        const Val mean = t.kept[0] * alpha + t.gradient * (1 - alpha);
        const Val squares = t.kept[1] * beta + t.gradient * t.gradient * (1 - beta);
        // 1 - beta^T cancels for small T, so the correction is computed in double precision.
        const Val updates = converted(t.updates, DType::F64);
        const auto one_minus_power = [&](double base) {
          return 1.0 - b.op("pow", {b.number(base, DType::F64), updates});
        };
        const Val correction = b.op("sqrt", {one_minus_power(beta)}) / one_minus_power(alpha);
        const Val rate = t.after_first(t.rate * converted(correction, t.x.dtype()), t.rate);
        const Val adapted = b.op("sqrt", {squares}) + attrs.f("epsilon");
        const Val x = t.x - rate * mean / adapted;
        return {x * (1 - attrs.f("norm_coefficient_post")), mean, squares};
      });
}

OpDef momentum() {
  OpDef op = optimizer(
      "momentum", "a step of stochastic gradient descent with momentum, standard or Nesterov's", 1,
      {required_attr("alpha", 0.0), required_attr("beta", 0.0), required_attr("mode", "standard"),
       required_attr("norm_coefficient", 0.0)},
      [](Body& b, const Attrs& attrs, const TrainedParameter& t) -> Vals {
        const double alpha = attrs.f("alpha");
        const Val beta =
            t.after_first(b.number(attrs.f("beta"), t.x.dtype()), b.number(1, t.x.dtype()));
        const Val velocity = t.kept[0] * alpha + beta * t.gradient;
        const bool standard = attrs.s("mode") == "standard";
        return {t.x - t.rate * (standard ? velocity : t.gradient + velocity * alpha), velocity};
      });
  op.expand = [expand = std::move(op.expand)](Body& b, const Attrs& attrs,
                                              const Vals& in) -> Expected<Vals> {
    TESSERA_TRY_DONE(check_word(attrs, "mode", {"standard", "nesterov"}));
    return expand(b, attrs, in);
  };
  return op;
}

}  // namespace tessera::define
