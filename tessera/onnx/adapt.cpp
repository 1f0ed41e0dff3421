#include "tessera/onnx/adapt.h"

#include <algorithm>
#include <numeric>

#include "tessera/onnx/data_type.h"

namespace tessera::onnx::adapt {
namespace {

/// Turns a list attribute into an input, if it is present.
Expected<Done> ints_become_input(Call& call, std::string_view attr, std::size_t input) {
  TESSERA_TRY(const std::optional<Ints> values, call.take_as<Ints>(attr));
  if (values) call.set_input(input, call.g.ints(*values));
  return Done{};
}

/// Dtype of an input; f32 if it is unknown.
DType dtype_of_input(const Call& call, std::size_t i) {
  const Type type = call.known(i).type;
  return type.kind == Type::Kind::Tensor ? type.dtype : DType::F32;
}

bool is_text(const Type& type) {
  return type.kind == Type::Kind::Tensor && type.dtype == DType::String;
}

/// Numbers first, first + 1, … , last - 1.
Ints counted(std::size_t first, std::size_t last) {
  Ints result(last - first);
  std::iota(result.begin(), result.end(), static_cast<std::int64_t>(first));
  return result;
}

Tensor floats(const Floats& values) {
  std::vector<float> elements(values.begin(), values.end());
  return Tensor::of<float>(DType::F32, {static_cast<std::int64_t>(values.size())}, elements);
}

/// An axis that may count from the end; nothing if it is out of range.
std::optional<std::size_t> axis_of(std::int64_t axis, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(rank);
  if (axis < -count || axis > count) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + count : axis);
}

/// Dictionary lookup of strings or integers: one list is the keys, the other the values.
Expected<Vals> looked_up(Call& call, const Strings& strings, const Ints& ints) {
  const Type type = call.known(0).type;
  if (type.kind != Type::Kind::Tensor)
    return call.unsupported("the type of the input is not known");
  const bool text = type.dtype == DType::String;
  call.attrs.set(text ? "keys_strings" : "values_strings", strings);
  call.attrs.set(text ? "values_int64s" : "keys_int64s", ints);
  return call.emit();
}

/// Tree votes with base values added and the post transform applied.
Expected<Vals> transformed_votes(Call& call, const Floats& base, const std::string& transform) {
  Val scores = call.emit().at(0);
  if (!base.empty()) scores = scores + call.g.constant(floats(base));
  if (transform != "NONE")
    scores = call.g.op("ml_post_transform", {scores}, {{"post_transform", transform}});
  return Vals{scores};
}

}  // namespace

Expected<Vals> axes_from_attribute(Call& call) {
  TESSERA_TRY_DONE(ints_become_input(call, "axes", 1));
  return call.emit();
}

Expected<Vals> dft_axis_from_attribute(Call& call) {
  TESSERA_TRY(const auto axis, call.take_as<std::int64_t>("axis"));
  call.set_input(2, call.g.number(static_cast<double>(axis.value_or(1)), DType::I64));
  return call.emit();
}

Expected<Vals> k_from_attribute(Call& call) {
  TESSERA_TRY(const auto k, call.take_as<std::int64_t>("k"));
  if (k) call.set_input(1, call.g.ints({*k}));
  return axis_from_start(call);
}

Expected<Vals> limits_from_attributes(Call& call) {
  constexpr std::string_view kLimits[] = {"min", "max"};
  for (std::size_t i = 0; i < 2; ++i) {
    TESSERA_TRY(const auto limit, call.take_as<double>(kLimits[i]));
    if (limit) call.set_input(i + 1, call.g.number(*limit, dtype_of_input(call, 0)));
  }
  return call.emit();
}

Expected<Vals> pads_from_attributes(Call& call) {
  TESSERA_TRY_DONE(ints_become_input(call, "pads", 1));
  TESSERA_TRY_DONE(ints_become_input(call, "paddings", 1));
  TESSERA_TRY(const auto value, call.take_as<double>("value"));
  if (value) call.set_input(2, call.g.number(*value, dtype_of_input(call, 0)));
  return call.emit();
}

Expected<Vals> ratio_from_attribute(Call& call) {
  TESSERA_TRY(const auto ratio, call.take_as<double>("ratio"));
  TESSERA_TRY(const auto is_test, call.take_as<std::int64_t>("is_test"));
  if (ratio) call.set_input(1, call.g.number(*ratio, DType::F32));
  if (call.opset < 7 && is_test.value_or(0) == 0) call.set_input(2, call.g.number(1, DType::Bool));
  Vals results = call.emit();
  if (call.opset < 10 && results.size() > 1) {
    const std::string dtype(to_string(dtype_of_input(call, 0)));
    results[1] = call.g.op("cast", {results[1]}, {{"to", dtype}});
  }
  return results;
}

