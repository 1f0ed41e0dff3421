#include "tessera/tile/argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "tessera/support/half.h"
#include "tessera/tile/builder.h"
#include "tessera/tile/type_check.h"

namespace tessera::tile {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostPrograms = std::int64_t{1} << 31;

/// Saturating product of non-negative numbers.
std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMost : product;
}

/// Bytes from the first to the last element; extents and strides are at least 0.
std::int64_t span_bytes(const Type& view) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] <= 0) return 0;
    const std::int64_t reach = times(view.shape[i] - 1, std::max<std::int64_t>(view.strides[i], 0));
    if (__builtin_add_overflow(last, reach, &last)) return kMost;
  }
  return times(last == kMost ? kMost : last + 1, byte_width(view.dtype));
}

/// Diagnostic about an argument.
Diagnostic bad(const Kernel& kernel, std::size_t position, std::string found,
               std::string expected) {
  const std::string& name = kernel.values[kernel.params()[position]].name;
  return {.id = "launch-argument",
          .where = {.file = kernel.name,
                    .item = name.empty() ? fmt::format("argument {}", position) : name},
          .message = std::move(found),
          .note = std::move(expected)};
}

/// Kind and dtype of an argument, without its extents.
std::string text_of(const Type& type) {
  return fmt::format("{}{}{}", type.is_view() ? "view " : (type.is_pointer() ? "*" : ""),
                     to_string(type.dtype),
                     type.shape.empty() ? "" : fmt::format("[{}]", fmt::join(type.shape, ", ")));
}

std::uint64_t word_of(DType dtype, const Literal& literal) {
  switch (dtype) {
    case DType::F16: return to_half(literal.number).bits;
    case DType::BF16: return to_bfloat16(literal.number).bits;
    case DType::F32: return std::bit_cast<std::uint32_t>(static_cast<float>(literal.number));
    case DType::F64: return std::bit_cast<std::uint64_t>(literal.number);
    default: return static_cast<std::uint64_t>(literal.integer);
  }
}

Expected<Done> check_view(const Kernel& kernel, std::size_t position, const Argument& argument) {
  const Type& asked = kernel.type(kernel.params()[position]);
  const Type& given = argument.type;
  const auto wrong = [&](std::string found, std::string expected) {
    return bad(kernel, position, std::move(found), std::move(expected));
  };
  if (given.shape.size() != asked.shape.size() || given.strides.size() != asked.shape.size()) {
    return wrong(text_of(given), fmt::format("a view of {} axes", asked.rank()));
  }
  const bool empty = std::find(given.shape.begin(), given.shape.end(), 0) != given.shape.end();
  for (std::size_t i = 0; i < asked.shape.size(); ++i) {
    const std::int64_t extent = given.shape[i];
    if (extent < 0 || (asked.shape[i] != kDynamic && extent != asked.shape[i])) {
      return wrong(
          fmt::format("extent {} is {}", i, extent),
          asked.shape[i] == kDynamic ? "extents of at least 0" : fmt::format("{}", asked.shape[i]));
    }
  }
  for (std::size_t i = 0; i < asked.shape.size(); ++i) {
    const std::int64_t stride = given.strides[i];
    // The stride of an axis of extent 1 is irrelevant.
    const bool matters = given.shape[i] > 1 && !empty;
    if (stride < 0 || (matters && asked.strides[i] != kDynamic && stride != asked.strides[i])) {
      return wrong(fmt::format("stride {} is {}", i, stride),
                   asked.strides[i] == kDynamic ? "strides of at least 0"
                                                : fmt::format("{}", asked.strides[i]));
    }
  }
  const std::int64_t needed = span_bytes(given);
  if (needed == kMost) return wrong(text_of(given), "a view that fits into memory");
  if (needed > argument.bytes) {
    return wrong(fmt::format("{} bytes", argument.bytes), fmt::format("at least {}", needed));
  }
  return Done{};
}

