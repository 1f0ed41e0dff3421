#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tessera/tile/argument.h"
#include "tessera/tile/interp_value.h"

namespace tessera::tile::interp {

/// Where an access was not allowed, if it was not: that element and those after it are untouched.
using Access = std::optional<Address>;

/// The elements that an access speaks of, and which of them it leaves alone.
struct Pointers {
  DType dtype = DType::F32;
  std::int64_t count = 0;
  const Address* at = nullptr;
  const Truth* mask = nullptr;  // none: all
};

/// The memory of the arguments. Elements are accessed in order; each is checked first.
class Memory {
 public:
  explicit Memory(std::span<const Argument> arguments) : arguments_(arguments) {}

  /// What the mask leaves out is not written to `out`.
  Access load(const Pointers& pointers, std::byte* out) const;
  Access store(const Pointers& pointers, const std::byte* x) const;
  /// `out` has what was there.
  Access atomic(Function function, const Pointers& pointers, const std::byte* x,
                std::byte* out) const;
  Access compare_and_swap(const Pointers& pointers, const std::byte* expected, const std::byte* x,
                          std::byte* out) const;

  /// A tile at a place of a view, as far as it lies inside of the view's bounds.
  struct Part {
    const Window& window;
    const Extents& at;
    const Type& tile;
  };
  Access load(const Part& part, std::byte* out) const;
  Access store(const Part& part, const std::byte* x) const;

 private:
  /// Where `bytes` bytes lie; null where the argument does not have them.
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