Expected<Vals> shape_from_attribute(Call& call) {
  TESSERA_TRY_DONE(ints_become_input(call, "shape", 1));
  return call.emit();
}

Expected<Vals> slice_from_attributes(Call& call) {
  TESSERA_TRY_DONE(ints_become_input(call, "starts", 1));
  TESSERA_TRY_DONE(ints_become_input(call, "ends", 2));
  TESSERA_TRY_DONE(ints_become_input(call, "axes", 3));
  return call.emit();
}

Expected<Vals> split_from_attribute(Call& call) {
  TESSERA_TRY_DONE(ints_become_input(call, "split", 1));
  return split_evenly(call);
}

Expected<Vals> split_evenly(Call& call) {
  if (!call.has_input(1) && !call.attrs.has("num_outputs"))
    call.attrs.set("num_outputs", std::int64_t{call.listed_outputs});
  return call.emit();
}

Expected<Vals> batch_norm_by_mode(Call& call) {
  TESSERA_TRY(const auto is_test, call.take_as<std::int64_t>("is_test"));
  TESSERA_TRY(const auto spatial, call.take_as<std::int64_t>("spatial"));
  if (spatial.value_or(1) == 0) {
    TESSERA_TRY(const Shape shape, call.shape(0));
    if (shape.size() != 2)
      return call.unsupported("spatial=0", "one statistic per channel is read");
  }
  const bool training = call.opset < 7 ? is_test.value_or(0) == 0 : call.listed_outputs > 1;
  call.attrs.set("training_mode", std::int64_t{training});
  // The fourth and fifth output are the statistics of the batch: running ones without momentum.
  const int saved = std::max(call.outputs - 3, 0);
  call.outputs -= saved;
  Vals results = call.emit();
  if (saved == 0) return results;
  call.attrs.set("momentum", 0.0);
  const Vals batch = call.emit();
  results.insert(results.end(), batch.begin() + 1, batch.begin() + 1 + saved);
  return results;
}

Expected<Vals> coerced_to_matrix(Call& call) {
  TESSERA_TRY(const auto given, call.take_as<std::int64_t>("axis"));
  const std::int64_t axis = given.value_or(1);
  if (const Type type = call.known(0).type; type.is_ranked_tensor()) {
    const Shape& shape = *type.shape;
    const std::optional<std::size_t> first = axis_of(axis, shape.size());
    if (!first) return call.unsupported(fmt::format("axis {} is out of range", axis));
    const auto one = [](const Dim& dim) { return dim.is(1); };
    if (*first < shape.size() &&
        std::all_of(shape.begin() + static_cast<std::ptrdiff_t>(*first) + 1, shape.end(), one)) {
      call.attrs.set("axis", static_cast<std::int64_t>(*first));
      return call.emit();
    }
  }
  const Val x = call.inputs.at(0);
  call.inputs[0] = call.g.op("flatten", {x}, {{"axis", axis}});
  call.attrs.set("axis", std::int64_t{-1});
  const Vals matrix = call.emit();
  return Vals{call.g.op("reshape", {matrix.at(0), call.g.op("shape", {x})})};
}

Expected<Vals> legacy_broadcast(Call& call) {
  TESSERA_TRY_DONE(call.take_as<std::int64_t>("broadcast"));
  TESSERA_TRY(const auto axis, call.take_as<std::int64_t>("axis"));
  if (axis && call.has_input(1)) {
    TESSERA_TRY(const Shape a, call.shape(0));
    TESSERA_TRY(const Shape b, call.shape(1));
    const std::optional<std::size_t> first = axis_of(*axis, a.size());
    if (!first || *first + b.size() > a.size())
      return call.unsupported(fmt::format("axis {} is out of range", *axis));
    const Ints behind = counted(b.size(), a.size() - *first);
    if (!behind.empty())
      call.inputs[1] = call.g.op("unsqueeze", {call.inputs[1], call.g.ints(behind)});
  }
  return call.emit();
}

