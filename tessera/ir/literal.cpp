#include "tessera/ir/literal.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "tessera/expr/text.h"
#include "tessera/support/half.h"

namespace tessera {
namespace {

/// Shortest decimal that rounds to the same number of a 16-bit type.
std::string shortest(double number, auto round) {
  if (!std::isfinite(number)) return float_text(number);
  for (int digits = 1;; ++digits) {
    const double shorter = std::stod(fmt::format("{:.{}g}", number, digits));
    if (round(shorter).bits == round(number).bits) return float_text(shorter);
  }
}

/// An element of any type.
std::string element_text(const Tensor& tensor, std::int64_t position) {
  // A small float has few digits: all are written.
  switch (is_small(tensor.dtype) && is_float(tensor.dtype) ? DType::F64 : tensor.dtype) {
    case DType::F16: return shortest(number_at(tensor, position), to_half);
    case DType::BF16: return shortest(number_at(tensor, position), to_bfloat16);
    case DType::F32: {
      const double number = number_at(tensor, position);
      std::string text = fmt::format("{}", static_cast<float>(number));
      const bool whole = text.find_first_not_of("-0123456789") == std::string::npos;
      return whole ? text + ".0" : text;
    }
    case DType::F64: return float_text(number_at(tensor, position));
    case DType::U64:
      return std::to_string(static_cast<std::uint64_t>(integer_at(tensor, position)));
    case DType::String: return quoted_text((*tensor.strings)[static_cast<std::size_t>(position)]);
    default: break;
  }
  return std::to_string(integer_at(tensor, position));
}

std::string hex_text(std::span<const std::byte> bytes) {
  std::string text = "hex(\"";
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text + "\")";
}

Expected<Bytes> parse_hex(Lexer& lexer) {
  TESSERA_TRY_DONE(lexer.expect("("));
  const Diagnostic bad = lexer.error("these are not hexadecimal bytes");
  TESSERA_TRY(const std::string digits, lexer.string("hexadecimal digits"));
  TESSERA_TRY_DONE(lexer.expect(")"));
  const auto value = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (digits.size() % 2 != 0) return bad;
  Buffer buffer(digits.size() / 2);
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    const int high = value(digits[2 * i]), low = value(digits[2 * i + 1]);
    if (high < 0 || low < 0) return bad;
    buffer.data()[i] = static_cast<std::byte>(high * 16 + low);
  }
  return std::move(buffer).freeze();
}

/// A list in brackets, or one item without them; `item` reads one.
template <class Item>
Expected<Done> parse_items(Lexer& lexer, Item item) {
  if (!lexer.accept("[")) return item();
  while (!lexer.accept("]")) {
    TESSERA_TRY_DONE(item());
    if (!lexer.at("]")) TESSERA_TRY_DONE(lexer.expect(","));
  }
  return Done{};
}

/// Whether an integer type other than u64 can represent this value.
bool fits(std::int64_t integer, DType dtype) {
  const auto [least, most] = integer_range(dtype);
  return integer >= least && integer <= most;
}

/// Parses elements into their storage form.
Expected<Bytes> parse_numbers(Lexer& lexer, DType dtype) {
  const auto width = static_cast<std::size_t>(byte_width(dtype));
  std::vector<std::byte> bytes;
  TESSERA_TRY_DONE(parse_items(lexer, [&]() -> Expected<Done> {
    bytes.resize(bytes.size() + width);
    std::byte* last = bytes.data() + bytes.size() - width;
    if (is_float(dtype)) {
      TESSERA_TRY(const double number, lexer.number("a number"));
      store_number(dtype, last, 0, number);
      return Done{};
    }
    std::int64_t integer = 0;
    if (dtype == DType::Bool && (lexer.at("true") || lexer.at("false"))) {
      integer = lexer.take().text == "true" ? 1 : 0;
    } else if (dtype == DType::U64) {
      if (lexer.peek().kind != Token::Kind::Integer) return lexer.expected("an integer of u64");
      integer = static_cast<std::int64_t>(lexer.take().integer);
    } else {
      const Token first = lexer.peek();
      TESSERA_TRY(integer, lexer.integer("an integer"));
      if (!fits(integer, dtype))
        return Diagnostic{.id = "text-constant",
                          .where = lexer.where(first),
                          .message = fmt::format("{} does not fit {}", integer, to_string(dtype))};
    }
    store_integer(dtype, last, 0, integer);
    return Done{};
  }));
  return Bytes::copy(bytes);
}

/// Whether every byte is a valid element of a small type.
bool has_valid_elements(const Tensor& tensor) {
  if (!is_small(tensor.dtype) || bit_width(tensor.dtype) == 8) return true;
  // The bits of a float are an unsigned integer.
  const DType integer = is_float(tensor.dtype) ? DType::U4 : tensor.dtype;
  const Tensor integers{integer, tensor.shape, tensor.bytes};
  for (std::int64_t i = 0; i < integers.count(); ++i)
    if (integer_at(integers, i) != wrapped_to(integer, integer_at(integers, i))) return false;
  return true;
}

Expected<Strings> parse_strings(Lexer& lexer) {
  Strings strings;
  TESSERA_TRY_DONE(parse_items(lexer, [&]() -> Expected<Done> {
    TESSERA_TRY(strings.emplace_back(), lexer.string("a string"));
    return Done{};
  }));
  return strings;
}

Expected<Bytes> parse_data(Lexer& lexer, const DataSource& data) {
  const Diagnostic none = lexer.error("data files are not allowed here");
  TESSERA_TRY_DONE(lexer.expect("("));
  TESSERA_TRY(const std::string file, lexer.string("the name of a file"));
  TESSERA_TRY_DONE(lexer.expect(","));
  TESSERA_TRY(const std::int64_t offset, lexer.integer("an offset"));
  TESSERA_TRY_DONE(lexer.expect(","));
  TESSERA_TRY(const std::int64_t length, lexer.integer("a length"));
  TESSERA_TRY_DONE(lexer.expect(")"));
  if (!data) return none;
  auto bytes = data(file, offset, length);
  if (!bytes) return located(std::move(bytes).error(), none.where);
  return bytes;
}

std::string list_text(const auto& items, auto text) {
  std::string result = "[";
  for (std::size_t i = 0; i < items.size(); ++i) result += (i == 0 ? "" : ", ") + text(items[i]);
  return result + "]";
}

}  // namespace

