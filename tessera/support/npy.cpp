#include "tessera/support/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "tessera/support/file.h"

namespace tessera {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are stored little-endian");

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t preamble_size = 8;  // the magic and two bytes of version
constexpr std::size_t header_limit = std::size_t{1} << 16;
constexpr std::size_t data_alignment = 64;

/// Element type in NumPy's notation, without the byte-order mark.
struct TypeCode {
  std::string_view code;
  DType dtype;
};

constexpr TypeCode type_codes[] = {
    {"f2", DType::F16}, {"f4", DType::F32}, {"f8", DType::F64}, {"i1", DType::I8},
    {"i2", DType::I16}, {"i4", DType::I32}, {"i8", DType::I64}, {"u1", DType::U8},
    {"u2", DType::U16}, {"u4", DType::U32}, {"u8", DType::U64}, {"b1", DType::Bool},
};

Diagnostic malformed(std::string message) {
  return {.id = "npy-malformed",
          .message = std::move(message),
          .help = "save the array again with numpy.save"};
}

Diagnostic unsupported(std::string message) {
  return {
      .id = "npy-unsupported",
      .message = std::move(message),
      .note =
          "tessera reads and writes bool, integers of 8 to 64 bits and floats of 16 to 64 bits"};
}

struct Header {
  DType dtype = DType::F32;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Parser of the header, a Python dictionary with exactly three keys:
///
///     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::optional<DType> unnamed)
      : rest_(text), unnamed_(unnamed) {}

  Expected<Header> parse() {
    if (!take("{")) return malformed("the header is not a dictionary");
    while (!take("}")) {
      TESSERA_TRY_DONE(entry());
      if (take(",")) continue;
      if (!take("}")) return malformed("the header does not end");
      break;
    }
    skip_space();
    if (!rest_.empty()) return malformed("something follows the header's dictionary");
    if (!descr_ || !order_ || !shape_)
      return malformed("the header lacks descr, fortran_order or shape");
    Header header{.fortran_order = *order_, .shape = std::move(*shape_)};
    TESSERA_TRY_DONE(set_type(header));
    return header;
  }

 private:
  Expected<Done> entry() {
    const auto key = quoted();
    if (!key || !take(":")) return malformed("the header has no key where one is expected");
    if (*key == "descr" && !descr_) {
      skip_space();
      if (rest_.starts_with('[')) return unsupported("an array of records has no element type");
      descr_ = quoted();
      if (descr_) return Done{};
    } else if (*key == "fortran_order" && !order_) {
      if (take("False"))
        order_ = false;
      else if (take("True"))
        order_ = true;
      if (order_) return Done{};
    } else if (*key == "shape" && !shape_) {
      shape_ = tuple();
      if (shape_) return Done{};
    } else {
      return malformed(fmt::format("the header has an unknown or repeated key \"{}\"", *key));
    }
    return malformed(fmt::format("the header's {} cannot be read", *key));
  }

  Expected<Done> set_type(Header& header) const {
    const std::string_view text = *descr_;
    const char order = text.empty() ? '\0' : text.front();
    const bool marked = std::string_view("<>|=").find(order) != std::string_view::npos;
    for (const TypeCode& type : type_codes) {
      if (!marked || text.substr(1) != type.code) continue;
      header.dtype = type.dtype;
      header.big_endian = order == '>';
      return Done{};
    }
    // ml_dtypes calls one of its floats f1, and gives the others no name.
    const std::string_view code = marked ? text.substr(1) : "";
    const bool is_float1 = code == "f1" && unnamed_ == DType::F8E5M2;
    if (is_float1 || (unnamed_ && code == fmt::format("V{}", byte_width(*unnamed_)))) {
      header.dtype = *unnamed_;
      return Done{};
    }
    return unsupported(fmt::format("the element type \"{}\" is not supported", text));
  }

  void skip_space() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size()));
  }

  bool take(std::string_view token) {
    skip_space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  std::optional<std::string> quoted() {
    skip_space();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    const std::size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::optional<std::vector<std::int64_t>> tuple() {
    if (!take("(")) return std::nullopt;
    std::vector<std::int64_t> extents;
    while (!take(")")) {
      skip_space();
      std::int64_t extent = 0;
      const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      if (error != std::errc()) return std::nullopt;
      rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
      extents.push_back(extent);
      if (take(",")) continue;
      if (!take(")") || extents.size() == 1) return std::nullopt;  // (3) is a number in Python
      break;
    }
    return extents;
  }

  std::string_view rest_;
  std::optional<DType> unnamed_;
  std::optional<std::string> descr_;
  std::optional<bool> order_;
  std::optional<std::vector<std::int64_t>> shape_;
};

/// Converts elements to row-major order and native byte order, and booleans to 0 and 1.
Bytes rearranged(const Bytes& stored, const Header& header) {
  const auto width = static_cast<std::size_t>(byte_width(header.dtype));
  const std::size_t rank = header.shape.size();
  std::vector<std::size_t> strides(rank), position(rank, 0);
  std::size_t stride = width;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t axis = header.fortran_order ? i : rank - 1 - i;
    strides[axis] = stride;
    stride *= static_cast<std::size_t>(header.shape[axis]);
  }
  Buffer out(stored.size());
  const std::byte* from = stored.data();
  for (std::size_t to = 0; to < out.size(); to += width) {
    std::byte* element = out.data() + to;
    std::memcpy(element, from, width);
    if (header.big_endian) std::reverse(element, element + width);
    if (header.dtype == DType::Bool && *element != std::byte{0}) *element = std::byte{1};
    if (is_small(header.dtype) && bit_width(header.dtype) < 8) {
      // Unused high bits of a sub-byte element may have any value.
      const DType integer = is_float(header.dtype) ? DType::U4 : header.dtype;
      store_integer(integer, element, 0, std::to_integer<int>(*element));
    }
    for (std::size_t axis = rank; axis-- > 0;) {
      from += strides[axis];
      if (++position[axis] < static_cast<std::size_t>(header.shape[axis])) break;
      from -= strides[axis] * position[axis];
      position[axis] = 0;
    }
  }
  return std::move(out).freeze();
}

