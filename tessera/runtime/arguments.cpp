#include "tessera/runtime/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tessera::runtime {
namespace {

std::string text_of(DType dtype, std::span<const std::int64_t> shape) {
  return fmt::format("{}[{}]", to_string(dtype), fmt::join(shape, ", "));
}

std::string declared(const Value& value) {
  return "the program has " + text_of(value.dtype, value.shape);
}

Diagnostic bad_argument(const std::string& item, std::string message, std::string note = {}) {
  return {.id = "program-argument",
          .where = {.item = item},
          .message = std::move(message),
          .note = std::move(note)};
}

}  // namespace

bool is_aligned(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % kAlignment == 0;
}

Expected<Done> check_count(std::size_t given, std::size_t expected) {
  if (given == expected) return Done{};
  return bad_argument({}, fmt::format("{} values are given", given),
                      fmt::format("the program has {}", expected));
}

Expected<Done> check_memory(std::span<const std::byte* const> given, const Program& program,
                            const std::vector<ValueIndex>& values, std::size_t alignment) {
  TESSERA_TRY_DONE(check_count(given.size(), values.size()));
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Value& value = program.values[values[i]];
    if (value.home == Value::Home::Boxed)
      return bad_argument(value.name, "its size is not known before a run",
                          "such values are given and returned as data");
    if (value.bytes > 0 &&
        (given[i] == nullptr || reinterpret_cast<std::uintptr_t>(given[i]) % alignment != 0))
      return bad_argument(value.name, "the memory is not aligned",
                          fmt::format("to {} bytes", alignment));
  }
  return Done{};
}

Expected<Done> check_type(DType dtype, std::span<const std::int64_t> shape, const Value& value) {
  if (dtype == value.dtype && std::ranges::equal(shape, value.shape)) return Done{};
  return bad_argument(value.name, "it is " + text_of(dtype, shape), declared(value));
}

Expected<Bytes> bytes_of(const Datum& datum, const Value& value) {
  if (!datum.is_tensor()) return bad_argument(value.name, "it is no tensor", declared(value));
  const Tensor& tensor = datum.tensor();
  TESSERA_TRY_DONE(check_type(tensor.dtype, tensor.shape, value));
  const auto size = static_cast<std::size_t>(tensor.count() * byte_width(value.dtype));
  if (tensor.bytes.size() < size)
    return bad_argument(value.name, fmt::format("it has {} bytes", tensor.bytes.size()),
                        declared(value));
  return tensor.bytes.slice(0, size);
}

}  // namespace tessera::runtime
