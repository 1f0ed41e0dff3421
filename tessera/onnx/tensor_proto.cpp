#include "tessera/onnx/tensor_proto.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <fmt/ranges.h>

#include "onnx.pb.h"
#include "tessera/onnx/data_type.h"
#include "tessera/onnx/wire.h"
#include "tessera/support/file.h"

namespace tessera::onnx {
namespace {

/// Data of at least this size stays mapped even if it is misaligned.
constexpr std::size_t large_size = std::size_t{1} << 20;

Diagnostic invalid(std::string message) {
  return {.id = "onnx-invalid-tensor", .message = std::move(message)};
}

/// Text of a shape, limited to the first extents: a file may state any number of them.
std::string shape_text(std::span<const std::int64_t> shape) {
  constexpr std::size_t shown = 8;
  const bool all = shape.size() <= shown;
  return fmt::format("[{}{}]", fmt::join(all ? shape : shape.first(shown), ", "),
                     all ? "" : ", ...");
}

/// Element count and bytes that the shape and dtype of a tensor require.
struct TensorLayout {
  DType dtype;
  std::int64_t count;
  std::uint64_t size;  // in bytes
};

/// The elements of a typed field, narrowed to the width of the dtype.
template <class Field>
Expected<Bytes> elements_of(const Field& field, const TensorLayout& layout) {
  using Element = std::remove_cvref_t<decltype(field.Get(0))>;
  if (field.size() != layout.count)
    return invalid(fmt::format("{} elements are stored, but the shape requires {}", field.size(),
                               layout.count));
  Buffer buffer(static_cast<std::size_t>(layout.size));
  if (sizeof(Element) == static_cast<std::size_t>(byte_width(layout.dtype))) {
    if (buffer.size() != 0) std::memcpy(buffer.data(), field.data(), buffer.size());
  } else if constexpr (std::is_integral_v<Element>) {
    // Narrow floating-point numbers are stored as their bits.
    const DType bits = byte_width(layout.dtype) == 1 ? DType::U8 : DType::U16;
    const DType stored = is_float(layout.dtype) ? bits : layout.dtype;
    for (int i = 0; i < field.size(); ++i)
      store_integer(stored, buffer.data(), i, static_cast<std::int64_t>(field.Get(i)));
  }
  return std::move(buffer).freeze();
}

Expected<Bytes> typed_elements(const ::onnx::TensorProto& proto, const TensorLayout& layout) {
  switch (layout.dtype) {
    case DType::F32: return elements_of(proto.float_data(), layout);
    case DType::F64: return elements_of(proto.double_data(), layout);
    case DType::I64: return elements_of(proto.int64_data(), layout);
    case DType::U32:
    case DType::U64: return elements_of(proto.uint64_data(), layout);
    default: break;
  }
  TESSERA_CHECK(layout.dtype != DType::String, "text is no number");
  return elements_of(proto.int32_data(), layout);
}

/// Whether several elements share a byte, the first one in the lowest bits.
bool is_packed(DType dtype) {
  return is_small(dtype) && bit_width(dtype) < 8;
}

/// Elements per byte, and bytes for a number of elements.
int packed_per_byte(DType dtype) {
  return 8 / bit_width(dtype);
}
std::int64_t packed_size(DType dtype, std::int64_t count) {
  const int per_byte = packed_per_byte(dtype);
  return count / per_byte + (count % per_byte != 0 ? 1 : 0);
}

Bytes unpacked(const Bytes& packed, DType dtype, std::int64_t count) {
  const int per_byte = packed_per_byte(dtype), bits = bit_width(dtype), mask = (1 << bits) - 1;
  const int sign = is_signed(dtype) ? 1 << (bits - 1) : 0;
  Buffer buffer(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto byte = std::to_integer<int>(packed.data()[i / per_byte]);
    const int element = (byte >> (i % per_byte * bits)) & mask;
    buffer.data()[i] = static_cast<std::byte>((element ^ sign) - sign);
  }
  return std::move(buffer).freeze();
}

Bytes packed(const Tensor& tensor) {
  const int per_byte = packed_per_byte(tensor.dtype), bits = bit_width(tensor.dtype);
  const std::int64_t count = tensor.count();
  std::vector<std::byte> bytes(static_cast<std::size_t>(packed_size(tensor.dtype, count)));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::byte element = tensor.bytes.data()[i] & std::byte((1 << bits) - 1);
    bytes[static_cast<std::size_t>(i / per_byte)] |= element << (i % per_byte * bits);
  }
  return Bytes::copy(bytes);
}

Expected<Bytes> external_elements(const ::onnx::TensorProto& proto, const TensorStore& store,
                                  std::uint64_t size) {
  if (store.external == nullptr)
    return Diagnostic{.id = "onnx-external-data",
                      .message = "external data is read for models only"};
  ExternalRange range;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") range.location = entry.value();
    if (entry.key() == "offset") range.offset = entry.value();
    if (entry.key() == "length") range.length = entry.value();
  }
  return store.external->read(range, size);
}

