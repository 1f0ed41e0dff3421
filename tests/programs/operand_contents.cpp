#include "tests/programs/operand_contents.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace tessera::testing {

Tensor integer_tensor(DType dtype, std::vector<std::int64_t> shape, const Ints& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(byte_width(dtype)));
  for (std::size_t i = 0; i < values.size(); ++i)
    store_integer(dtype, bytes.data(), static_cast<std::int64_t>(i), values[i]);
  return {dtype, std::move(shape), Bytes::copy(bytes)};
}

Tensor number_tensor(DType dtype, std::vector<std::int64_t> shape, const Floats& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(byte_width(dtype)));
  for (std::size_t i = 0; i < values.size(); ++i)
    store_number(dtype, bytes.data(), static_cast<std::int64_t>(i), values[i]);
  return {dtype, std::move(shape), Bytes::copy(bytes)};
}

bool is_finite(const Tensor& tensor) {
  for (std::int64_t i = 0; is_float(tensor.dtype) && i < tensor.count(); ++i)
    if (!std::isfinite(number_at(tensor, i))) return false;
  return true;
}

namespace {

std::size_t count_of(const Ints& shape) {
  return static_cast<std::size_t>(element_count(shape).value_or(0));
}

Tensor list_tensor(const Ints& values) {
  return integer_tensor(DType::I64, {static_cast<std::int64_t>(values.size())}, values);
}

double special_float(Draws& draws) {
  return draws.one_of<double>(
      {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
       -std::numeric_limits<double>::infinity(), -0.0, 0.0, 1e-40, 4096, 1e-8, -1e-6, 0.5, 100});
}
std::int64_t special_integer(DType dtype, Draws& draws) {
  const int bits = 8 * byte_width(dtype) - 1;
  const auto top = static_cast<std::int64_t>((std::uint64_t{1} << bits) - 1);
  return draws.one_of<std::int64_t>(
      {top, -top - 1, -1, 0, top - 1, std::numeric_limits<std::int64_t>::min()});
}

/// Distinct axes of an operand, some counted from the end.
Ints random_axes(std::size_t rank, Draws& draws) {
  Ints axes;
  for (std::size_t a = 0; a < rank; ++a)
    if (draws.one_in(2))
      axes.push_back(static_cast<std::int64_t>(a) -
                     (draws.one_in(3) ? static_cast<std::int64_t>(rank) : 0));
  return axes;
}

/// Corners of a box, behind the number of an image if there are any.
void add_box(Floats& boxes, std::int64_t images, Draws& draws) {
  const std::int64_t x = draws.between(0, 3), y = draws.between(0, 3);
  if (images > 0) boxes.push_back(static_cast<double>(draws.between(0, images - 1)));
  for (const std::int64_t at : {x, y, x + draws.between(0, 4), y + draws.between(0, 4)})
    boxes.push_back(static_cast<double>(at));
}

/// Numbers between `low` and `high`, in units.
struct NumberRange {
  std::int64_t low, high;
  double unit = 1;
};
const std::map<std::string, NumberRange, std::less<>>& number_ranges() {
  static const std::map<std::string, NumberRange, std::less<>> all = {
      {"01", {0, 4, 0.25}}, {"positive", {1, 8, 0.25}}, {"grid", {-5, 5, 0.25}},
      {"no", {0, 0}},       {"small", {0, 3}},          {"limit", {0, 9}},
      {"delta", {1, 3}},    {"shift", {0, 7}},          {"exponent", {0, 3}},
  };
  return all;
}

}  // namespace

Tensor random_tensor(DType dtype, const Ints& shape, bool special_values, Draws& draws) {
  const std::size_t count = count_of(shape);
  if (dtype == DType::String) {
    std::vector<std::string> words(count);
    for (std::string& word : words)
      word = draws.one_of<std::string>({"a", "b", "ab a", "Ba", "", "bb", "A a a"});
    return Tensor::of_strings(shape, words);
  }
  const int style = draws.below(3);
  if (is_float(dtype)) {
    Floats values(count);
    for (double& value : values)
      value = special_values && draws.one_in(6) ? special_float(draws)
              : style == 0                      ? static_cast<double>(draws.between(-8, 8)) / 4
              : style == 1                      ? 4 * draws.uniform() - 2
                                                : static_cast<double>(draws.between(-3, 3));
    return number_tensor(dtype, shape, values);
  }
  Ints values(count);
  for (std::int64_t& value : values)
    value = dtype == DType::Bool                ? draws.below(2)
            : special_values && draws.one_in(5) ? special_integer(dtype, draws)
            : is_unsigned(dtype)                ? draws.between(0, 9)
                                                : draws.between(-6, 9);
  return integer_tensor(dtype, shape, values);
}

