#include <algorithm>
#include <array>
#include <limits>

#include "tessera/ops/composite.h"

namespace tessera::define {
namespace {

/// Activation function of a cell, with its parameters if it has any.
struct Activation {
  std::string_view name;  // as ONNX spells it, in lower case
  std::string_view op;
  std::optional<double> alpha = {}, beta = {};

  Val operator()(const Val& x) const {
    if (op == "affine") return x * *alpha + *beta;
    if (op == "scaled_tanh") return x.body().op("tanh", {x * *beta}) * *alpha;
    Attrs attrs;
    if (alpha) attrs.set("alpha", *alpha);
    if (beta) attrs.set("beta", *beta);
    return x.body().op(op, {x}, attrs);
  }
};

constexpr std::array kActivations = {
    Activation{"relu", "relu"},
    Activation{"tanh", "tanh"},
    Activation{"sigmoid", "sigmoid"},
    Activation{"affine", "affine", 1.0, 0.0},
    Activation{"leakyrelu", "leaky_relu", 0.01},
    Activation{"thresholdedrelu", "thresholded_relu", 1.0},
    Activation{"scaledtanh", "scaled_tanh", 1.0, 1.0},
    Activation{"hardsigmoid", "hard_sigmoid", 0.2, 0.5},
    Activation{"elu", "elu", 1.0},
    Activation{"softsign", "softsign"},
    Activation{"softplus", "softplus"},
};

/// Activations of all directions, one direction after the other. Parameters are assigned in order
/// to the functions that have them.
Expected<std::vector<Activation>> activations(const Attrs& attrs, const Strings& usual,
                                              std::size_t directions) {
  Strings names = attrs.strings("activations");
  if (names.empty())
    for (std::size_t i = 0; i < directions; ++i)
      names.insert(names.end(), usual.begin(), usual.end());
  if (names.size() < usual.size() * directions)
    return bad_operands(fmt::format("there are {} activations", names.size()),
                        fmt::format("there have to be {}", usual.size() * directions));
  std::vector<Activation> result;
  const Floats &alphas = attrs.floats("activation_alpha"), &betas = attrs.floats("activation_beta");
  auto alpha = alphas.begin(), beta = betas.begin();
  for (std::string& name : names) {
    std::ranges::transform(name, name.begin(), [](char c) {
      return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    });
    const auto found = std::ranges::find(kActivations, name, &Activation::name);
    if (found == kActivations.end())
      return bad_operands(fmt::format("the activation {} is not known", name));
    Activation& activation = result.emplace_back(*found);
    if (activation.alpha && alpha != alphas.end()) activation.alpha = *alpha++;
    if (activation.beta && beta != betas.end()) activation.beta = *beta++;
  }
  return result;
}

/// Static parameters of one direction's cell.
struct Cell {
  const Attrs& attrs;
  std::int64_t hidden;
  std::vector<Activation> functions;

  Val part(const Val& x, int axis, std::int64_t k) const {
    return sliced(x, axis, k * hidden, (k + 1) * hidden);
  }
  Val gate(const Val& gates, std::int64_t k) const { return part(gates, 1, k); }

  /// Applies the k-th activation to x after clipping.
  Val f(std::size_t k, Val x) const {
    if (attrs.has("clip")) {
      Body& b = x.body();
      const double limit = attrs.f("clip");
      x = b.op("clip", {x, b.number(-limit, x.dtype()), b.number(limit, x.dtype())});
    }
    return functions[k](x);
  }
};

/// Recurrent weights: recurrent is [hidden, gates * hidden]; the others may be absent.
struct Weights {
  Val recurrent, bias, peephole = {};

