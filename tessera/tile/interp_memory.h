#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tessera/tile/argument.h"
#include "tessera/tile/interp_value.h"

namespace tessera::tile::interp {

/// Result of an access: the first address out of bounds, if any; that element and those after it
/// are untouched.
using Access = std::optional<Address>;

/// Addresses of a tile of pointers, with the mask of an access.
struct Pointers {
  DType dtype = DType::F32;
  std::int64_t count = 0;
  const Address* at = nullptr;
  const Truth* mask = nullptr;  // none: all
};

/// Memory of the launch arguments. Elements are accessed in order, each with a bounds check.
class Memory {
 public:
  explicit Memory(std::span<const Argument> arguments) : arguments_(arguments) {}

  /// Masked load; elements that are masked out leave `out` as it is.
  Access load(const Pointers& pointers, std::byte* out) const;
  Access store(const Pointers& pointers, const std::byte* x) const;
  /// Atomic read-modify-write; `out` receives the old values.
  Access atomic(Function function, const Pointers& pointers, const std::byte* x,
                std::byte* out) const;
  Access compare_and_swap(const Pointers& pointers, const std::byte* expected, const std::byte* x,
                          std::byte* out) const;

  /// A tile at a position of a view, clipped to the view's bounds.
  struct Part {
    const Window& window;
    const Extents& at;
    const Type& tile;
  };
  Access load(const Part& part, std::byte* out) const;
  Access store(const Part& part, const std::byte* x) const;

 private:
  /// Host address of `bytes` bytes; null where they are out of bounds.
  std::byte* find(Address at, std::int64_t bytes) const {
    const Argument& argument = arguments_[static_cast<std::size_t>(at.argument)];
    if (at.offset < 0 || at.offset > argument.bytes - bytes) return nullptr;
    return argument.data + at.offset;
  }
  template <class Visit>
  Access each(const Pointers& pointers, const Visit& visit) const;
  template <class Visit>
  Access each(const Part& part, const Visit& visit) const;

  std::span<const Argument> arguments_;
};

}  // namespace tessera::tile::interp
