#include "tests/programs/random_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "tessera/interp/interp.h"
#include "tessera/ir/builder.h"
#include "tessera/ops/catalog.h"
#include "tessera/support/rng.h"
#include "tests/programs/operand_patterns.h"

namespace tessera::testing {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// `F?[n,c*g,d+]content` in its parts.
struct OperandForm {
  std::string type;  // with what tells its binding from others of its class
  bool optional = false, constant = false;
  std::optional<std::vector<std::string>> dims;  // nothing: the content has a shape
  std::string content;
};

OperandForm parse_operand(std::string_view text) {
  OperandForm form;
  std::size_t end = 0;
  const auto is_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  // A word of a type is a capital letter with a lower-case one and digits; other words are kinds.
  if (std::isupper(static_cast<unsigned char>(text[0])) != 0) {
    end = 1;
    if (end < text.size() && text[end] == 'u') ++end;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
  } else {
    while (end < text.size() && is_name(text[end])) ++end;
  }
  form.type = text.substr(0, end);
  for (; end < text.size() && (text[end] == '?' || text[end] == '#'); ++end)
    (text[end] == '?' ? form.optional : form.constant) = true;
  if (end < text.size() && text[end] == '[') {
    const std::size_t close = text.find(']', end);
    form.dims = split(text.substr(end + 1, close - end - 1), ',');
    end = close + 1;
  }
  form.content = text.substr(end);
  return form;
}

const std::map<std::string, std::vector<DType>, std::less<>>& type_classes() {
  using enum DType;
  static const std::map<std::string, std::vector<DType>, std::less<>> all = {
      {"F", {F32, F32, F32, F32, F16, F64, BF16}},
      {"N", {F32, F32, F32, F16, F64, BF16, I32, I64, I64, I8, U8, I16, U16, U32, U64}},
      {"I", {I32, I64, I8, U8, I16, U16, U32, U64}},
      {"Iu", {U8, U16, U32, U64}},
      {"Z", {I64, I64, I32}},
      {"Q", {U8, I8}},
      {"B", {Bool}},
      {"A", {F32, F32, F32, F16, F64, BF16, I32, I64, I8, U8, I16, U16, U32, U64, Bool, Bool}},
      {"S", {String}},
      {"L", {I64}},
      {"J", {I32}},
      {"H", {F32}}};
  return all;
}

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

/// What the letters of a call stand for.
struct Bindings {
  std::map<std::string, DType> types;
  std::map<std::string, std::int64_t> sizes;
  std::map<std::string, Ints> lists;  // a.. and k+
};

class ProgramGenerator {
 public:
  ProgramGenerator(std::uint64_t seed, const RandomProgramOptions& options)
      : rng_(seed), options_(options), nodes_(1 + below(options.max_nodes)) {}

  RandomProgram run() {
    // Most calls are valid; a bound on the attempts keeps an unlucky seed from going on for ever.
    for (int attempt = 0; nodes_ > 0 && attempt < 200; ++attempt)
      if (below(24) == 0)
        add_control();
      else
        add_call(operand_patterns()[rng_.below(operand_patterns().size())]);
    return {*graph_.finish(chosen_outputs()), inputs_};
  }

 private:
  struct Item {
    Val value = {};
    Datum content;
    bool used = false;
  };

  int below(int bound) { return static_cast<int>(rng_.below(static_cast<std::uint64_t>(bound))); }
  bool one_in(int n) { return below(n) == 0; }
  /// `low` where nothing is between.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    if (high <= low) return low;
    return low + static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[rng_.below(list.size())];
  }

  /// Every value that nothing reads, and some others; at least one.
  Vals chosen_outputs() {
    Vals outputs;
    for (const Item& item : items_)
      if (!item.used || one_in(20)) outputs.push_back(item.value);
    if (outputs.empty()) outputs.push_back(add_leaf(random_tensor(DType::F32, {2}), false).value);
    return outputs;
  }

  std::int64_t random_size() {
    if (one_in(50)) return 0;
    if (one_in(12)) return one_of<std::int64_t>({9, 16, 17, 33});
    return one_of<std::int64_t>({1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8});
  }
  std::int64_t size_of(const std::string& letter, Bindings& bound) {
    if (const auto number = integer(letter)) return *number;
    const auto [at, fresh] = bound.sizes.try_emplace(letter, 0);
    if (fresh) at->second = letter == "g" ? between(1, 3) : random_size();
    return at->second;
  }
  std::size_t spatial(Bindings& bound) {
    const auto [at, fresh] = bound.sizes.try_emplace("spatial", 0);
    if (fresh) at->second = one_of<std::int64_t>({1, 2, 2, 2, 3});
    return static_cast<std::size_t>(at->second);
  }