  Val of(const Val& h) const {
    const Val product = h.body().op("matmul", {h, recurrent});
    return bias.present() ? product + bias : product;
  }
};

/// Cell update: next states from the previous ones (the hidden state first) and the input's
/// contribution to the gates.
using Advance = Vals (*)(const Cell&, const Weights&, const Val& x, const Vals& states);

Vals advance_rnn(const Cell& cell, const Weights& weights, const Val& x, const Vals& states) {
  return {cell.f(0, x + weights.of(states[0]))};
}

Vals advance_gru(const Cell& cell, const Weights& weights, const Val& x, const Vals& states) {
  const Val &h = states[0], all = weights.of(h);
  const Val z = cell.f(0, cell.gate(x, 0) + cell.gate(all, 0));
  const Val r = cell.f(0, cell.gate(x, 1) + cell.gate(all, 1));
  const auto reset_first = [&] {
    const Val bias = weights.bias.present() ? cell.part(weights.bias, 0, 2) : Val{};
    return Weights{cell.gate(weights.recurrent, 2), bias}.of(r * h);
  };
  const bool linear = cell.attrs.i("linear_before_reset") != 0;
  const Val fresh = cell.f(1, cell.gate(x, 2) + (linear ? r * cell.gate(all, 2) : reset_first()));
  return {(1.0 - z) * fresh + z * h};
}

Vals advance_lstm(const Cell& cell, const Weights& weights, const Val& x, const Vals& states) {
  const Val &h = states[0], &c = states[1], gates = x + weights.of(h);
  const auto gate = [&](int k, const Val& seen) {
    const Val plain = cell.gate(gates, k);
    if (!weights.peephole.present()) return cell.f(0, plain);
    return cell.f(0, plain + cell.part(weights.peephole, 0, k) * seen);
  };
  const Val input = gate(0, c);
  const Val forget = cell.attrs.i("input_forget") != 0 ? 1.0 - input : gate(2, c);
  const Val next = forget * c + input * cell.f(1, cell.gate(gates, 3));
  return {gate(1, next) * cell.f(2, next), next};
}

struct Kind {
  std::string name, summary;
  int gates = 1;
  int states = 1;
  Strings activations;
  Advance advance = nullptr;
  std::vector<AttrSpec> attrs = {};
};

Expected<Done> check_sizes(const Val& x, std::string_view name, const std::vector<Dim>& expected) {
  TESSERA_TRY_DONE(check_rank(x, name, static_cast<int>(expected.size())));
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto size = x.dim(axis).constant();
    const auto wanted = expected[static_cast<std::size_t>(axis)].constant();
    if (size && wanted && *size != *wanted)
      return bad_operands(fmt::format("axis {} of {} has size {}", axis, name, *size),
                          fmt::format("it has to have size {}", *wanted));
  }
  return Done{};
}

/// Reverses time per sequence; padding behind the end of a sequence stays.
Val backwards(const Val& x, const Val& lengths) {
  Body& b = x.body();
  if (lengths.present())
    return b.op("reverse_sequence", {x, lengths}, {{"time_axis", 0}, {"batch_axis", 1}});
  return b.op("slice", {x, b.ints({-1}), b.ints({std::numeric_limits<std::int64_t>::min()}),
                        b.ints({0}), b.ints({-1})});
}

/// One direction: the stacked hidden states [time, batch, hidden] and the last states. The scan's
/// body sees nothing of the outer graph, so the weights travel along as states that do not change.
struct Run {
  Val x, input_weight, input_bias;
  Weights weights;
  Vals states;
  Val active;  // [time, batch, 1], where there are lengths