template <class Draw>
Tensor OperandContents::drawn(DType dtype, const Ints& shape, Draw draw) {
  Floats values(count_of(shape));
  for (double& value : values) value = static_cast<double>(draw());
  return number_tensor(dtype, shape, values);
}

std::optional<Tensor> OperandContents::draw(const OperandForm& form, DType dtype, Bindings& bound) {
  const std::string& content = form.content;
  const Ints shape = form.dims ? shape_of(*form.dims, bound, draws_) : Ints{};
  if (content.empty()) return random_tensor(dtype, shape, special_values_, draws_);
  if (content == "finite") return random_tensor(dtype, shape, false, draws_);
  if (content[0] == '<') {  // an index
    const std::int64_t size = size_of(content.substr(1), bound, draws_);
    if (size == 0 && element_count(shape) != 0) return std::nullopt;
    return drawn(dtype, shape,
                 [&] { return draws_.between(draws_.one_in(2) ? -size : 0, size - 1); });
  }
  if (content[0] == '=') {
    Floats values;
    for (const std::string& value : split(content.substr(1), ','))
      values.push_back(std::stod(value));
    return number_tensor(dtype, shape, values);
  }
  if (const std::size_t dots = content.find(".."); dots != std::string::npos)
    return drawn(dtype, shape, [&] {
      return draws_.between(*integer(content.substr(0, dots)), *integer(content.substr(dots + 2)));
    });
  if (const auto range = number_ranges().find(content); range != number_ranges().end())
    return drawn(dtype, shape, [&, of = range->second] {
      return static_cast<double>(draws_.between(of.low, of.high)) * of.unit;
    });
  if (const auto number = integer(content)) return drawn(dtype, shape, [&] { return *number; });
  if (content == "scale")
    return drawn(dtype, shape, [&] { return draws_.one_of<double>({0.25, 0.5, 1, 0.1, 2}); });
  if (content == "digits") {
    std::vector<std::string> words(count_of(shape));
    for (std::string& word : words) word = std::to_string(draws_.between(0, 9));
    return Tensor::of_strings(shape, words);
  }
  if (content == "boxes") {
    Floats boxes;
    for (std::size_t b = count_of(shape) / 4; b > 0; --b) add_box(boxes, 0, draws_);
    return number_tensor(dtype, shape, boxes);
  }
  if (content == "unpool_shape")
    return list_tensor({1, 1, draws_.between(4, 5), draws_.between(4, 6)});
  if (content == "up_to_k")
    return drawn(dtype, shape, [&] {
      return draws_.between(draws_.one_in(8) ? 0 : 1, size_of("k", bound, draws_));
    });
  if (content == "shape") {
    Ints sizes;
    for (int i = draws_.below(4); i > 0; --i) sizes.push_back(random_size(draws_));
    return list_tensor(sizes);
  }
  if (content == "roi")
    return number_tensor(DType::F32, {4}, {0.25, 0, draws_.one_of<double>({0.75, 1.25}), 1});
  return draw_dependent(content, dtype, shape);
}