Expected<Vals> resize_by_scales(Call& call) {
  TESSERA_TRY(const auto scales, call.take_as<Floats>("scales"));
  TESSERA_TRY(const auto height, call.take_as<double>("height_scale"));
  TESSERA_TRY(const auto width, call.take_as<double>("width_scale"));
  Val factors = call.has_input(1) ? call.inputs[1] : Val{};
  if (scales) factors = call.g.constant(floats(*scales));
  if (height && width) factors = call.g.constant(floats({1, 1, *height, *width}));
  call.inputs.resize(1);
  call.set_input(2, factors);
  const Attr* mode = call.attrs.find("mode");
  if (mode != nullptr && equal(*mode, Attr(std::string("bilinear"))))
    call.attrs.set("mode", std::string("linear"));
  call.attrs.set("coordinate_transformation_mode", std::string("asymmetric"));
  // Nearest neighbours are rounded up where an image shrinks.
  const std::optional<Tensor> known = call.known(2).content;
  const auto is_any = [&](const auto& test) {
    for (std::int64_t i = 0; known && i < known->count(); ++i)
      if (test(number_at(*known, i))) return true;
    return false;
  };
  const bool shrinks = is_any([](double scale) { return scale < 1; });
  const bool grows = is_any([](double scale) { return scale > 1; });
  call.attrs.set("nearest_mode", std::string(shrinks && !grows ? "ceil" : "floor"));
  const bool is_nearest = mode == nullptr || equal(*mode, Attr(std::string("nearest")));
  if (!is_nearest || !(shrinks && grows)) return call.emit();
  Floats larger, smaller;
  for (std::int64_t i = 0; i < known->count(); ++i) {
    larger.push_back(std::max(number_at(*known, i), 1.0));
    smaller.push_back(std::min(number_at(*known, i), 1.0));
  }
  call.inputs[2] = call.g.constant(floats(larger));
  call.inputs[0] = call.emit().at(0);
  call.inputs[2] = call.g.constant(floats(smaller));
  call.attrs.set("nearest_mode", std::string("ceil"));
  return call.emit();
}

Expected<Vals> scale_per_group(Call& call) {
  const Attr* groups = call.attrs.find("num_groups");
  TESSERA_TRY(const Shape shape, call.shape(0));
  const std::int64_t* count = groups == nullptr ? nullptr : std::get_if<std::int64_t>(groups);
  const std::optional<std::int64_t> channels =
      shape.size() < 2 ? std::nullopt : shape[1].constant();
  if (count == nullptr || *count < 1 || !channels || *channels % *count != 0)
    return call.unsupported("the number of channels is unknown or not a multiple of num_groups");
  for (std::size_t i = 1; i < 3 && call.has_input(i); ++i) {
    const Val column = call.g.op("unsqueeze", {call.inputs[i], call.g.ints({1})});
    const Val all = call.g.op("expand", {column, call.g.ints({*count, *channels / *count})});
    call.inputs[i] = call.g.op("reshape", {all, call.g.ints({-1})});
  }
  return call.emit();
}

Expected<Vals> slope_per_channel(Call& call) {
  TESSERA_TRY(const Shape x, call.shape(0));
  TESSERA_TRY(const Shape slope, call.shape(1));
  if (slope.size() == 1 && x.size() > 2 && !slope[0].is(1))
    call.inputs[1] =
        call.g.op("unsqueeze", {call.inputs[1], call.g.ints(counted(1, x.size() - 1))});
  return call.emit();
}

Expected<Vals> tiles_along_axis(Call& call) {
  TESSERA_TRY(const Shape shape, call.shape(0));
  const auto number = [&](std::size_t i) -> std::optional<std::int64_t> {
    const std::optional<Tensor> content = call.known(i).content;
    return content && content->count() == 1 ? std::optional(integer_at(*content, 0)) : std::nullopt;
  };
  const std::optional<std::int64_t> tiles = number(1), axis = number(2);
  const std::optional<std::size_t> at = axis ? axis_of(*axis, shape.size()) : std::nullopt;
  if (!tiles || !at || *at >= shape.size())
    return call.unsupported("tiles and axis have to be constant");
  Ints repeats(shape.size(), 1);
  repeats[*at] = *tiles;
  call.inputs = {call.inputs[0], call.g.ints(repeats)};
  return call.emit();
}