  /// The shape that a form has, drawing what is not bound.
  Ints shape_of(const std::vector<std::string>& dims, Bindings& bound) {
    Ints shape;
    for (const std::string& dim : dims) {
      if (dim.starts_with("~")) {
        Ints list = list_of(dim.substr(1), bound);
        while (!list.empty() && one_in(4)) list.erase(list.begin());
        for (std::int64_t& size : list)
          if (one_in(4)) size = 1;
        shape.insert(shape.end(), list.begin(), list.end());
      } else if (dim.ends_with("..") || dim.ends_with("+")) {
        const Ints list = list_of(dim, bound);
        shape.insert(shape.end(), list.begin(), list.end());
      } else {
        std::int64_t size = 1;
        for (const std::string& factor : split(dim, '*')) size *= size_of(factor, bound);
        shape.push_back(size);
      }
    }
    return shape;
  }
  Ints list_of(const std::string& dim, Bindings& bound) {
    const std::string name = dim.substr(0, dim.find_first_of(".+"));
    const auto [at, fresh] = bound.lists.try_emplace(name);
    if (!fresh) return at->second;
    Ints list;
    if (dim.ends_with("+")) {
      // Windows are smaller than images.
      for (std::size_t i = spatial(bound); i > 0; --i)
        list.push_back(name == "k" ? between(1, 3) : between(one_in(30) ? 0 : 2, 9));
    } else {
      for (int i = below(4); i > 0; --i) list.push_back(random_size());
    }
    return bound.lists[name] = list;
  }

  /// Whether a shape has a form; binds what it stands for.
  static bool matches(const std::vector<std::string>& dims, std::size_t d,
                      std::span<const std::int64_t> shape, Bindings& bound) {
    if (d == dims.size()) return shape.empty();
    const std::string& dim = dims[d];
    if (dim.starts_with("~")) return false;
    if (dim.ends_with("..") || dim.ends_with("+")) {
      const std::size_t rest = dims.size() - d - 1;
      if (shape.size() < rest) return false;
      const std::size_t count = shape.size() - rest;
      const Ints list(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(count));
      const std::string name = dim.substr(0, dim.find_first_of(".+"));
      if (dim.ends_with("+")) {
        if (count < 1 || count > 3) return false;
        const auto [at, fresh] = bound.sizes.try_emplace("spatial", count);
        if (at->second != static_cast<std::int64_t>(count)) return false;
      }
      const auto [at, fresh] = bound.lists.try_emplace(name, list);
      return at->second == list && matches(dims, d + 1, shape.subspan(count), bound);
    }
    if (shape.empty()) return false;
    const auto factors = split(dim, '*');
    std::int64_t left = shape[0];
    for (std::size_t f = factors.size(); f-- > 0;) {
      if (f == 0) {
        if (const auto number = integer(factors[0])) {
          if (*number != left) return false;
        } else if (bound.sizes.try_emplace(factors[0], left).first->second != left) {
          return false;
        }
      } else {
        std::int64_t factor = 1;
        if (const auto number = integer(factors[f]))
          factor = *number;
        else if (const auto at = bound.sizes.find(factors[f]); at != bound.sizes.end())
          factor = at->second;
        else
          bound.sizes[factors[f]] = factor = left % 2 == 0 && left > 0 ? 2 : 1;
        if (factor == 0 || left % factor != 0) return false;
        left /= factor;
      }
    }
    return matches(dims, d + 1, shape.subspan(1), bound);
  }

  // Elements.

  double random_float() {
    if (options_.special_values && one_in(6))
      return one_of<double>({std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(), -0.0, 0.0, 1e-40, 4096, 1e-8,
                             -1e-6, 0.5, 100});
    if (style_ == 0) return static_cast<double>(between(-8, 8)) / 4;
    if (style_ == 1) return 4 * rng_.uniform() - 2;
    return static_cast<double>(between(-3, 3));
  }
  std::int64_t random_integer(DType dtype) {
    if (options_.special_values && one_in(5)) {
      const int bits = 8 * byte_width(dtype) - 1;
      const auto top = static_cast<std::int64_t>((std::uint64_t{1} << bits) - 1);
      return one_of<std::int64_t>(
          {top, -top - 1, -1, 0, top - 1, std::numeric_limits<std::int64_t>::min()});
    }
    return is_unsigned(dtype) ? between(0, 9) : between(-6, 9);
  }
  Tensor random_tensor(DType dtype, const Ints& shape) {
    const auto count = static_cast<std::size_t>(element_count(shape).value_or(0));
    if (dtype == DType::String) {
      std::vector<std::string> words(count);
      for (std::string& word : words)
        word = one_of<std::string>({"a", "b", "ab a", "Ba", "", "bb", "A a a"});
      return Tensor::of_strings(shape, words);
    }
    style_ = below(3);
    if (is_float(dtype)) {
      Floats values(count);
      for (double& value : values) value = random_float();
      return number_tensor(dtype, shape, values);
    }
    Ints values(count);
    for (std::int64_t& value : values)
      value = dtype == DType::Bool ? below(2) : random_integer(dtype);
    return integer_tensor(dtype, shape, values);
  }

  /// Elements that one function draws.
  template <class Draw>
  Tensor drawn(DType dtype, const Ints& shape, Draw draw) {
    Floats values(static_cast<std::size_t>(element_count(shape).value_or(0)));
    for (double& value : values) value = static_cast<double>(draw());
    return number_tensor(dtype, shape, values);
  }
  Tensor list(const Ints& values) {
    return integer_tensor(DType::I64, {static_cast<std::int64_t>(values.size())}, values);
  }

  /// Distinct axes of an operand, some counted from the end.
  Ints random_axes(std::size_t rank, bool some) {
    Ints axes;
    for (std::size_t a = 0; a < rank; ++a)
      if (one_in(2))
        axes.push_back(static_cast<std::int64_t>(a) -
                       (one_in(3) ? static_cast<std::int64_t>(rank) : 0));
    if (axes.empty() && some && rank > 0) axes.push_back(0);
    return axes;
  }

