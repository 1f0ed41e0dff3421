#include "tests/programs/operand_form.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace tessera::testing {

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

const std::vector<DType>& class_of(std::string_view type) {
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
  return all.find(type.substr(0, type.find_first_of("0123456789")))->second;
}

std::int64_t random_size(Draws& draws) {
  if (draws.one_in(50)) return 0;
  if (draws.one_in(12)) return draws.one_of<std::int64_t>({9, 16, 17, 33});
  return draws.one_of<std::int64_t>({1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8});
}

std::int64_t size_of(const std::string& letter, Bindings& bound, Draws& draws) {
  if (const auto number = integer(letter)) return *number;
  const auto [at, is_new] = bound.sizes.try_emplace(letter, 0);
  if (is_new) at->second = letter == "g" ? draws.between(1, 3) : random_size(draws);
  return at->second;
}

std::size_t spatial_rank(Bindings& bound, Draws& draws) {
  const auto [at, is_new] = bound.sizes.try_emplace("spatial", 0);
  if (is_new) at->second = draws.one_of<std::int64_t>({1, 2, 2, 2, 3});
  return static_cast<std::size_t>(at->second);
}

namespace {

bool is_list(std::string_view dim) {
  return dim.ends_with("..") || dim.ends_with("+");
}
std::string list_name(const std::string& dim) {
  return dim.substr(0, dim.find_first_of(".+"));
}

Ints list_of(const std::string& dim, Bindings& bound, Draws& draws) {
  const std::string name = list_name(dim);
  if (const auto at = bound.lists.find(name); at != bound.lists.end()) return at->second;
  Ints list;
  if (dim.ends_with("+")) {
    // Windows are smaller than images.
    for (std::size_t i = spatial_rank(bound, draws); i > 0; --i)
      list.push_back(name == "k" ? draws.between(1, 3)
                                 : draws.between(draws.one_in(30) ? 0 : 2, 9));
  } else {
    for (int i = draws.below(4); i > 0; --i) list.push_back(random_size(draws));
  }
  return bound.lists[name] = list;
}

}  // namespace

Ints shape_of(const std::vector<std::string>& dims, Bindings& bound, Draws& draws) {
  Ints shape;
  for (const std::string& dim : dims) {
    if (dim.starts_with("~")) {
      Ints list = list_of(dim.substr(1), bound, draws);
      while (!list.empty() && draws.one_in(4)) list.erase(list.begin());
      for (std::int64_t& size : list)
        if (draws.one_in(4)) size = 1;
      shape.insert(shape.end(), list.begin(), list.end());
    } else if (is_list(dim)) {
      const Ints list = list_of(dim, bound, draws);
      shape.insert(shape.end(), list.begin(), list.end());
    } else {
      std::int64_t size = 1;
      for (const std::string& factor : split(dim, '*')) size *= size_of(factor, bound, draws);
      shape.push_back(size);
    }
  }
  return shape;
}

bool matches(std::span<const std::string> dims, std::span<const std::int64_t> shape,
             Bindings& bound) {
  if (dims.empty()) return shape.empty();
  const std::string& dim = dims[0];
  if (dim.starts_with("~")) return false;
  if (is_list(dim)) {
    const std::size_t rest = dims.size() - 1;
    if (shape.size() < rest) return false;
    const std::size_t count = shape.size() - rest;
    const Ints list(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(count));
    if (dim.ends_with("+")) {
      if (count < 1 || count > 3) return false;
      const auto [at, is_new] = bound.sizes.try_emplace("spatial", count);
      if (at->second != static_cast<std::int64_t>(count)) return false;
    }
    const auto [at, is_new] = bound.lists.try_emplace(list_name(dim), list);
    return at->second == list && matches(dims.subspan(1), shape.subspan(count), bound);
  }
  if (shape.empty()) return false;
  const auto factors = split(dim, '*');
  std::int64_t left = shape[0];
  for (std::size_t f = factors.size(); f-- > 1;) {
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
  const auto number = integer(factors[0]);
  if (left != (number ? *number : bound.sizes.try_emplace(factors[0], left).first->second))
    return false;
  return matches(dims.subspan(1), shape.subspan(1), bound);
}

}  // namespace tessera::testing