/// Normalizes bytes from a file: booleans become 0 and 1, misaligned small data is copied.
Bytes normalized(const Bytes& bytes, DType dtype) {
  const auto neither_0_nor_1 = [](std::byte b) { return b > std::byte{1}; };
  if (dtype == DType::Bool &&
      std::any_of(bytes.view().begin(), bytes.view().end(), neither_0_nor_1)) {
    Buffer ones(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i)
      ones.data()[i] = bytes.data()[i] == std::byte{0} ? std::byte{0} : std::byte{1};
    return std::move(ones).freeze();
  }
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const bool aligned = address % static_cast<std::uintptr_t>(byte_width(dtype)) == 0;
  return aligned || bytes.size() >= large_size ? bytes : Bytes::copy(bytes.view());
}

Expected<Bytes> elements_of(const ::onnx::TensorProto& proto, const TensorStore& store,
                            const TensorLayout& layout) {
  const bool external = proto.data_location() == ::onnx::TensorProto::EXTERNAL;
  const Bytes raw = proto.has_raw_data() ? store.payloads.at(proto.raw_data()) : Bytes{};
  if (external && layout.count != 0) {
    TESSERA_TRY(const Bytes bytes, external_elements(proto, store, layout.size));
    return normalized(bytes, layout.dtype);
  }
  if (raw.size() == 0) return typed_elements(proto, layout);
  if (raw.size() != layout.size)
    return invalid(
        fmt::format("{} bytes are stored, but the shape requires {}", raw.size(), layout.size));
  return normalized(raw, layout.dtype);
}

Expected<Tensor> decode(const ::onnx::TensorProto& proto, const TensorStore& store) {
  TESSERA_TRY(const DType dtype, dtype_of(proto.data_type()));
  if (proto.has_segment())
    return Diagnostic{.id = "onnx-unsupported-segment",
                      .message = "the tensor is stored in segments",
                      .help = "store each tensor in one piece"};
  std::vector<std::int64_t> shape(proto.dims().begin(), proto.dims().end());
  const auto count = element_count(shape);
  TensorLayout layout{dtype, count.value_or(0), 0};
  if (is_packed(dtype)) layout = {DType::U8, packed_size(dtype, layout.count), 0};
  if (!count || __builtin_mul_overflow(layout.count, byte_width(layout.dtype), &layout.size))
    return invalid(fmt::format("the shape {} is negative or too large", shape_text(shape)));
  if (dtype != DType::String) {
    TESSERA_TRY(Bytes bytes, elements_of(proto, store, layout));
    if (is_packed(dtype)) bytes = unpacked(bytes, dtype, *count);
    return Tensor{dtype, std::move(shape), std::move(bytes)};
  }
  if (proto.string_data_size() != *count)
    return invalid(fmt::format("{} strings are stored, but the shape requires {}",
                               proto.string_data_size(), *count));
  return Tensor::of_strings(std::move(shape),
                            {proto.string_data().begin(), proto.string_data().end()});
}

/// The fields of SequenceProto and of OptionalProto that hold a value of each kind, and the field
/// that says which; their schema is not installed.
enum ContentField : std::uint32_t {
  KindOfContent = 2,
  TensorContent = 3,
  SequenceContent = 5,
  OptionalContent = 7
};

Diagnostic unsupported_type() {
  return {.id = "onnx-unsupported-type",
          .message = "a map, a sparse tensor or an unknown type is not supported",
          .note = "tessera reads tensors, sequences and optionals"};
}