  std::optional<Tensor> content_of(const OperandForm& form, DType dtype, Bindings& bound) {
    const std::string& content = form.content;
    const Ints shape = form.dims ? shape_of(*form.dims, bound) : Ints{};
    if (content.empty()) return random_tensor(dtype, shape);
    if (content == "finite") {
      const bool special = std::exchange(options_.special_values, false);
      Tensor tensor = random_tensor(dtype, shape);
      options_.special_values = special;
      return tensor;
    }
    if (content[0] == '<') {  // an index
      const std::int64_t size = size_of(content.substr(1), bound);
      if (size == 0 && element_count(shape) != 0) return std::nullopt;
      return drawn(dtype, shape, [&] { return between(one_in(2) ? -size : 0, size - 1); });
    }
    if (content[0] == '=') {
      Floats values;
      for (const std::string& value : split(content.substr(1), ','))
        values.push_back(std::stod(value));
      return number_tensor(dtype, shape, values);
    }
    if (const std::size_t dots = content.find(".."); dots != std::string::npos)
      return drawn(dtype, shape, [&] {
        return between(*integer(content.substr(0, dots)), *integer(content.substr(dots + 2)));
      });
    if (const auto number = integer(content); number && content != "01")
      return drawn(dtype, shape, [&] { return *number; });
    if (content == "01") return drawn(dtype, shape, [&] { return between(0, 4) / 4.0; });
    if (content == "no") return drawn(dtype, shape, [] { return 0; });
    if (content == "positive") return drawn(dtype, shape, [&] { return between(1, 8) / 4.0; });
    if (content == "scale")
      return drawn(dtype, shape, [&] { return one_of<double>({0.25, 0.5, 1, 0.1, 2}); });
    if (content == "grid") return drawn(dtype, shape, [&] { return between(-5, 5) / 4.0; });
    if (content == "small") return drawn(dtype, shape, [&] { return between(0, 3); });
    if (content == "limit") return drawn(dtype, shape, [&] { return between(0, 9); });
    if (content == "delta") return drawn(dtype, shape, [&] { return between(1, 3); });
    if (content == "shift") return drawn(dtype, shape, [&] { return between(0, 7); });
    if (content == "exponent") return drawn(dtype, shape, [&] { return between(0, 3); });
    if (content == "digits") {
      std::vector<std::string> words(static_cast<std::size_t>(element_count(shape).value_or(0)));
      for (std::string& word : words) word = std::to_string(between(0, 9));
      return Tensor::of_strings(shape, words);
    }
    if (content == "boxes") {
      Floats boxes;
      for (std::int64_t b = element_count(shape).value_or(0) / 4; b > 0; --b) {
        const std::int64_t x = between(0, 3), y = between(0, 3);
        for (const std::int64_t at : {x, y, x + between(0, 4), y + between(0, 4)})
          boxes.push_back(static_cast<double>(at));
      }
      return number_tensor(dtype, shape, boxes);
    }
    if (content == "unpool_shape") return list({1, 1, between(4, 5), between(4, 6)});
    if (content == "up_to_k")
      return drawn(dtype, shape, [&] { return between(one_in(8) ? 0 : 1, size_of("k", bound)); });
    if (content == "shape") {
      Ints sizes;
      for (int i = below(4); i > 0; --i) sizes.push_back(random_size());
      return list(sizes);
    }
    if (content == "roi")
      return number_tensor(DType::F32, {4}, {0.25, 0, one_of<double>({0.75, 1.25}), 1});
    return content_about(form, dtype, shape, bound);
  }