Expected<Vals> axis_from_start(Call& call) {
  if (!call.attrs.has("axis"))
    for (const AttrSpec& spec : call.op->attrs)
      if (spec.name == "axis" && spec.need == AttrSpec::Need::Default)
        call.attrs.set("axis", spec.value);
  const Type type = call.known(0).type;
  const Attr* attr = call.attrs.find("axis");
  const auto* axis = attr == nullptr ? nullptr : std::get_if<std::int64_t>(attr);
  if (axis != nullptr && *axis < 0 && type.is_ranked_tensor())
    if (const std::int64_t first = *axis + std::ssize(*type.shape); first >= 0)
      call.attrs.set("axis", first);
  return call.emit();
}

Expected<Vals> axis_is_one(Call& call) {
  if (!call.attrs.has("axis")) call.attrs.set("axis", std::int64_t{1});
  return call.emit();
}

Expected<Vals> corner_pixels(Call& call) {
  call.attrs.set("coordinate_transformation_mode", std::string("output_half_pixel"));
  return call.emit();
}

Expected<Vals> grid_modes(Call& call) {
  TESSERA_TRY(const auto mode, call.take_as<std::string>("mode"));
  if (mode) call.attrs.set("mode", mode->starts_with("bi") ? mode->substr(2) : *mode);
  return call.emit();
}

Expected<Vals> without_broadcast(Call& call) {
  call.attrs.erase("broadcast");
  return call.emit();
}

Expected<Vals> without_output_sequence(Call& call) {
  call.attrs.erase("output_sequence");
  // The schema of the first opset misspells the default.
  if (const Attr* direction = call.attrs.find("direction");
      direction != nullptr && equal(*direction, Attr(std::string("foward"))))
    call.attrs.erase("direction");
  return call.emit();
}

Expected<Vals> cast_or_text(Call& call) {
  TESSERA_TRY(auto to, call.take_as<std::string>("to"));
  for (std::int64_t number = 0; to && number <= 28; ++number) {
    if (data_type_name(number) != *to) continue;
    TESSERA_TRY(const DType dtype, dtype_of(number));
    to = std::string(to_string(dtype));
  }
  const Type from = call.known(0).type, like = call.known(1).type;
  if (is_text(from) || is_text(like) || to == to_string(DType::String)) {
    if (like.kind == Type::Kind::Tensor) to = std::string(to_string(like.dtype));
    call.inputs.resize(1);
    if (const auto dtype = parse_dtype(to.value_or("")); dtype && is_small(*dtype)) {
      call.inputs[0] = call.g.op("cast_string", call.inputs, {{"to", "f32"}});
      call.attrs.set("to", *to);
      call.op = find_op("cast");
      return call.emit();
    }
    call.op = find_op("cast_string");
    TESSERA_CHECK(call.op != nullptr, "cast_string is in the catalog");
  }
  if (to) call.attrs.set("to", *to);
  return call.emit();
}

Expected<Vals> bits_or_cast(Call& call) {
  const Type from = call.known(0).type;
  const Attr* attr = call.attrs.find("to");
  const auto* name = attr == nullptr ? nullptr : std::get_if<std::string>(attr);
  const std::optional<DType> to = name == nullptr ? std::nullopt : parse_dtype(*name);
  if (from.kind == Type::Kind::Tensor && to && !is_float(from.dtype) && !is_float(*to) &&
      byte_width(from.dtype) == byte_width(*to))
    return Vals{call.g.op("cast", {call.inputs.at(0)}, {{"to", *name}})};
  return call.emit();
}

Expected<Vals> constant(Call& call) {
  if (call.attrs.entries().size() != 1)
    return call.unsupported(fmt::format("{} attributes", call.attrs.entries().size()),
                            "a constant has one value");
  const auto& [name, value] = call.attrs.entries().front();
  const auto count = [](const auto& list) { return static_cast<std::int64_t>(list.size()); };
  Tensor tensor;
  if (const auto* given = std::get_if<Tensor>(&value)) {
    tensor = *given;
  } else if (const auto* i = std::get_if<std::int64_t>(&value)) {
    tensor = Tensor::of<std::int64_t>(DType::I64, {}, std::span(i, 1));
  } else if (const auto* ints = std::get_if<Ints>(&value)) {
    tensor = name == "value_floats" ? floats({})  // an empty list has no kind of its own
                                    : Tensor::of<std::int64_t>(DType::I64, {count(*ints)}, *ints);
  } else if (const auto* f = std::get_if<double>(&value)) {
    tensor = floats({*f});
    tensor.shape.clear();
  } else if (const auto* list = std::get_if<Floats>(&value)) {
    tensor = floats(*list);
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    tensor = Tensor::of_strings({}, {*s});
  } else if (const auto* strings = std::get_if<Strings>(&value)) {
    tensor = Tensor::of_strings({count(*strings)}, *strings);
  }
  return Vals{call.g.constant(std::move(tensor))};
}