std::string to_text(const Tensor& tensor) {
  const Type type = Type::tensor(tensor.dtype, {tensor.shape.begin(), tensor.shape.end()});
  std::string text = to_string(type) + " ";
  std::string elements;
  const std::int64_t count = tensor.count();
  for (std::int64_t i = 0; i < count; ++i)
    elements += (i == 0 ? "" : ", ") + element_text(tensor, i);
  if (!tensor.shape.empty()) elements = "[" + elements + "]";
  if (tensor.dtype == DType::String) return text + elements;

  Lexer lexer(elements);
  const auto read = parse_numbers(lexer, tensor.dtype);
  const bool exact =
      read && read->size() == tensor.bytes.size() &&
      (read->size() == 0 || std::memcmp(read->data(), tensor.bytes.data(), read->size()) == 0);
  return text + (exact ? elements : hex_text(tensor.bytes.view()));
}

std::string to_text(const Attr& attr) {
  struct Writer {
    std::string operator()(std::int64_t value) const { return std::to_string(value); }
    std::string operator()(double value) const { return float_text(value); }
    std::string operator()(const std::string& value) const { return quoted_text(value); }
    std::string operator()(const Ints& values) const { return list_text(values, *this); }
    std::string operator()(const Floats& values) const { return list_text(values, *this); }
    std::string operator()(const Strings& values) const { return list_text(values, *this); }
    std::string operator()(const Tensor& value) const { return to_text(value); }
    std::string operator()(const Symbol& value) const { return "$" + name_text(value.name); }
  };
  return std::visit(Writer{}, attr);
}