  /// What depends on another operand: `name(N)`.
  std::optional<Tensor> content_about(const OperandForm& form, DType dtype, const Ints& shape,
                                      Bindings& bound) {
    const std::size_t open = form.content.find('(');
    const std::string name = form.content.substr(0, open);
    const auto number = static_cast<std::size_t>(form.content.at(open + 1) - '0');
    if (name == "lengths")  // of an axis of the first operand
      return drawn(dtype, shape,
                   [&] { return between(one_in(9) ? 0 : 1, operand_shape(0).at(number)); });
    if (name == "class")
      return drawn(dtype, shape, [&] {
        return between(0, std::max<std::int64_t>(operand_shape(0).at(number) - 1, 0));
      });
    const Ints x = operand_shape(number);
    const std::size_t rank = x.size();
    if (name == "axis") {
      if (rank == 0) return std::nullopt;
      return drawn(dtype, shape, [&] {
        return between(-static_cast<std::int64_t>(rank), static_cast<std::int64_t>(rank) - 1);
      });
    }
    if (name == "axes") return list(random_axes(rank, false));
    if (name == "count")
      return list({between(
          x.back() == 0 ? 0 : 1,
          std::max<std::int64_t>(1, std::min<std::int64_t>(3, *std::ranges::min_element(x))))});
    if (name == "ones") {
      Ints axes;
      for (std::size_t a = 0; a < rank; ++a)
        if (x[a] == 1 && one_in(2))
          axes.push_back(static_cast<std::int64_t>(a) -
                         (one_in(2) ? static_cast<std::int64_t>(rank) : 0));
      return list(axes);
    }
    if (name == "new_axes")
      return list(one_in(2) ? Ints{between(0, static_cast<std::int64_t>(rank))} : Ints{-1, 0});
    if (name == "reshape") {
      Ints to = x;
      switch (below(4)) {
        case 0: to = {-1}; break;
        case 1: to.insert(to.begin() + below(static_cast<int>(rank) + 1), 1); break;
        case 2: std::ranges::reverse(to); break;
        default:
          if (rank > 1) {
            to[0] *= to[1];
            to.erase(to.begin() + 1);
          }
      }
      return list(to);
    }
    if (name == "expand") {
      Ints to = x;
      for (std::int64_t& size : to)
        size = size == 1 && one_in(2) ? between(1, 3) : one_in(3) ? 1 : size;
      if (one_in(3)) to.insert(to.begin(), between(1, 3));
      return list(to);
    }
    if (name == "repeats" || name == "shape_like") {
      Ints to = x;
      for (std::int64_t& size : to)
        size = name == "repeats" ? between(one_in(12) ? 0 : 1, 2) : between(1, 6);
      return list(to);
    }
    if (name == "split") {
      const std::int64_t first = between(0, x.at(0));
      return list({first, x.at(0) - first});
    }
    if (name == "slice_axes") {
      Ints axes(rank);
      std::iota(axes.begin(), axes.end(), one_in(2) ? 0 : -static_cast<std::int64_t>(rank));
      for (std::size_t i = axes.size(); i > 1; --i) std::swap(axes[i - 1], axes[rng_.below(i)]);
      axes.resize(static_cast<std::size_t>(slices_));
      return list(axes);
    }
    if (name == "starts" || name == "ends" || name == "steps") {
      if (name == "starts") slices_ = 1 + below(static_cast<int>(rank));
      Ints values;
      for (int i = 0; i < slices_; ++i)
        values.push_back(name == "steps" ? one_of<std::int64_t>({1, 1, 2, 3, -1, -2})
                         : one_in(6)     ? one_of<std::int64_t>(
                                           {std::numeric_limits<std::int64_t>::max(),
                                                std::numeric_limits<std::int64_t>::min(), -100, 100})
                                     : between(-6, 8));
      return list(values);
    }
    if (name == "pads" || name == "inner_pads") {
      Ints pads(2 * rank);
      for (std::size_t i = 0; i < pads.size(); ++i)
        pads[i] =
            name == "pads"
                ? between(one_in(3) ? -1 : 0, 2)
                : between(0, std::min<std::int64_t>(2, std::max<std::int64_t>(0, x[i % rank] - 1)));
      return list(pads);
    }
    if (name == "permuted") {  // indices that do not repeat along the first axis
      const std::int64_t size = x.at(0), rows = shape.empty() ? 1 : shape[0];
      if (rows > size) return std::nullopt;
      const std::int64_t columns = rows == 0 ? 0 : element_count(shape).value_or(0) / rows;
      Ints values(static_cast<std::size_t>(rows * columns));
      for (std::int64_t c = 0; c < columns; ++c) {
        Ints order(static_cast<std::size_t>(size));
        std::iota(order.begin(), order.end(), 0);
        for (std::size_t i = order.size(); i > 1; --i)
          std::swap(order[i - 1], order[rng_.below(i)]);
        for (std::int64_t r = 0; r < rows; ++r)
          values[static_cast<std::size_t>(r * columns + c)] =
              order[static_cast<std::size_t>(r)] - (one_in(3) ? size : 0);
      }
      return integer_tensor(dtype, shape, values);
    }
    if (name == "unpool") {  // every maximum in its own window of two by two
      Ints values;
      for (std::int64_t y = 0; y < x.at(2); ++y)
        for (std::int64_t w = 0; w < x.at(3); ++w)
          values.push_back((2 * y + below(2)) * 2 * x[3] + 2 * w + below(2));
      return integer_tensor(dtype, shape, values);
    }
    if (name == "resize_scales") {
      Floats scales(rank, 1.0);
      for (std::size_t a = 2; a < rank; ++a) scales[a] = one_of<double>({0.5, 0.6, 1, 1.5, 2, 2.5});
      return number_tensor(DType::F32, {static_cast<std::int64_t>(rank)}, scales);
    }
    if (name == "resize_sizes") {
      Ints sizes = x;
      for (std::size_t a = 2; a < rank; ++a) sizes[a] = between(1, 9);
      return list(sizes);
    }
    if (name == "grid_size") {
      Ints sizes = {x.at(0), between(1, 3)};
      for (std::int64_t a = x.at(1); a > 0; --a) sizes.push_back(between(1, 5));
      return list(sizes);
    }
    if (name == "batched_boxes") {
      Floats boxes;
      for (std::int64_t b = shape.at(0); b > 0; --b) {
        const std::int64_t left = between(0, 3), top = between(0, 3);
        for (const std::int64_t at : {between(0, std::max<std::int64_t>(0, x.at(0) - 1)), left, top,
                                      left + between(0, 4), top + between(0, 4)})
          boxes.push_back(static_cast<double>(at));
      }
      return number_tensor(dtype, shape, boxes);
    }
    bound.sizes["unknown content " + name] = 0;
    return std::nullopt;
  }

  const Ints& operand_shape(std::size_t operand) const { return operand_shapes_.at(operand); }

  // Operands.