  Vals operator()(Body& b, const Cell& cell, Advance advance) const {
    Val gates = b.op("matmul", {x, transposed(input_weight, {1, 0})});
    if (input_bias.present()) gates = gates + input_bias;
    const std::size_t carried = states.size();
    Vals all = states;
    for (const Val& weight : {weights.recurrent, weights.bias, weights.peephole})
      if (weight.present()) all.push_back(weight);
    Vals elements = {gates};
    if (active.present()) elements.push_back(active);

    Vals results = b.scan(all, elements, [&](Body& inner, const Vals& now, const Vals& slices) {
      std::size_t next = carried;
      const auto here = [&](const Val& outer) { return outer.present() ? now[next++] : Val{}; };
      Weights local;
      local.recurrent = here(weights.recurrent);
      local.bias = here(weights.bias);
      local.peephole = here(weights.peephole);
      Vals out = advance(cell, local, slices[0],
                         {now.begin(), now.begin() + static_cast<std::ptrdiff_t>(carried)});
      Val y = out[0];
      if (slices.size() > 1) {
        for (std::size_t i = 0; i < carried; ++i)
          out[i] = inner.op("where", {slices[1], out[i], now[i]});
        y = inner.op("where", {slices[1], y, inner.number(0, y.dtype())});
      }
      out.insert(out.end(), now.begin() + static_cast<std::ptrdiff_t>(carried), now.end());
      out.push_back(y);
      return out;
    });
    Vals found = {results.back()};
    found.insert(found.end(), results.begin(),
                 results.begin() + static_cast<std::ptrdiff_t>(carried));
    return found;
  }
};

Expected<Vals> expand_recurrent(const Kind& kind, Body& b, const Attrs& attrs, const Vals& in) {
  TESSERA_TRY_DONE(check_word(attrs, "direction", {"forward", "reverse", "bidirectional"}));
  const std::string& direction = attrs.s("direction");
  const int directions = direction == "bidirectional" ? 2 : 1;
  TESSERA_TRY(const std::vector<Activation> functions,
              activations(attrs, kind.activations, static_cast<std::size_t>(directions)));

  const auto optional_input = [&](std::size_t i) { return given(in, i) ? in[i] : Val{}; };
  const Val bias = optional_input(3), peephole = optional_input(7);
  Val lengths = optional_input(4);
  TESSERA_TRY_DONE(check_rank(in[2], "the recurrence weight", 3));
  const std::optional<std::int64_t> size =
      attrs.has("hidden_size") ? attrs.i("hidden_size") : in[2].dim(2).constant();
  if (!size) return needs_value("hidden_size");
  const std::int64_t hidden = *size;
  if (hidden < 1 || hidden > (std::int64_t{1} << 31))
    return bad_operands(fmt::format("hidden_size is {}", hidden), "it has to be at least 1");
  const Dim unknown = Dim::undefined();
  const std::int64_t rows = kind.gates * hidden;
  TESSERA_TRY_DONE(check_rank(in[0], "the input", 3));
  TESSERA_TRY_DONE(check_sizes(in[1], "the weight", {directions, rows, unknown}));
  TESSERA_TRY_DONE(check_sizes(in[2], "the recurrence weight", {directions, rows, hidden}));
  if (bias.present()) TESSERA_TRY_DONE(check_sizes(bias, "the bias", {directions, 2 * rows}));
  if (peephole.present())
    TESSERA_TRY_DONE(check_sizes(peephole, "the peephole weight", {directions, 3 * hidden}));
  const bool batch_first = attrs.i("layout") != 0;
  const Dim batch = in[0].dim(batch_first ? 0 : 1);
  if (lengths.present()) TESSERA_TRY_DONE(check_sizes(lengths, "sequence_lens", {batch}));
  for (int s = 0; s < kind.states; ++s)
    if (const Val initial = optional_input(5 + static_cast<std::size_t>(s)); initial.present())
      TESSERA_TRY_DONE(check_sizes(initial, "an initial state",
                                   batch_first ? std::vector<Dim>{batch, directions, hidden}
                                               : std::vector<Dim>{directions, batch, hidden}));

  const auto time_first = [&](const Val& x) { return batch_first ? transposed(x, {1, 0, 2}) : x; };
  const Val x = time_first(in[0]);
  Val active;
  if (lengths.present()) {
    lengths = converted(lengths, DType::I64);
    const Val steps = picked(sizes_of(x, 0, 1), 0, 0);
    const Val time = b.op("range", {b.number(0, DType::I64), steps, b.number(1, DType::I64)});
    active = b.op("less", {unsqueezed(time, {1, 2}), unsqueezed(lengths, {1})});
  }

  std::vector<Vals> found;  // by direction
  for (int d = 0; d < directions; ++d) {
    const auto own = [&](const Val& value) {
      return value.present() ? picked(value, 0, d) : Val{};
    };
    const bool reversed = direction == "reverse" || d == 1;
    Run run{.x = reversed ? backwards(x, lengths) : x,
            .input_weight = own(in[1]),
            .input_bias = {},
            .weights = {transposed(own(in[2]), {1, 0}), {}, own(peephole)},
            .states = {},
            .active = active};
    if (bias.present()) {
      run.input_bias = sliced(own(bias), 0, 0, rows);
      run.weights.bias = sliced(own(bias), 0, rows, 2 * rows);
    }
    for (int s = 0; s < kind.states; ++s) {
      const Val initial = optional_input(5 + static_cast<std::size_t>(s));
      run.states.push_back(initial.present()
                               ? own(time_first(initial))
                               : filled(0, in[0].dtype(), {sizes_of(x, 1, 2), b.ints({hidden})}));
    }
    const auto count = static_cast<std::ptrdiff_t>(kind.activations.size());
    const auto first = functions.begin() + d * count;
    Vals results = run(b, {attrs, hidden, {first, first + count}}, kind.advance);
    if (reversed) results[0] = backwards(results[0], lengths);
    found.push_back(std::move(results));
  }

  Vals outputs;
  for (std::size_t i = 0; i < found[0].size(); ++i) {
    const int axis = i == 0 ? 1 : 0;  // where the directions go: [time, directions, batch, hidden]
    Vals parts;
    for (const Vals& results : found) parts.push_back(unsqueezed(results[i], {axis}));
    const Val both = joined(parts, axis);
    if (!batch_first)
      outputs.push_back(both);
    else
      outputs.push_back(transposed(both, i == 0 ? Ints{2, 0, 1, 3} : Ints{1, 0, 2}));
  }
  return outputs;
}

OpDef recurrent(Kind kind) {
  std::vector<AttrSpec> attrs = {{"activation_alpha", Floats{}}, {"activation_beta", Floats{}},
                                 {"activations", Strings{}},     optional_attr("clip", 0.0),
                                 {"direction", "forward"},       optional_attr("hidden_size", 0),
                                 flag_attr("layout", 0)};
  OpDef op{.name = kind.name,
           .summary = kind.summary,
           .inputs = {"x", "weight", "recurrence_weight", "bias?", "sequence_lens?", "initial_h?"},
           .outputs = {"out", "out_h"},
           .attrs = concat<AttrSpec>(std::move(attrs), kind.attrs)};
  if (kind.states > 1) {
    op.inputs = tessera::concat<std::string>(op.inputs, {"initial_c?", "peephole?"});
    op.outputs.push_back("out_c");
  }
  op.expand = [kind = std::move(kind)](Body& b, const Attrs& given, const Vals& in) {
    return expand_recurrent(kind, b, given, in);
  };
  return op;
}

}  // namespace

OpDef rnn() {
  return recurrent({.name = "rnn",
                    .summary = "h = f(x W + h R + bias), over time, in one or two directions",
                    .gates = 1,
                    .states = 1,
                    .activations = {"Tanh"},
                    .advance = advance_rnn});
}

OpDef gru() {
  return recurrent({.name = "gru",
                    .summary = "a gated recurrent unit over time, in one or two directions",
                    .gates = 3,
                    .states = 1,
                    .activations = {"Sigmoid", "Tanh"},
                    .advance = advance_gru,
                    .attrs = {flag_attr("linear_before_reset", 0)}});
}

OpDef lstm() {
  return recurrent({.name = "lstm",
                    .summary = "long short-term memory over time, in one or two directions",
                    .gates = 4,
                    .states = 2,
                    .activations = {"Sigmoid", "Tanh", "Tanh"},
                    .advance = advance_lstm,
                    .attrs = {flag_attr("input_forget", 0)}});
}

}  // namespace tessera::define
