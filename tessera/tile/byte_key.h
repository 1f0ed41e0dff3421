#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "tessera/tile/type.h"

namespace tessera::tile {

/// Serializer of cache keys: numbers by their bits, so that the two zeros differ and NaN equals
/// itself; lists with their length before them, so that different content never has the same bytes.
class ByteKey {
 public:
  template <class T>
  void add(const T& x) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&x), sizeof x);
  }
  void add(const Type& type) {
    add(type.kind), add(type.dtype);
    list(type.shape), list(type.strides);
  }
  template <class List, class Write>
  void list(const List& all, const Write& write) {
    add(static_cast<std::uint32_t>(all.size()));
    for (const auto& x : all) write(x);
  }
  template <class List>
  void list(const List& all) {
    list(all, [&](const auto& x) { add(x); });
  }

  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace tessera::tile