  Item add_leaf(Tensor content, bool constant) {
    Item item{.content = content};
    if (constant || (content.dtype != DType::String && one_in(3))) {
      item.value = graph_.constant(std::move(content));
    } else {
      item.value = graph_.input(fmt::format("x{}", inputs_.size()), content.dtype,
                                {content.shape.begin(), content.shape.end()});
      inputs_.push_back(item.content);
    }
    item.used = !one_in(30);  // an output may be an input or a constant
    items_.push_back(item);
    return item;
  }

  /// A value of the program that has the form; nothing if there is none.
  std::optional<std::size_t> existing(const OperandForm& form, Bindings& bound) {
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const Datum& content = items_[i].content;
      if (form.type == "sequence" || form.type == "optional") {
        if (content.kind() ==
            (form.type == "sequence" ? Datum::Kind::Sequence : Datum::Kind::Optional))
          fitting.push_back(i);
        continue;
      }
      if (!content.is_tensor() || !form.dims) continue;
      if (!form.content.empty() && (form.content != "finite" || !is_finite(content.tensor())))
        continue;
      const Tensor& tensor = content.tensor();
      const auto type = bound.types.find(form.type);
      if (type != bound.types.end() ? tensor.dtype != type->second
                                    : std::ranges::count(class_of(form.type), tensor.dtype) == 0)
        continue;
      Bindings trial = bound;
      if (matches(*form.dims, 0, tensor.shape, trial)) fitting.push_back(i);
    }
    if (fitting.empty()) return std::nullopt;
    const std::size_t chosen = one_of(fitting);
    if (items_[chosen].content.is_tensor()) {
      const Tensor& tensor = items_[chosen].content.tensor();
      matches(*form.dims, 0, tensor.shape, bound);
      bound.types[form.type] = tensor.dtype;
    }
    return chosen;
  }
  static const std::vector<DType>& class_of(const std::string& type) {
    return type_classes().find(type.substr(0, type.find_first_of("0123456789")))->second;
  }

  bool add_operand(const OperandForm& form, Bindings& bound, Vals& values,
                   std::vector<Datum>& contents, std::vector<std::size_t>& from) {
    const auto leave_out = [&] {
      values.emplace_back();
      contents.emplace_back();
      operand_shapes_.emplace_back();
      return true;
    };
    if (form.optional &&
        (one_in(2) || (form.dims && form.dims->size() == 1 && (*form.dims)[0] == "0")))
      return leave_out();
    const auto take = [&](const Item& item) {
      values.push_back(item.value);
      contents.push_back(item.content);
      operand_shapes_.push_back(item.content.is_tensor() ? item.content.tensor().shape : Ints{});
      return true;
    };
    if (!form.constant && !one_in(4))
      if (const auto found = existing(form, bound)) {
        from.push_back(*found);
        return take(items_[*found]);
      }
    if (form.type == "sequence" || form.type == "optional") {
      const std::string maker = form.type == "sequence" ? "sequence_construct" : "optional";
      auto shapes = std::exchange(operand_shapes_, {});
      add_call(*std::ranges::find(operand_patterns(), maker, &OperandPattern::op));
      operand_shapes_ = std::move(shapes);
      const auto found = existing(form, bound);
      if (!found) return false;
      from.push_back(*found);
      return take(items_[*found]);
    }
    const auto [type, unbound] = bound.types.try_emplace(form.type, DType::F32);
    if (unbound) type->second = one_of(class_of(form.type));
    const auto content = content_of(form, type->second, bound);
    if (!content || content->count() > 20'000) return false;
    return take(add_leaf(*content, form.constant && !one_in(6)));
  }

  // Attributes.

  std::optional<Attr> attribute(const AttrSpec& spec, const std::string& from, Bindings& bound) {
    if (from[0] == '@') return named_attribute(from.substr(1));
    if (from[0] == '$') {
      const std::string letter = from.substr(1);
      if (const auto list = bound.lists.find(letter); list != bound.lists.end())
        return Attr(list->second);
      return Attr(size_of(letter, bound));
    }
    const bool is_axis = from.starts_with("axis("), is_perm = from.starts_with("perm(");
    if (is_axis || is_perm) {
      const auto rank =
          static_cast<std::int64_t>(operand_shape(static_cast<std::size_t>(from[5] - '0')).size());
      if (is_axis) return rank == 0 ? std::nullopt : std::optional<Attr>(between(-rank, rank - 1));
      Ints order(static_cast<std::size_t>(rank));
      std::iota(order.begin(), order.end(), 0);
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng_.below(i)]);
      return Attr(order);
    }
    const std::size_t power = from.find('^'), dots = from.find("..");
    if (dots != std::string::npos && std::holds_alternative<std::string>(spec.value) == false) {
      const std::int64_t low = *integer(from.substr(0, dots));
      const std::int64_t high =
          *integer(from.substr(dots + 2, power == std::string::npos ? power : power - dots - 2));
      if (power == std::string::npos) return Attr(between(low, high));
      const std::string count = from.substr(power + 1);
      const std::size_t length = count == "s"    ? spatial(bound)
                                 : count == "2s" ? 2 * spatial(bound)
                                                 : static_cast<std::size_t>(*integer(count));
      Ints values(length);
      for (std::int64_t& value : values) value = between(low, high);
      return Attr(values);
    }
    const std::string chosen = one_of(split(from, '|'));
    if (std::holds_alternative<std::int64_t>(spec.value)) return Attr(*integer(chosen));
    if (std::holds_alternative<double>(spec.value)) return Attr(std::stod(chosen));
    return Attr(chosen);
  }
  std::optional<Attr> named_attribute(const std::string& name) {
    using enum DType;
    if (name == "dtype") {
      static const std::vector<DType> small = {F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0,
                                               F4E2M1,   I4,         U4,     I2,         U2};
      return Attr(std::string(to_string(one_of(one_in(3) ? small : class_of("A")))));
    }
    if (name == "number") return Attr(std::string(to_string(one_of(class_of("N")))));
    if (name == "float") return Attr(std::string(to_string(one_of(class_of("F")))));
    if (name == "quantized") return Attr(std::string(to_string(one_of(class_of("Q")))));
    if (name == "one_number") return Attr(random_tensor(one_of(class_of("A")), {1}));
    if (name == "axes") return Attr(one_of<Ints>({{0}, {1}, {0, 1}, {-1}, {0, 2}}));
    if (name == "last_axis") return Attr(one_of<Ints>({{1}, {-1}, {0}}));
    if (name == "last_two") return Attr(one_of<Ints>({{2, 3}, {-2, -1}}));
    if (name == "two_twos") return Attr(Ints{2, 2});
    if (name == "two_floats") return Attr(Floats{0.25, 0.5});
    if (name == "output_shape") return Attr(Ints{between(3, 9), between(3, 9)});
    if (name == "zero") return Attr(Ints{0});
    if (name == "zero_one") return Attr(Ints{0, 1});
    if (name == "zero_two") return Attr(Ints{0, 2});
    if (name == "two_three") return Attr(Ints{2, 3});
    if (name == "two_keys") return Attr(integer_tensor(I64, {2}, {0, 1}));
    if (name == "two_values") return Attr(number_tensor(F32, {2}, {0.5, 2}));
    if (name == "one_value") return Attr(number_tensor(F32, {1}, {4}));
    if (name == "four") return Attr(Ints{0, 1, 2, 3});
    if (name == "pool") return Attr(Ints{1, 3, 1, 2, 3, 1});
    if (name == "four_floats") return Attr(Floats{0.5, 1, 2, 0.25});
    if (name == "words") return Attr(Strings{"a", "bb"});
    if (name == "stopwords") return Attr(Strings{"a", "BB"});
    if (name == "no_type") return Attr(std::string("f32[2]"));
    if (name == "one_float") return Attr(Floats{0.5});
    const std::size_t functions = name == "rnn_activations"    ? 1
                                  : name == "gru_activations"  ? 2
                                  : name == "lstm_activations" ? 3
                                                               : 0;
    if (functions == 0) return std::nullopt;
    Strings activations;
    while (activations.size() < functions)
      activations.push_back(
          one_of<std::string>({"Tanh", "Sigmoid", "Relu", "Affine", "LeakyRelu", "ThresholdedRelu",
                               "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus"}));
    return Attr(activations);
  }
  /// Attributes of resize, which depend on each other.
  Attrs resize_attributes() {
    Attrs attrs;
    const std::string mode = one_of<std::string>({"nearest", "linear", "cubic"});
    attrs.set("mode", mode);
    attrs.set("coordinate_transformation_mode",
              one_of<std::string>({"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                   "align_corners", "asymmetric"}));
    if (mode == "nearest") {
      attrs.set("nearest_mode",
                one_of<std::string>({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
    } else {
      attrs.set("antialias", std::int64_t{one_in(2)});
      attrs.set("exclude_outside", std::int64_t{one_in(2)});
    }
    if (mode == "cubic") attrs.set("cubic_coeff_a", one_of<double>({-0.75, -0.5}));
    return attrs;
  }
  std::optional<Attrs> attributes(const OpDef& op, const std::string& forms, Bindings& bound) {
    if (forms == "@resize") return resize_attributes();
    Attrs attrs;
    for (const std::string& form : split(forms, ' ')) {
      const std::size_t equals = form.find('=');
      const bool always = form[equals - 1] == '!';
      const std::string name = form.substr(0, equals - (always ? 1 : 0));
      const auto spec = std::ranges::find(op.attrs, name, &AttrSpec::name);
      if (spec == op.attrs.end()) throw std::logic_error(op.name + " has no attribute " + name);
      if (!always && one_in(2)) continue;
      if (auto value = attribute(*spec, form.substr(equals + 1), bound))
        attrs.set(name, *std::move(value));
      else if (always)
        return std::nullopt;
    }
    return attrs;
  }

  // Calls.

  void add_call(const OperandPattern& pattern) {
    const OpDef* op = find_op(pattern.op);
    if (op == nullptr) throw std::logic_error("there is no operator " + pattern.op);
    Bindings bound;
    Vals values;
    std::vector<Datum> contents;
    std::vector<std::size_t> from;
    operand_shapes_.clear();
    slices_ = 1;
    for (const std::string& operand : split(pattern.operands, ' '))
      if (!add_operand(parse_operand(operand), bound, values, contents, from)) return;
    while (!values.empty() && !values.back().present()) {
      values.pop_back();
      contents.pop_back();
    }
    const auto given = attributes(*op, pattern.attributes, bound);
    if (!given) return;
    const auto attrs = completed(*op, *given);
    if (!attrs) return;
    std::vector<Known> known;
    std::vector<interp::Value> operands;
    for (std::size_t i = 0; i < values.size(); ++i) {
      known.push_back(values[i].present() ? graph_.known(values[i]) : Known{.present = false});
      operands.push_back({.datum = contents[i]});
    }
    const auto inferred = infer(*op, *attrs, known);
    if (!inferred || inferred->empty()) return;
    // Trailing results may be left out, where they are optional.
    const auto most = static_cast<int>(inferred->size());
    const bool fixed = op->name == "split" || op->name == "adagrad" || op->name == "momentum";
    const int outputs = fixed ? most : 1 + below(most);
    const auto results = interp::run_op<double>(*op, *attrs, operands, outputs, {});
    if (!results) return;
    for (const interp::Value& result : *results)
      if (result.datum.is_tensor() && result.datum.tensor().count() > 20'000) return;
    add_items(graph_.call(*op, values, *given, outputs), *results, from);
  }
  void add_items(const Vals& values, const std::vector<interp::Value>& results,
                 const std::vector<std::size_t>& from) {
    for (const std::size_t i : from) items_[i].used = true;
    for (std::size_t i = 0; i < values.size(); ++i)
      items_.push_back({.value = values[i], .content = results.at(i).datum});
    --nodes_;
  }

  // Control flow: bodies of a few elementwise operators over tensors of one type.

  Val random_body(GraphBuilder& body, Vals values) {
    for (int i = 1 + below(3); i > 0; --i) {
      const Val x = one_of(values), y = one_of(values);
      values.push_back(
          one_in(3) ? body.op(one_of<std::string>({"tanh", "neg", "relu", "sigmoid"}), {x})
                    : body.op(one_of<std::string>({"add", "mul", "sub", "max", "min"}), {x, y}));
    }
    return values.back();
  }
  Item scalar(DType dtype, std::int64_t value) {
    return add_leaf(integer_tensor(dtype, {}, {value}), false);
  }

  void add_control() {
    Bindings bound;
    Vals values;
    std::vector<Datum> contents;
    std::vector<std::size_t> from;
    operand_shapes_.clear();
    const std::string shape = one_in(2) ? "[n,a..]" : "[n,m]";
    for (int i = 0; i < 2; ++i)
      if (!add_operand(parse_operand("F" + shape), bound, values, contents, from)) return;
    const Type type = Type::tensor(contents[0].tensor().dtype, {contents[0].tensor().shape.begin(),
                                                                contents[0].tensor().shape.end()});
    const int which = below(3);
    which == 0   ? add_branch(type, values, contents, from)
    : which == 1 ? add_loop(type, values, contents, from)
                 : add_scan(type, values, contents, from);
  }

  using Sources = std::vector<std::size_t>;
  static std::shared_ptr<const Graph> shared(GraphBuilder& body, const Vals& outputs) {
    return std::make_shared<const Graph>(*body.finish(outputs));
  }

  void add_branch(const Type& type, Vals values, std::vector<Datum> contents, const Sources& from) {
    const Item condition = scalar(DType::Bool, below(2));
    values.insert(values.begin(), condition.value);
    contents.insert(contents.begin(), condition.content);
    GraphBuilder::Subgraphs branches;
    for (int i = 0; i < 2; ++i) {
      GraphBuilder body(fmt::format("b{}_{}_", nodes_, i));
      const Vals captures = {body.input("", {.type = type}), body.input("", {.type = type})};
      branches.push_back(shared(body, {random_body(body, captures)}));
    }
    add_control_node("if_else", values, contents, {}, branches, {type}, from);
  }
  void add_loop(const Type& type, Vals values, std::vector<Datum> contents, const Sources& from) {
    // A state and a capture; stops after some rounds, or by a condition.
    const Item trips = scalar(DType::I64, below(5)),
               condition = scalar(DType::Bool, one_in(6) ? 0 : 1);
    values.insert(values.begin(), {trips.value, one_in(3) ? Val{} : condition.value});
    contents.insert(contents.begin(),
                    {trips.content, values[1].present() ? condition.content : Datum()});
    GraphBuilder body(fmt::format("l{}_", nodes_));
    const Val step = body.input("", DType::I64, {});
    const Val again = body.input("", DType::Bool, {});
    const Val state = body.input("", {.type = type}), capture = body.input("", {.type = type});
    const Val next = one_in(2) ? body.op("identity", {again})
                               : body.op("less", {step, body.number(2, DType::I64)});
    const Val state_next = random_body(body, {state, capture});
    const Val stacked = random_body(body, {state, state_next});
    add_control_node("loop", values, contents, {{"states", std::int64_t{1}}},
                     {shared(body, {next, state_next, stacked})}, {type, Type{.dtype = type.dtype}},
                     from);
  }
  void add_scan(const Type& type, Vals values, std::vector<Datum> contents, const Sources& from) {
    // A state like the slices of the other along its first or last axis.
    const auto rank = static_cast<std::int64_t>(type.shape->size());
    const std::int64_t axis = one_in(2) ? 0 : between(-rank, rank - 1), direction = below(2);
    Shape slice = *type.shape;
    const Dim count = slice[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)];
    slice.erase(slice.begin() + (axis < 0 ? axis + rank : axis));
    Ints sizes;
    for (const Dim& dim : slice) sizes.push_back(dim.constant().value());
    const Item state = add_leaf(random_tensor(type.dtype, sizes), false);
    values = {state.value, values[0]};
    contents = {state.content, contents[0]};
    const Type of_slice = Type::tensor(type.dtype, slice);
    GraphBuilder body(fmt::format("s{}_", nodes_));
    const Val before = body.input("", {.type = of_slice}),
              element = body.input("", {.type = of_slice});
    const Val after = random_body(body, {before, element});
    const Val result = random_body(body, {after, element});
    const std::int64_t out_axis = one_in(2) ? 0 : -1;
    Shape stacked = slice;
    stacked.insert(out_axis == 0 ? stacked.begin() : stacked.end(), count);
    add_control_node("scan", values, contents,
                     {{"states", std::int64_t{1}},
                      {"elements", std::int64_t{1}},
                      {"input_axes", Ints{axis}},
                      {"input_directions", Ints{direction}},
                      {"output_axes", Ints{out_axis}},
                      {"output_directions", Ints{below(2)}}},
                     {shared(body, {after, result})}, {of_slice, Type::tensor(type.dtype, stacked)},
                     from);
  }
  void add_control_node(const std::string& name, const Vals& values,
                        const std::vector<Datum>& contents, const Attrs& attrs,
                        const GraphBuilder::Subgraphs& subgraphs, const std::vector<Type>& types,
                        const Sources& from) {
    const OpDef& op = *find_op(name);
    GraphBuilder alone;
    Vals inputs;
    std::vector<Datum> given;
    for (std::size_t i = 0; i < values.size(); ++i) {
      inputs.push_back(values[i].present() ? alone.input("", {.type = graph_.known(values[i]).type})
                                           : Val{});
      if (values[i].present()) given.push_back(contents[i]);
    }
    const auto graph = alone.finish(alone.call_control(op, inputs, attrs, subgraphs, types));
    if (!graph) return;
    const auto results = interp::run(*graph, given, {});
    if (!results) return;
    std::vector<interp::Value> found;
    for (const Datum& result : *results) found.push_back({.datum = result});
    add_items(graph_.call_control(op, values, attrs, subgraphs, types), found, from);
  }

  Rng rng_;
  RandomProgramOptions options_;
  GraphBuilder graph_;
  std::vector<Datum> inputs_;
  std::vector<Item> items_;
  std::vector<Ints> operand_shapes_;
  int slices_ = 1;  // axes of a slice
  int style_ = 0;
  int nodes_;
};

}  // namespace

RandomProgram random_program(std::uint64_t seed, const RandomProgramOptions& options) {
  return ProgramGenerator(seed, options).run();
}

namespace {

/// Operators and attributes that are not drawn, and why.
const std::map<std::string, std::string, std::less<>>& not_drawn() {
  static const std::map<std::string, std::string, std::less<>> all = {
      {"flex_attention", "has subgraphs; its node tests"},
      {"image_decoder", "takes files; tests of its formats"},
      {"ms_qlinear_average_pool.channels_last", "any other than the default is refused"},
      {"ms_qlinear_global_average_pool.channels_last", "any other than the default is refused"},
      {"ml_svm_classifier", "its attributes are a model; recorded models"},
      {"ml_svm_regressor", "its attributes are a model; recorded models"},
      {"ml_tree_ensemble", "its attributes are a model; recorded models"},
      {"ml_tree_ensemble_classifier", "its attributes are a model; recorded models"},
      {"ml_tree_ensemble_regressor", "its attributes are a model; recorded models"}};
  return all;
}

bool is_drawn(const OpDef& op) {
  return op.pure && !not_drawn().contains(op.name);
}

}  // namespace

void CatalogCoverage::add(const Graph& graph) {
  for (const GraphNode& node : graph.nodes()) {
    auto& seen = attributes_[node.op->name];
    for (const AttrSpec& spec : node.op->attrs)
      if (const Attr* value = node.attrs->find(spec.name);
          value != nullptr && (spec.need != AttrSpec::Need::Default || !equal(*value, spec.value)))
        seen.insert(spec.name);
  }
}

std::vector<std::string> CatalogCoverage::missing() const {
  std::vector<std::string> names;
  for (const OpDef& op : catalog()) {
    if (!is_drawn(op)) continue;
    const auto seen = attributes_.find(op.name);
    if (seen == attributes_.end()) {
      names.push_back(op.name);
      continue;
    }
    for (const AttrSpec& spec : op.attrs)
      if (const std::string name = op.name + "." + spec.name;
          !seen->second.contains(spec.name) && !not_drawn().contains(name))
        names.push_back(name);
  }
  return names;
}

std::string CatalogCoverage::summary() const {
  std::size_t operators = 0, attributes = 0, left_out = 0;
  for (const OpDef& op : catalog()) {
    left_out += is_drawn(op) ? 0 : 1;
    if (is_drawn(op)) ++operators, attributes += op.attrs.size();
  }
  std::size_t without = 0, unset = 0;
  std::string list;
  for (const std::string& name : missing()) {
    const bool attribute = name.find('.') != std::string::npos;
    (attribute ? unset : without) += 1;
    list += (list.empty() ? ": " : ", ") + name;
  }
  return fmt::format(
      "{} of {} operators ({} are random by nature, or models, and are tested elsewhere), {} of {} "
      "attributes{}{}",
      operators - without, operators, left_out, attributes - unset, attributes,
      list.empty() ? "" : "; missing", list);
}

}  // namespace tessera::testing