Expected<Done> check_argument(const Kernel& kernel, std::size_t position,
                              const Argument& argument) {
  const Type& asked = kernel.type(kernel.params()[position]);
  const Type& given = argument.type;
  if (given.kind != asked.kind || given.dtype != asked.dtype ||
      (!given.is_view() && !given.shape.empty())) {
    return bad(kernel, position, text_of(given), to_string(asked));
  }
  if (given.is_number()) {
    if (!is_float(given.dtype) && !fits(given.dtype, argument.literal.integer)) {
      return bad(kernel, position, fmt::format("{}", argument.literal.integer),
                 fmt::format("a number that {} can hold", to_string(given.dtype)));
    }
    return Done{};
  }
  if (given.is_view()) TESSERA_TRY_DONE(check_view(kernel, position, argument));
  if (argument.bytes < 0) {
    return bad(kernel, position, fmt::format("{} bytes", argument.bytes), "at least 0");
  }
  if (argument.data == nullptr && argument.bytes > 0) {
    return bad(kernel, position, "a null pointer",
               fmt::format("{} bytes of memory", argument.bytes));
  }
  const int width = std::max(byte_width(given.dtype), 1);
  const auto address = reinterpret_cast<std::uintptr_t>(argument.data);
  if (address % static_cast<std::uintptr_t>(width) != 0) {
    return bad(kernel, position, fmt::format("misaligned memory at {:#x}", address),
               fmt::format("an address that is a multiple of {}", width));
  }
  return Done{};
}

}  // namespace

Argument Argument::number(DType dtype, double value) {
  return {Type::scalar(dtype), literal_of(dtype, value), nullptr, 0};
}

Argument Argument::integer(DType dtype, std::int64_t value) {
  const Literal literal =
      is_float(dtype) ? Literal{static_cast<double>(value), 0} : Literal{0, value};
  return {Type::scalar(dtype), literal, nullptr, 0};
}

Argument Argument::pointer(DType dtype, void* data, std::int64_t bytes) {
  return {Type::pointer(dtype), {}, static_cast<std::byte*>(data), bytes};
}

Argument Argument::view(DType dtype, void* data, Extents shape) {
  Extents strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    strides[i - 1] = times(strides[i], std::max<std::int64_t>(shape[i], 0));
  }
  return view(dtype, data, std::move(shape), std::move(strides));
}

Argument Argument::view(DType dtype, void* data, Extents shape, Extents strides) {
  strides.resize(shape.size(), kDynamic);
  Type type = Type::view(dtype, std::move(shape), std::move(strides));
  const std::int64_t bytes = span_bytes(type);
  return {std::move(type), {}, static_cast<std::byte*>(data), bytes};
}

Expected<Done> check_arguments(const Kernel& kernel, std::span<const Argument> arguments,
                               const Grid& grid) {
  if (arguments.size() != kernel.params().size()) {
    return Diagnostic{.id = "launch-argument",
                      .where = {.file = kernel.name},
                      .message = fmt::format("{} arguments", arguments.size()),
                      .note = fmt::format("{}", kernel.params().size())};
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    TESSERA_TRY_DONE(check_argument(kernel, i, arguments[i]));
  }
  const bool counts = std::all_of(grid.begin(), grid.end(), [](std::int64_t count) {
    return count >= 0 && count <= kMostPrograms;
  });
  if (!counts || times(times(grid[0], grid[1]), grid[2]) == kMost) {
    return Diagnostic{.id = "launch-grid",
                      .where = {.file = kernel.name},
                      .message = fmt::format("a grid of {}", fmt::join(grid, " x ")),
                      .note = "counts of 0 to 2^31, and less than 2^63 programs in all"};
  }
  return Done{};
}

std::vector<std::uint64_t> words_of(std::span<const Argument> arguments) {
  std::vector<std::uint64_t> words;
  for (const Argument& argument : arguments) {
    if (argument.type.is_number()) {
      words.push_back(word_of(argument.type.dtype, argument.literal));
      continue;
    }
    words.push_back(reinterpret_cast<std::uintptr_t>(argument.data));
    for (const Extents* list : {&argument.type.shape, &argument.type.strides}) {
      for (const std::int64_t number : *list) words.push_back(static_cast<std::uint64_t>(number));
    }
  }
  return words;
}

std::vector<int> word_positions(const Kernel& kernel) {
  std::vector<int> positions = {0};
  for (const ValueId id : kernel.params()) {
    const Type& type = kernel.type(id);
    positions.push_back(positions.back() + 1 + (type.is_view() ? 2 * type.rank() : 0));
  }
  return positions;
}

}  // namespace tessera::tile