bool at_tensor(const Lexer& lexer) {
  return lexer.peek().kind == Token::Kind::Name && !lexer.peek().quoted &&
         Lexer::is(lexer.peek(1), "[") && parse_dtype(lexer.peek().text);
}

Expected<Tensor> parse_tensor(Lexer& lexer, const DataSource& data) {
  const Diagnostic unsized = lexer.error("a constant has a shape of numbers");
  TESSERA_TRY(const Type type, parse_type(lexer));
  Tensor tensor{.dtype = type.dtype};
  if (!type.is_ranked_tensor()) return unsized;
  for (const Dim& dim : *type.shape) {
    if (!dim.constant()) return unsized;
    tensor.shape.push_back(*dim.constant());
  }
  const std::optional<std::int64_t> count = element_count(tensor.shape);
  if (!count || *count > (std::int64_t{1} << 58)) return unsized;

  const Diagnostic left_out = lexer.error("the content of this constant was left out");
  const auto wrong_count = [&](std::size_t found) {
    return Diagnostic{.id = "text-constant",
                      .where = left_out.where,
                      .message = fmt::format("{} are given", found),
                      .note = fmt::format("{} takes {} {}", to_string(type), *count,
                                          type.dtype == DType::String ? "strings" : "elements")};
  };
  if (lexer.at(".")) return left_out;
  if (type.dtype == DType::String) {
    TESSERA_TRY(Strings strings, parse_strings(lexer));
    if (strings.size() != static_cast<std::size_t>(*count)) return wrong_count(strings.size());
    return Tensor::of_strings(std::move(tensor.shape), std::move(strings));
  }
  const auto width = static_cast<std::size_t>(byte_width(type.dtype));
  if (lexer.accept("hex")) {
    TESSERA_TRY(tensor.bytes, parse_hex(lexer));
  } else if (lexer.accept("data")) {
    TESSERA_TRY(tensor.bytes, parse_data(lexer, data));
  } else {
    TESSERA_TRY(tensor.bytes, parse_numbers(lexer, type.dtype));
  }
  if (tensor.bytes.size() != static_cast<std::size_t>(*count) * width)
    return wrong_count((tensor.bytes.size() + width - 1) / width);
  if (!has_valid_elements(tensor))
    return Diagnostic{
        .id = "text-constant",
        .where = left_out.where,
        .message = fmt::format("a byte is not an element of {}", to_string(type.dtype))};
  // Misaligned mapped memory cannot be used in place.
  if (reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % width != 0)
    tensor.bytes = Bytes::copy(tensor.bytes.view());
  return tensor;
}

Expected<Attr> parse_attr(Lexer& lexer) {
  if (at_tensor(lexer)) {
    TESSERA_TRY(Tensor tensor, parse_tensor(lexer, {}));
    return Attr(std::move(tensor));
  }
  if (lexer.peek().kind == Token::Kind::String) return Attr(lexer.take().text);
  if (lexer.accept("$")) {
    const Diagnostic reserved = lexer.error("the name of a size must not start with #");
    TESSERA_TRY(std::string name, lexer.name("a name"));
    if (name.starts_with('#')) return reserved;
    return Attr(Symbol{std::move(name)});
  }
  const bool list = lexer.at("[");
  if (list && lexer.peek(1).kind == Token::Kind::String) {
    TESSERA_TRY(Strings strings, parse_strings(lexer));
    return Attr(std::move(strings));
  }
  Ints integers;
  Floats numbers;
  bool whole = true;
  TESSERA_TRY_DONE(parse_items(lexer, [&]() -> Expected<Done> {
    const bool negative = lexer.at("-");
    if (lexer.peek(negative ? 1 : 0).kind == Token::Kind::Integer) {
      TESSERA_TRY(integers.emplace_back(), lexer.integer("an integer"));
      numbers.push_back(static_cast<double>(integers.back()));
    } else {
      whole = false;
      TESSERA_TRY(numbers.emplace_back(), lexer.number("a value"));
    }
    return Done{};
  }));
  if (list) return whole ? Attr(std::move(integers)) : Attr(std::move(numbers));
  return whole ? Attr(integers[0]) : Attr(numbers[0]);
}

