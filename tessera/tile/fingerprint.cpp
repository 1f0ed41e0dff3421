#include "tessera/tile/fingerprint.h"

#include <type_traits>

namespace tessera::tile {
namespace {

/// Values are numbered in the order of their definitions. Every list has its length before it, so
/// that different kernels never have the same bytes.
class Writer {
 public:
  explicit Writer(const Kernel& kernel) : kernel_(kernel), numbers_(kernel.values.size(), 0) {
    region(kernel.body);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <class T>
  void add(const T& x) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&x), sizeof x);
  }
  template <class List, class Write>
  void list(const List& all, const Write& write) {
    add(static_cast<std::uint32_t>(all.size()));
    for (const auto& x : all) write(x);
  }

  void define(ValueId id) {
    numbers_[id] = next_++;
    const auto number = [&](std::int64_t x) { add(x); };
    const Type& type = kernel_.type(id);
    add(type.kind), add(type.dtype);
    list(type.shape, number), list(type.strides, number);
  }

  void region(const Region& region) {
    const auto define = [&](ValueId id) { this->define(id); };
    list(region.params, define);
    list(region.ops, [&](OpId id) {
      const Operation& op = kernel_.ops[id];
      add(op.code), add(op.function), add(op.literal.number), add(op.literal.integer);
      list(op.in, [&](ValueId in) { add(numbers_[in]); });
      list(op.ints, [&](std::int64_t x) { add(x); });
      list(op.text, [&](char c) { add(c); });
      list(op.regions, [&](const Region& inner) { this->region(inner); });
      list(op.out, define);
    });
  }

  const Kernel& kernel_;
  std::vector<std::uint32_t> numbers_;  // by value
  std::uint32_t next_ = 0;
  std::string bytes_;
};

}  // namespace

std::string fingerprint(const Kernel& kernel) {
  return Writer(kernel).take();
}

}  // namespace tessera::tile