Expected<Datum> datum_of(const Bytes& source, const ::onnx::TypeProto& type, TensorStore& store);

/// Elements of a sequence or optional.
Expected<std::vector<Datum>> contents_of(const Bytes& source, const ::onnx::TypeProto& type,
                                         TensorStore& store) {
  std::uint32_t content = TensorContent;
  if (type.has_sequence_type()) content = SequenceContent;
  if (type.has_optional_type()) content = OptionalContent;
  std::vector<Datum> contents;
  TESSERA_TRY_DONE(for_each_field(
      source.view(), [&](std::uint32_t field, std::span<const std::byte> bytes) -> Expected<Done> {
        if (field != content) return Done{};
        const auto offset = static_cast<std::size_t>(bytes.data() - source.data());
        TESSERA_TRY(Datum datum, datum_of(source.slice(offset, bytes.size()), type, store));
        contents.push_back(std::move(datum));
        return Done{};
      }));
  return contents;
}

Expected<Datum> datum_of(const Bytes& source, const ::onnx::TypeProto& type, TensorStore& store) {
  if (type.has_sequence_type()) {
    TESSERA_TRY(auto elements, contents_of(source, type.sequence_type().elem_type(), store));
    return Datum::sequence(std::move(elements));
  }
  if (type.has_optional_type()) {
    TESSERA_TRY(auto content, contents_of(source, type.optional_type().elem_type(), store));
    return content.empty() ? Datum::optional() : Datum::optional(std::move(content.back()));
  }
  if (!type.has_tensor_type()) return unsupported_type();
  ::onnx::TensorProto proto;
  TESSERA_TRY_DONE(parse_message(source, Message::Tensor, proto, store.payloads));
  TESSERA_TRY(Tensor tensor, tensor_of(proto, store));
  return Datum(std::move(tensor));
}

}  // namespace

Expected<Tensor> tensor_of(const ::onnx::TensorProto& proto, const TensorStore& store) {
  auto tensor = decode(proto, store);
  if (tensor) return tensor;
  return located(std::move(tensor).error(), {.file = store.path.string(), .item = proto.name()});
}

void set_tensor(::onnx::TensorProto& proto, const Tensor& tensor, Payloads& payloads) {
  proto.set_data_type(data_type_of(tensor.dtype));
  proto.mutable_dims()->Assign(tensor.shape.begin(), tensor.shape.end());
  if (tensor.dtype == DType::String)
    proto.mutable_string_data()->Assign(tensor.strings->begin(), tensor.strings->end());
  else
    proto.set_raw_data(payloads.add(is_packed(tensor.dtype) ? packed(tensor) : tensor.bytes));
}

std::string encode(const Datum& datum) {
  if (datum.is_tensor()) {
    ::onnx::TensorProto proto;
    Payloads payloads;
    set_tensor(proto, datum.tensor(), payloads);
    if (!proto.has_raw_data()) return proto.SerializeAsString();
    const auto bytes = payloads.at(proto.raw_data()).view();
    proto.clear_raw_data();
    return proto.SerializeAsString() +
           encode(tensor_field::RawData,
                  std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  std::string message;
  for (const Datum& element : datum.present() ? datum.elements() : std::vector<Datum>{}) {
    const bool is_sequence = element.kind() == Datum::Kind::Sequence;
    const ContentField field = element.is_tensor() ? TensorContent
                               : is_sequence       ? SequenceContent
                                                   : OptionalContent;
    if (message.empty()) message = encode(KindOfContent, std::uint64_t{field} - 2);
    message += encode(field, encode(element));
  }
  return message;
}

Expected<Datum> read_datum(const std::filesystem::path& path, const ::onnx::TypeProto& type) {
  TESSERA_TRY(const Bytes file, map_file(path));
  return parse_datum(file, path, type);
}

Expected<Datum> parse_datum(const Bytes& file, const std::filesystem::path& path,
                            const ::onnx::TypeProto& type) {
  TensorStore store{.path = path};
  auto datum = datum_of(file, type, store);
  if (datum) return datum;
  return located(std::move(datum).error(), {.file = path.string()});
}

}  // namespace tessera::onnx