/// What depends on another operand: `name(N)`.
std::optional<Tensor> OperandContents::draw_dependent(const std::string& content, DType dtype,
                                                      const Ints& shape) {
  const std::size_t open = content.find('(');
  if (open == std::string::npos) throw std::logic_error("there is no content " + content);
  const std::string name = content.substr(0, open);
  const auto number = static_cast<std::size_t>(content.at(open + 1) - '0');
  if (name == "lengths" || name == "class") {  // of an axis of the first operand
    const std::int64_t size = this->shape(0).at(number);
    if (name == "class") return drawn(dtype, shape, [&] { return draws_.between(0, size - 1); });
    return drawn(dtype, shape, [&] { return draws_.between(draws_.one_in(9) ? 0 : 1, size); });
  }
  const Ints& x = this->shape(number);
  const std::size_t rank = x.size();
  const auto signed_rank = static_cast<std::int64_t>(rank);
  if (name == "axis") {
    if (rank == 0) return std::nullopt;
    return drawn(dtype, shape, [&] { return draws_.between(-signed_rank, signed_rank - 1); });
  }
  if (name == "axes") return list_tensor(random_axes(rank, draws_));
  if (name == "count")
    return list_tensor({draws_.between(
        x.back() == 0 ? 0 : 1,
        std::max<std::int64_t>(1, std::min<std::int64_t>(3, *std::ranges::min_element(x))))});
  if (name == "ones") {
    Ints axes;
    for (std::size_t a = 0; a < rank; ++a)
      if (x[a] == 1 && draws_.one_in(2))
        axes.push_back(static_cast<std::int64_t>(a) - (draws_.one_in(2) ? signed_rank : 0));
    return list_tensor(axes);
  }
  if (name == "new_axes")
    return list_tensor(draws_.one_in(2) ? Ints{draws_.between(0, signed_rank)} : Ints{-1, 0});
  if (name == "reshape") {
    Ints to = x;
    switch (draws_.below(4)) {
      case 0: to = {-1}; break;
      case 1: to.insert(to.begin() + draws_.below(static_cast<int>(rank) + 1), 1); break;
      case 2: std::ranges::reverse(to); break;
      default:
        if (rank > 1) {
          to[0] *= to[1];
          to.erase(to.begin() + 1);
        }
    }
    return list_tensor(to);
  }
  if (name == "expand") {
    Ints to = x;
    for (std::int64_t& size : to)
      size = size == 1 && draws_.one_in(2) ? draws_.between(1, 3) : draws_.one_in(3) ? 1 : size;
    if (draws_.one_in(3)) to.insert(to.begin(), draws_.between(1, 3));
    return list_tensor(to);
  }
  if (name == "repeats" || name == "shape_like") {
    Ints to = x;
    for (std::int64_t& size : to)
      size =
          name == "repeats" ? draws_.between(draws_.one_in(12) ? 0 : 1, 2) : draws_.between(1, 6);
    return list_tensor(to);
  }
  if (name == "split") {
    const std::int64_t first = draws_.between(0, x.at(0));
    return list_tensor({first, x.at(0) - first});
  }
  if (name == "slice_axes") {
    Ints axes = draws_.permutation(rank, draws_.one_in(2) ? 0 : -signed_rank);
    axes.resize(static_cast<std::size_t>(sliced_axes_));
    return list_tensor(axes);
  }
  if (name == "starts" || name == "ends" || name == "steps") {
    if (name == "starts") sliced_axes_ = 1 + draws_.below(static_cast<int>(rank));
    Ints values;
    for (int i = 0; i < sliced_axes_; ++i)
      values.push_back(
          name == "steps" ? draws_.one_of<std::int64_t>({1, 1, 2, 3, -1, -2})
          : draws_.one_in(6)
              ? draws_.one_of<std::int64_t>({std::numeric_limits<std::int64_t>::max(),
                                             std::numeric_limits<std::int64_t>::min(), -100, 100})
              : draws_.between(-6, 8));
    return list_tensor(values);
  }
  if (name == "pads" || name == "inner_pads") {
    Ints pads(2 * rank);
    for (std::size_t i = 0; i < pads.size(); ++i)
      pads[i] = name == "pads" ? draws_.between(draws_.one_in(3) ? -1 : 0, 2)
                               : draws_.between(0, std::min<std::int64_t>(2, x[i % rank] - 1));
    return list_tensor(pads);
  }
  if (name == "permuted") {  // indices that do not repeat along the first axis
    const std::int64_t size = x.at(0), rows = shape.empty() ? 1 : shape[0];
    if (rows > size) return std::nullopt;
    const std::int64_t columns = rows == 0 ? 0 : element_count(shape).value_or(0) / rows;
    Ints values(static_cast<std::size_t>(rows * columns));
    for (std::int64_t c = 0; c < columns; ++c) {
      const Ints order = draws_.permutation(static_cast<std::size_t>(size));
      for (std::int64_t r = 0; r < rows; ++r)
        values[static_cast<std::size_t>(r * columns + c)] =
            order[static_cast<std::size_t>(r)] - (draws_.one_in(3) ? size : 0);
    }
    return integer_tensor(dtype, shape, values);
  }
  if (name == "unpool") {  // every maximum in its own window of two by two
    Ints values;
    for (std::int64_t y = 0; y < x.at(2); ++y)
      for (std::int64_t w = 0; w < x.at(3); ++w)
        values.push_back((2 * y + draws_.below(2)) * 2 * x[3] + 2 * w + draws_.below(2));
    return integer_tensor(dtype, shape, values);
  }
  if (name == "resize_scales") {
    Floats scales(rank, 1.0);
    for (std::size_t a = 2; a < rank; ++a)
      scales[a] = draws_.one_of<double>({0.5, 0.6, 1, 1.5, 2, 2.5});
    return number_tensor(DType::F32, {signed_rank}, scales);
  }
  if (name == "resize_sizes") {
    Ints sizes = x;
    for (std::size_t a = 2; a < rank; ++a) sizes[a] = draws_.between(1, 9);
    return list_tensor(sizes);
  }
  if (name == "grid_size") {
    Ints sizes = {x.at(0), draws_.between(1, 3)};
    for (std::int64_t a = x.at(1); a > 0; --a) sizes.push_back(draws_.between(1, 5));
    return list_tensor(sizes);
  }
  if (name == "batched_boxes") {
    Floats boxes;
    for (std::int64_t b = shape.at(0); b > 0; --b)
      add_box(boxes, std::max<std::int64_t>(1, x.at(0)), draws_);
    return number_tensor(dtype, shape, boxes);
  }
  throw std::logic_error("there is no content " + content);
}

}  // namespace tessera::testing