Expected<Tensor> parse(const Bytes& file, std::optional<DType> unnamed) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(magic) || text.size() < preamble_size)
    return malformed("the file is not a NumPy array");
  const int version = static_cast<unsigned char>(text[magic.size()]);
  if (version < 1 || version > 3) return unsupported(fmt::format("format version {}", version));

  const std::size_t length_width = version == 1 ? 2 : 4;
  std::uint32_t length = 0;
  if (text.size() - preamble_size < length_width) return malformed("the header is cut off");
  std::memcpy(&length, text.data() + preamble_size, length_width);
  const std::size_t header_at = preamble_size + length_width;
  if (length > text.size() - header_at) return malformed("the header is cut off");
  if (length > header_limit) return unsupported(fmt::format("a header of {} bytes", length));
  TESSERA_TRY(Header header, HeaderParser(text.substr(header_at, length), unnamed).parse());

  const auto count = element_count(header.shape);
  std::uint64_t size = 0;
  if (!count || __builtin_mul_overflow(*count, byte_width(header.dtype), &size))
    return malformed("the shape is negative or too large");
  const Bytes stored = file.slice(header_at + length, file.size() - header_at - length);
  if (stored.size() != size)
    return malformed(
        fmt::format("{} bytes are stored, but the shape requires {}", stored.size(), size));

  const bool plain_order = !header.fortran_order || header.shape.size() < 2;
  const auto address = reinterpret_cast<std::uintptr_t>(stored.data());
  const bool aligned = address % static_cast<std::uintptr_t>(byte_width(header.dtype)) == 0;
  const bool any_byte = bit_width(header.dtype) >= 8;  // is an element
  const bool as_is = plain_order && !header.big_endian && aligned && any_byte;
  Bytes bytes = as_is ? stored : rearranged(stored, header);
  return Tensor{header.dtype, std::move(header.shape), std::move(bytes)};
}

std::string header_text(const Tensor& tensor, DType written) {
  const auto code = std::find_if(std::begin(type_codes), std::end(type_codes),
                                 [&](const TypeCode& type) { return type.dtype == written; });
  std::string shape;
  for (const std::int64_t extent : tensor.shape) shape += fmt::format("{}, ", extent);
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 byte_width(written) == 1 ? '|' : '<', code->code, shape);
  const std::size_t unpadded = preamble_size + 2 + text.size() + 1;
  text.append((data_alignment - unpadded % data_alignment) % data_alignment, ' ');
  return text + '\n';
}

}  // namespace

DType npy_dtype(DType dtype) {
  const bool is_small_float = is_small(dtype) && is_float(dtype);
  return is_small_float || dtype == DType::BF16 ? DType::F32 : storage_of(dtype);
}

Expected<Tensor> read_npy(const std::filesystem::path& path, std::optional<DType> unnamed) {
  TESSERA_TRY(const Bytes file, map_file(path));
  return parse_npy(file, path.string(), unnamed);
}

Expected<Tensor> parse_npy(const Bytes& file, const std::string& name,
                           std::optional<DType> unnamed) {
  auto tensor = parse(file, unnamed);
  if (tensor) return tensor;
  return located(std::move(tensor).error(), {.file = name});
}

Expected<Done> write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  const auto refused = [&](const char* what) {
    return located(unsupported(what), {.file = path.string()});
  };
  if (tensor.dtype == DType::String) return refused("text is not written as a NumPy array");
  const DType written = npy_dtype(tensor.dtype);
  const std::string header = header_text(tensor, written);
  if (header.size() > 0xffff) return refused("the shape has too many axes for a NumPy array");

  return write_file(path, [&](std::ostream& out) {
    out << magic << '\1' << '\0' << static_cast<char>(header.size() & 0xff)
        << static_cast<char>(header.size() >> 8) << header;
    if (written == tensor.dtype || !is_float(tensor.dtype)) {
      out.write(reinterpret_cast<const char*>(tensor.bytes.data()),
                static_cast<std::streamsize>(tensor.bytes.size()));
      return;
    }
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
      const auto element = static_cast<float>(number_at(tensor, i));
      out.write(reinterpret_cast<const char*>(&element), sizeof(element));
    }
  });
}

}  // namespace tessera
