#include "tessera/runtime/host/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace tessera::host {
namespace {

bool is_number(DType dtype) {
  return is_float(dtype) || is_integer(dtype);
}
bool is_text(DType dtype) {
  return dtype == DType::String;
}

void check_storage(const Tensor& tensor) {
  const auto count = static_cast<std::size_t>(tensor.count());
  if (tensor.dtype == DType::String) {
    TESSERA_CHECK(tensor.strings != nullptr && tensor.strings->size() == count,
                  "a tensor of {} texts holds another number of them", count);
  } else {
    const auto width = static_cast<std::size_t>(byte_width(tensor.dtype));
    TESSERA_CHECK(tensor.bytes.size() == count * width, "a tensor of {} elements has {} bytes",
                  count, tensor.bytes.size());
  }
}

template <class T>
T list_or_none(const Attrs& attrs, std::string_view name) {
  const Attr* attr = attrs.find(name);
  if (attr == nullptr) return {};
  TESSERA_CHECK(std::holds_alternative<T>(*attr), "attribute {} is of kind {}", name,
                kind_of(*attr));
  return std::get<T>(*attr);
}

}  // namespace

Diagnostic Arguments::fault(std::string message, std::string note) const {
  return {
      .id = fmt::format("host-{}", name_), .message = std::move(message), .note = std::move(note)};
}

Expected<Datum> Arguments::datum(std::size_t index) const {
  if (!has(index)) return fault(fmt::format("input {} is missing", index));
  if (call_.inputs[index].is_tensor()) check_storage(call_.inputs[index].tensor());
  return call_.inputs[index];
}

Expected<Tensor> Arguments::tensor(std::size_t index) const {
  TESSERA_TRY(const Datum datum, this->datum(index));
  if (!datum.is_tensor()) return fault(fmt::format("input {} is not a tensor", index));
  return datum.tensor();
}

Expected<Tensor> Arguments::tensor_of(std::size_t index, bool (*accepted)(DType),
                                      std::string_view expected) const {
  TESSERA_TRY(Tensor tensor, this->tensor(index));
  if (!accepted(tensor.dtype))
    return fault(fmt::format("input {} has dtype {}", index, to_string(tensor.dtype)),
                 fmt::format("the elements must be {}", expected));
  return tensor;
}

Expected<Tensor> Arguments::number_tensor(std::size_t index) const {
  return tensor_of(index, is_number, "numbers");
}
Expected<Tensor> Arguments::float_tensor(std::size_t index) const {
  return tensor_of(index, is_float, "floating-point numbers");
}
Expected<Tensor> Arguments::integer_tensor(std::size_t index) const {
  return tensor_of(index, is_integer, "integers");
}
Expected<Tensor> Arguments::text_tensor(std::size_t index) const {
  return tensor_of(index, is_text, "strings");
}

Expected<std::vector<Datum>> Arguments::sequence(std::size_t index) const {
  TESSERA_TRY(const Datum datum, this->datum(index));
  if (datum.kind() != Datum::Kind::Sequence)
    return fault(fmt::format("input {} is not a sequence", index));
  for (const Datum& element : datum.elements()) {
    if (!element.is_tensor())
      return fault(fmt::format("input {} holds something else than tensors", index));
    check_storage(element.tensor());
  }
  return datum.elements();
}

Expected<std::int64_t> Arguments::integer(std::size_t index) const {
  TESSERA_TRY(const Tensor tensor, integer_tensor(index));
  if (tensor.count() != 1)
    return fault(fmt::format("input {} has {} elements", index, tensor.count()),
                 "one number is expected");
  return integer_at(tensor, 0);
}

Expected<double> Arguments::number(std::size_t index) const {
  TESSERA_TRY(const Tensor tensor, number_tensor(index));
  if (tensor.count() != 1)
    return fault(fmt::format("input {} has {} elements", index, tensor.count()),
                 "one number is expected");
  return number_at(tensor, 0);
}

Expected<std::int64_t> Arguments::place(std::string_view what, std::int64_t index,
                                        std::int64_t extent) const {
  if (index < -extent || index >= extent)
    return fault(fmt::format("{} {} is out of range", what, index),
                 fmt::format("it must lie in [{}, {})", -extent, extent));
  return index < 0 ? index + extent : index;
}

Expected<std::size_t> Arguments::axis(std::int64_t axis, std::size_t rank) const {
  TESSERA_TRY(const std::int64_t found, place("axis", axis, static_cast<std::int64_t>(rank)));
  return static_cast<std::size_t>(found);
}

Ints Arguments::ints(std::string_view attr) const {
  return list_or_none<Ints>(attrs(), attr);
}
Floats Arguments::floats(std::string_view attr) const {
  return list_or_none<Floats>(attrs(), attr);
}
Strings Arguments::strings(std::string_view attr) const {
  return list_or_none<Strings>(attrs(), attr);
}

Expected<DType> Arguments::dtype(std::string_view attr, DType otherwise) const {
  if (!attrs().has(attr) || attrs().s(attr).empty()) return otherwise;
  const auto dtype = parse_dtype(attrs().s(attr));
  if (!dtype) return fault(fmt::format("{}={} is no dtype", attr, attrs().s(attr)));
  return *dtype;
}

Expected<Draft> Arguments::allocate(DType dtype, Shape shape, std::int64_t text) const {
  const auto count = element_count(shape);
  if (!count) return fault(fmt::format("a tensor of shape {} is impossible", shape_text(shape)));
  if (dtype == DType::String) {
    TESSERA_TRY_DONE(fits(*count, sizeof(std::string)));
    TESSERA_TRY_DONE(fits(text, 1));
  } else {
    TESSERA_TRY_DONE(fits(*count, static_cast<std::size_t>(byte_width(dtype))));
  }
  return Draft(dtype, std::move(shape));
}

Expected<Done> Arguments::fits(std::int64_t count, std::size_t bytes_each) const {
  if (count > call_.memory_limit / static_cast<std::int64_t>(bytes_each))
    return Diagnostic{.id = "memory-limit",
                      .message = fmt::format("{}: {} elements of {} bytes do not fit into memory",
                                             name_, count, bytes_each),
                      .note = fmt::format("{} bytes are left", call_.memory_limit),
                      .help = "allow more with --memory-limit"};
  return Done{};
}

std::vector<Datum> Arguments::results(std::vector<Datum> all) const {
  const auto wanted = static_cast<std::size_t>(call_.outputs);
  TESSERA_CHECK(wanted <= all.size(), "{} has no {} results", name_, wanted);
  all.resize(wanted);
  return all;
}

Lanes lanes_along(const Shape& shape, std::size_t axis) {
  const std::span<const std::int64_t> all(shape);
  Lanes lanes{.extent = shape[axis]};
  if (element_count(all).value_or(0) == 0) {
    lanes.outer = lanes.inner = 0;
  } else {
    for (const std::int64_t extent : all.first(axis)) lanes.outer *= extent;
    for (const std::int64_t extent : all.subspan(axis + 1)) lanes.inner *= extent;
  }
  return lanes;
}

Shape with_extent(Shape shape, std::size_t axis, std::int64_t extent) {
  shape[axis] = extent;
  return shape;
}

std::int64_t text_bytes(const Tensor& tensor) {
  std::int64_t total = 0;
  if (tensor.dtype == DType::String)
    for (const std::string& text : *tensor.strings) total += static_cast<std::int64_t>(text.size());
  return total;
}

Tensor index_tensor(std::span<const std::int64_t> values) {
  return Tensor::of<std::int64_t>(DType::I64, {static_cast<std::int64_t>(values.size())}, values);
}

std::string shape_text(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace tessera::host
