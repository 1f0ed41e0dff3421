#include "tessera/tile/interp_memory.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tessera/tile/interp_tile.h"

namespace tessera::tile::interp {
namespace {

template <class T, class Byte>
Byte* element(Byte* tile, std::int64_t i) {
  return tile + i * static_cast<std::int64_t>(sizeof(T));
}

/// A bool in memory may be any byte.
template <class T>
void fetch(const std::byte* place, std::byte* to) {
  T x;
  std::memcpy(&x, place, sizeof(T));
  if constexpr (std::is_same_v<T, Truth>) x = stored<Truth>(loaded(x));
  std::memcpy(to, &x, sizeof(T));
}

// Per-element operation of an access.

auto loading(std::byte* out) {
  return [out]<class T>(T, std::int64_t i, const std::byte* place) {
    fetch<T>(place, element<T>(out, i));
  };
}

auto storing(const std::byte* x) {
  return [x]<class T>(T, std::int64_t i, std::byte* place) {
    std::memcpy(place, element<T>(x, i), sizeof(T));
  };
}

}  // namespace

/// Calls visit(a value of the element type, its index in the tile, its address).
template <class Visit>
Access Memory::each(const Pointers& pointers, const Visit& visit) const {
  return with_type(pointers.dtype, [&]<class T>(T type) -> Access {
    for (std::int64_t i = 0; i < pointers.count; ++i) {
      if (pointers.mask && pointers.mask[i].bits == 0) continue;
      std::byte* place = find(pointers.at[i], sizeof(T));
      if (!place) return pointers.at[i];
      visit(type, i, place);
    }
    return {};
  });
}

template <class Visit>
Access Memory::each(const Part& part, const Visit& visit) const {
  const Window& window = part.window;
  const Type& tile = part.tile;
  Lattice inside{0, dense(tile.shape)}, memory{window.base.offset, {}};
  Extents box;
  for (std::size_t axis = 0; axis < part.at.size(); ++axis) {
    // Written so that no offset and no extent, however large, overflows.
    const std::int64_t extent = window.shape[axis], reach = tile.shape[axis], from = part.at[axis];
    if (from >= extent || from <= -reach || extent <= 0) return {};
    const std::int64_t skipped = std::max<std::int64_t>(-from, 0);
    box.push_back(std::min(reach - skipped, extent - std::max<std::int64_t>(from, 0)));
    inside.first += skipped * inside.strides[axis];
    memory.strides.push_back(moved(0, byte_width(tile.dtype), window.strides[axis]));
    memory.first = moved(memory.first, from + skipped, memory.strides.back());
  }
  Access fault;
  with_type(tile.dtype, [&]<class T>(T type) {
    for_each_row(box, inside, memory, [&](std::int64_t first, std::int64_t offset) {
      for (std::int64_t i = 0; i < box.back(); ++i) {
        const Address address{window.base.argument, moved(offset, i, memory.strides.back())};
        std::byte* place = find(address, sizeof(T));
        if (!place) {
          fault = address;
          return false;
        }
        visit(type, first + i, place);
      }
      return true;
    });
  });
  return fault;
}

Access Memory::load(const Pointers& pointers, std::byte* out) const {
  return each(pointers, loading(out));
}

Access Memory::store(const Pointers& pointers, const std::byte* x) const {
  return each(pointers, storing(x));
}

Access Memory::load(const Part& part, std::byte* out) const {
  return each(part, loading(out));
}

Access Memory::store(const Part& part, const std::byte* x) const {
  return each(part, storing(x));
}

Access Memory::atomic(Function function, const Pointers& pointers, const std::byte* x,
                      std::byte* out) const {
  if (function == Function::Exchange) {
    return each(pointers, [&]<class T>(T type, std::int64_t i, std::byte* place) {
      loading(out)(type, i, place);
      storing(x)(type, i, place);
    });
  }
  return each(pointers, [&]<class T>(T type, std::int64_t i, std::byte* place) {
    loading(out)(type, i, place);
    const std::array<const std::byte*, 2> operands = {element<T>(out, i), element<T>(x, i)};
    alignas(T) std::array<std::byte, sizeof(T)> next;
    map(function, pointers.dtype, operands, 1, next.data());
    std::memcpy(place, next.data(), sizeof(T));
  });
}

Access Memory::compare_and_swap(const Pointers& pointers, const std::byte* expected,
                                const std::byte* x, std::byte* out) const {
  return each(pointers, [&]<class T>(T type, std::int64_t i, std::byte* place) {
    loading(out)(type, i, place);
    const bool equal = std::memcmp(element<T>(out, i), element<T>(expected, i), sizeof(T)) == 0;
    if (equal) storing(x)(type, i, place);
  });
}

}  // namespace tessera::tile::interp
