#include "tessera/triton/type_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace tessera::triton {
namespace {

constexpr std::int64_t kMostTensorElements = std::int64_t{1} << 26;

struct ElementInfo {
  std::string_view name;
  Element element;
  int bits;
  DType carrier;  // of tile IR; for a float8, its bits
};
constexpr std::array kElements = {
    ElementInfo{"i1", Element::I1, 1, DType::Bool},
    ElementInfo{"i8", Element::I8, 8, DType::I8},
    ElementInfo{"i16", Element::I16, 16, DType::I16},
    ElementInfo{"i32", Element::I32, 32, DType::I32},
    ElementInfo{"i64", Element::I64, 64, DType::I64},
    ElementInfo{"f8E4M3FN", Element::F8E4M3FN, 8, DType::U8},
    ElementInfo{"f8E4M3FNUZ", Element::F8E4M3FNUZ, 8, DType::U8},
    ElementInfo{"f8E4M3B11FNUZ", Element::F8E4M3B11FNUZ, 8, DType::U8},
    ElementInfo{"f8E5M2", Element::F8E5M2, 8, DType::U8},
    ElementInfo{"f8E5M2FNUZ", Element::F8E5M2FNUZ, 8, DType::U8},
    ElementInfo{"f16", Element::F16, 16, DType::F16},
    ElementInfo{"bf16", Element::BF16, 16, DType::BF16},
    ElementInfo{"f32", Element::F32, 32, DType::F32},
    ElementInfo{"f64", Element::F64, 64, DType::F64},
};

std::optional<Element> element_named(std::string_view name) {
  for (const ElementInfo& row : kElements) {
    if (row.name == name) return row.element;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> integer_of(std::string_view text) {
  const bool negative = text.starts_with('-');
  const std::string_view digits = text.substr(negative ? 1 : 0);
  const bool hex = digits.starts_with("0x");
  std::uint64_t magnitude = 0;
  const char* first = digits.data() + (hex ? 2 : 0);
  const char* last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(first, last, magnitude, hex ? 16 : 10);
  if (error != std::errc() || end != last) return std::nullopt;
  return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
}

bool TypeParser::at_type() const {
  if (peek().kind == Token::Kind::Type) return true;
  return peek().is_word("tensor") ||
         (peek().kind == Token::Kind::Word && element_named(peek().text));
}

Expected<Type> TypeParser::parse_type() {
  if (depth_ > kMostDepth) return unsupported("types are nested too deeply");
  if (peek().is_word("tensor")) return parse_tensor();
  if (peek().kind == Token::Kind::Type) {
    if (peek().text != "tt.ptr") return unsupported(fmt::format("type !{}", peek().text));
    take();
    TESSERA_TRY_DONE(expect("<"));
    ++depth_;
    TESSERA_TRY(Type type, parse_type());
    --depth_;
    if (accept(",")) take();  // the address space
    TESSERA_TRY_DONE(expect(">"));
    if (type.is_tensor) return unsupported("pointers to tensors");
    ++type.pointers;
    return type;
  }
  const auto element = element_named(peek().text);
  if (peek().kind != Token::Kind::Word || !element)
    return unsupported(fmt::format("type {}", peek().text));
  take();
  return Type{.element = *element};
}

/// tensor<64x32xf32>, whose shape the scanner cuts into `64` and `x32xf32`.
Expected<Type> TypeParser::parse_tensor() {
  take();
  TESSERA_TRY_DONE(expect("<"));
  Type type;
  std::string_view rest;
  std::string word;
  std::int64_t elements = 1;
  if (peek().kind != Token::Kind::Number) return unsupported("tensors of rank 0");
  std::string extent = take().text;
  for (;;) {
    const auto size = integer_of(extent);
    if (!size || *size < 1 || *size > kMostTensorElements) return wrong("an extent");
    elements *= *size;
    if (elements > kMostTensorElements) return unsupported("tensors of so many elements");
    type.shape.push_back(*size);
    if (rest.empty()) {
      if (peek().kind != Token::Kind::Word || !peek().text.starts_with('x')) return wrong("x");
      word = take().text;
      rest = word;
    }
    rest.remove_prefix(1);  // x
    if (rest.empty() || rest.front() < '0' || rest.front() > '9') break;
    const std::size_t end = std::min(rest.find('x'), rest.size());
    if (end == rest.size()) return wrong("the element type of a tensor");
    extent = std::string(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  if (rest.empty()) {
    ++depth_;
    TESSERA_TRY(const Type pointee, parse_type());
    --depth_;
    type.element = pointee.element;
    type.pointers = pointee.pointers;
  } else {
    const auto element = element_named(rest);
    if (!element) return unsupported(fmt::format("element type {}", rest));
    type.element = *element;
  }
  TESSERA_TRY_DONE(expect(">"));
  type.is_tensor = true;
  return type;
}

bool is_integer(Element element) {
  return element <= Element::I64;
}
bool is_float8(Element element) {
  return element >= Element::F8E4M3FN && element <= Element::F8E5M2FNUZ;
}
int bit_width(Element element) {
  return kElements[static_cast<std::size_t>(element)].bits;
}
DType carrier_of(Element element) {
  return kElements[static_cast<std::size_t>(element)].carrier;
}

std::string to_string(const Type& type) {
  std::string element(kElements[static_cast<std::size_t>(type.element)].name);
  for (int i = 0; i < type.pointers; ++i) element = fmt::format("!tt.ptr<{}>", element);
  if (!type.is_tensor) return element;
  std::string shape;
  for (const std::int64_t extent : type.shape) shape += fmt::format("{}x", extent);
  return fmt::format("tensor<{}{}>", shape, element);
}

}  // namespace tessera::triton
