#include "tests/programs/call_attributes.h"

#include <algorithm>
#include <stdexcept>

namespace tessera::testing {
namespace {

std::string dtype_name(const std::vector<DType>& list, Draws& draws) {
  return std::string(to_string(draws.one_of(list)));
}

/// Functions of a recurrent network.
Strings activations(int count, Draws& draws) {
  Strings functions;
  for (; count > 0; --count)
    functions.push_back(draws.one_of<std::string>({"Tanh", "Sigmoid", "Relu", "Affine", "LeakyRelu",
                                                   "ThresholdedRelu", "ScaledTanh", "HardSigmoid",
                                                   "Elu", "Softsign", "Softplus"}));
  return functions;
}

/// A value that has a name: `@name`.
Attr named_attribute(const std::string& name, bool special_values, Draws& draws) {
  using enum DType;
  static const std::map<std::string, Attr, std::less<>> fixed = {
      {"two_twos", Ints{2, 2}},
      {"two_floats", Floats{0.25, 0.5}},
      {"zero", Ints{0}},
      {"zero_one", Ints{0, 1}},
      {"zero_two", Ints{0, 2}},
      {"two_three", Ints{2, 3}},
      {"two_keys", integer_tensor(I64, {2}, {0, 1})},
      {"two_values", number_tensor(F32, {2}, {0.5, 2})},
      {"one_value", number_tensor(F32, {1}, {4})},
      {"four", Ints{0, 1, 2, 3}},
      {"pool", Ints{1, 3, 1, 2, 3, 1}},
      {"four_floats", Floats{0.5, 1, 2, 0.25}},
      {"words", Strings{"a", "bb"}},
      {"stopwords", Strings{"a", "BB"}},
      {"no_type", std::string("f32[2]")},
      {"one_float", Floats{0.5}}};
  if (const auto value = fixed.find(name); value != fixed.end()) return value->second;
  if (name == "dtype") {
    static const std::vector<DType> small = {F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0,
                                             F4E2M1,   I4,         U4,     I2,         U2};
    return dtype_name(draws.one_in(3) ? small : class_of("A"), draws);
  }
  if (name == "number") return dtype_name(class_of("N"), draws);
  if (name == "float") return dtype_name(class_of("F"), draws);
  if (name == "quantized") return dtype_name(class_of("Q"), draws);
  if (name == "one_number")
    return random_tensor(draws.one_of(class_of("A")), {1}, special_values, draws);
  if (name == "axes") return draws.one_of<Ints>({{0}, {1}, {0, 1}, {-1}, {0, 2}});
  if (name == "last_axis") return draws.one_of<Ints>({{1}, {-1}, {0}});
  if (name == "last_two") return draws.one_of<Ints>({{2, 3}, {-2, -1}});
  if (name == "output_shape") return Ints{draws.between(3, 9), draws.between(3, 9)};
  if (name == "rnn_activations") return activations(1, draws);
  if (name == "gru_activations") return activations(2, draws);
  if (name == "lstm_activations") return activations(3, draws);
  throw std::logic_error("there is no attribute @" + name);
}

std::optional<Attr> attribute(const AttrSpec& spec, const std::string& from,
                              const OperandContents& operands, Bindings& bound, Draws& draws) {
  if (from[0] == '@') return named_attribute(from.substr(1), operands.special_values(), draws);
  if (from[0] == '$') {
    const std::string letter = from.substr(1);
    if (const auto list = bound.lists.find(letter); list != bound.lists.end()) return list->second;
    return size_of(letter, bound, draws);
  }
  const bool is_axis = from.starts_with("axis("), is_perm = from.starts_with("perm(");
  if (is_axis || is_perm) {
    const std::size_t rank = operands.shape(static_cast<std::size_t>(from[5] - '0')).size();
    if (is_perm) return draws.permutation(rank);
    if (rank == 0) return std::nullopt;
    const auto end = static_cast<std::int64_t>(rank);
    return draws.between(-end, end - 1);
  }
  const std::size_t power = from.find('^'), dots = from.find("..");
  if (dots != std::string::npos && !std::holds_alternative<std::string>(spec.value)) {
    const std::int64_t low = *integer(from.substr(0, dots));
    const std::int64_t high =
        *integer(from.substr(dots + 2, power == std::string::npos ? power : power - dots - 2));
    if (power == std::string::npos) return draws.between(low, high);
    const std::string count = from.substr(power + 1);
    const std::size_t length = count == "s"    ? spatial_rank(bound, draws)
                               : count == "2s" ? 2 * spatial_rank(bound, draws)
                                               : static_cast<std::size_t>(*integer(count));
    Ints values(length);
    for (std::int64_t& value : values) value = draws.between(low, high);
    return values;
  }
  const std::string chosen = draws.one_of(split(from, '|'));
  if (std::holds_alternative<std::int64_t>(spec.value)) return *integer(chosen);
  if (std::holds_alternative<double>(spec.value)) return std::stod(chosen);
  return chosen;
}

/// Attributes of resize, which depend on each other.
Attrs resize_attributes(Draws& draws) {
  Attrs attrs;
  const std::string mode = draws.one_of<std::string>({"nearest", "linear", "cubic"});
  attrs.set("mode", mode);
  attrs.set("coordinate_transformation_mode",
            draws.one_of<std::string>({"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                       "align_corners", "asymmetric"}));
  if (mode == "nearest") {
    attrs.set("nearest_mode", draws.one_of<std::string>(
                                  {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
  } else {
    attrs.set("antialias", std::int64_t{draws.one_in(2)});
    attrs.set("exclude_outside", std::int64_t{draws.one_in(2)});
  }
  if (mode == "cubic") attrs.set("cubic_coeff_a", draws.one_of<double>({-0.75, -0.5}));
  return attrs;
}

}  // namespace

std::optional<Attrs> draw_attributes(const OpDef& op, const std::string& forms,
                                     const OperandContents& operands, Bindings& bound,
                                     Draws& draws) {
  if (forms == "@resize") return resize_attributes(draws);
  Attrs attrs;
  for (const std::string& form : split(forms, ' ')) {
    const std::size_t equals = form.find('=');
    const bool always = form[equals - 1] == '!';
    const std::string name = form.substr(0, equals - (always ? 1 : 0));
    const auto spec = std::ranges::find(op.attrs, name, &AttrSpec::name);
    if (spec == op.attrs.end()) throw std::logic_error(op.name + " has no attribute " + name);
    if (!always && draws.one_in(2)) continue;
    if (auto value = attribute(*spec, form.substr(equals + 1), operands, bound, draws))
      attrs.set(name, *std::move(value));
    else if (always)
      return std::nullopt;
  }
  return attrs;
}

}  // namespace tessera::testing