Expected<Vals> empty_is_absent(Call& call) {
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    const Type type = call.known(i).type;
    if (type.is_ranked_tensor() && type.shape->size() == 1 && type.shape->front().is(0))
      call.inputs[i] = Val{};
  }
  while (!call.inputs.empty() && !call.inputs.back().present()) call.inputs.pop_back();
  return call.emit();
}

Expected<Vals> pieces(Call& call) {
  const ValueInfo x = call.known(0), split = call.known(1);
  const Attr* axis_attr = call.attrs.find("axis");
  const Attr* keepdims_attr = call.attrs.find("keepdims");
  const Vals results = call.emit();
  if (call.g.failed() || !x.type.is_ranked_tensor()) return results;
  const auto* axis = axis_attr == nullptr ? nullptr : std::get_if<std::int64_t>(axis_attr);
  const auto at = axis_of(axis == nullptr ? 0 : *axis, x.type.shape->size());
  if (!at || *at >= x.type.shape->size()) return results;

  Type type{Type::Kind::Sequence, x.type.dtype, x.type.shape};
  Dim& size = (*type.shape)[*at];
  if (!call.has_input(1)) {
    size = 1;
    if (keepdims_attr != nullptr && equal(*keepdims_attr, Attr(std::int64_t{0})))
      type.shape->erase(type.shape->begin() + static_cast<std::ptrdiff_t>(*at));
  } else if (split.content && split.content->count() > 0) {
    const Ints lengths = integers_of(*split.content);
    const bool list = !split.content->shape.empty();
    const bool even = list ? std::ranges::count(lengths, lengths[0]) == std::ssize(lengths)
                           : lengths[0] > 0 && mod(size, lengths[0]).is(0);
    if (!even || lengths[0] < 0) return results;
    size = lengths[0];
  } else {
    return results;
  }
  call.g.refine(results.at(0), type);
  return results;
}

Expected<Vals> element_of_pieces(Call& call) {
  const Type sequence = call.known(0).type;
  const Vals results = call.emit();
  if (sequence.kind == Type::Kind::Sequence && sequence.shape && !call.g.failed())
    call.g.refine(results.at(0), Type::tensor(sequence.dtype, *sequence.shape));
  return results;
}

Expected<Vals> identity(Call& call) {
  const Type type = call.known(0).type;
  const bool numbers = type.kind == Type::Kind::Tensor && type.dtype != DType::String;
  if (call.has_input(0) && !numbers && type.kind != Type::Kind::Unknown)
    return Vals{call.inputs[0]};
  return call.emit();
}

Expected<Vals> categories_as_keys(Call& call) {
  TESSERA_TRY(const auto strings, call.take_as<Strings>("cats_strings"));
  TESSERA_TRY(const auto ints, call.take_as<Ints>("cats_int64s"));
  return looked_up(call, strings.value_or(Strings{}), ints.value_or(Ints{}));
}

Expected<Vals> classes_as_keys(Call& call) {
  TESSERA_TRY(const auto classes, call.take_as<Strings>("classes_strings"));
  const Strings strings = classes.value_or(Strings{});
  return looked_up(call, strings, counted(0, strings.size()));
}

Expected<Vals> trees_from_base_values(Call& call) {
  TESSERA_TRY(const auto list, call.take_as<Floats>("base_values"));
  TESSERA_TRY(const auto tensor, call.take_as<Tensor>("base_values_as_tensor"));
  TESSERA_TRY(const auto transform, call.take_as<std::string>("post_transform"));
  Floats base = list.value_or(Floats{});
  for (std::int64_t i = 0; tensor && i < tensor->count(); ++i)
    base.push_back(number_at(*tensor, i));
  return transformed_votes(call, base, transform.value_or("NONE"));
}

Expected<Vals> trees_transformed_by_number(Call& call) {
  constexpr std::string_view kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                              "PROBIT"};
  TESSERA_TRY(const auto given, call.take_as<std::int64_t>("post_transform"));
  const std::int64_t transform = given.value_or(0);
  if (transform < 0 || transform >= std::ssize(kTransforms))
    return call.unsupported(fmt::format("post_transform is {}", transform));
  return transformed_votes(call, {}, std::string(kTransforms[transform]));
}

}  // namespace tessera::onnx::adapt