Expected<Tensor> parse_plain_tensor(Lexer& lexer) {
  const Diagnostic unfit = lexer.error("this is not a constant");
  TESSERA_TRY(const Attr attr, parse_attr(lexer));
  const auto of = [](auto numbers, DType dtype, std::vector<std::int64_t> shape) {
    Buffer buffer(numbers.size() * static_cast<std::size_t>(byte_width(dtype)));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if constexpr (std::is_same_v<decltype(numbers), Ints>)
        store_integer(dtype, buffer.data(), static_cast<std::int64_t>(i), numbers[i]);
      else
        store_number(dtype, buffer.data(), static_cast<std::int64_t>(i), numbers[i]);
    }
    return Tensor{.dtype = dtype, .shape = std::move(shape), .bytes = std::move(buffer).freeze()};
  };
  const auto length = [](const auto& list) {
    return std::vector<std::int64_t>{static_cast<std::int64_t>(list.size())};
  };
  if (const auto* integer = std::get_if<std::int64_t>(&attr))
    return of(Ints{*integer}, DType::I64, {});
  if (const auto* number = std::get_if<double>(&attr)) return of(Floats{*number}, DType::F32, {});
  if (const auto* integers = std::get_if<Ints>(&attr))
    return of(*integers, DType::I64, length(*integers));
  if (const auto* numbers = std::get_if<Floats>(&attr))
    return of(*numbers, DType::F32, length(*numbers));
  return unfit;
}

Expected<Dim> parse_size(Lexer& lexer) {
  const Diagnostic negative = lexer.error("a size is not negative");
  const Diagnostic reserved = lexer.error("the name of a size must not start with #");
  TESSERA_TRY(Dim dim, parse_dim(lexer));
  if (dim.constant() && *dim.constant() < 0) return negative;
  std::set<std::string> symbols;
  dim.collect_symbols(symbols);
  // Definitions use this prefix for the sizes of their own axes.
  if (std::ranges::any_of(symbols, [](const std::string& s) { return s.starts_with('#'); }))
    return reserved;
  return dim;
}

Expected<Type> parse_type(Lexer& lexer) {
  if (lexer.accept("?")) return Type::unknown();
  const Nesting nesting(lexer);
  if (nesting.too_deep()) return lexer.error("this is nested too deeply");
  const bool optional = lexer.at("opt");
  if (optional || lexer.at("seq")) {
    const Diagnostic unfit = lexer.error("there are no such values");
    lexer.take();
    TESSERA_TRY_DONE(lexer.expect("("));
    TESSERA_TRY(Type inner, parse_type(lexer));
    TESSERA_TRY_DONE(lexer.expect(")"));
    if (inner.kind == Type::Kind::Tensor)
      inner.kind = optional ? Type::Kind::Optional : Type::Kind::Sequence;
    else if (optional && inner.kind == Type::Kind::Sequence)
      inner.kind = Type::Kind::OptionalSequence;
    else
      return unfit;
    return inner;
  }
  const std::optional<DType> dtype = parse_dtype(lexer.peek().text);
  if (lexer.peek().kind != Token::Kind::Name || !dtype) return lexer.expected("a type");
  lexer.take();
  TESSERA_TRY_DONE(lexer.expect("["));
  Type type{.dtype = *dtype};
  if (lexer.accept(".")) {
    TESSERA_TRY_DONE(lexer.expect("."));
    TESSERA_TRY_DONE(lexer.expect("."));
    TESSERA_TRY_DONE(lexer.expect("]"));
    return type;
  }
  type.shape.emplace();
  while (!lexer.accept("]")) {
    TESSERA_TRY(type.shape->emplace_back(), parse_size(lexer));
    if (!lexer.at("]")) TESSERA_TRY_DONE(lexer.expect(","));
  }
  return type;
}

}  // namespace tessera
