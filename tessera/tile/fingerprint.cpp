#include "tessera/tile/fingerprint.h"

#include "tessera/tile/byte_key.h"

namespace tessera::tile {
namespace {

/// Values are numbered in the order of their definitions.
class Writer {
 public:
  explicit Writer(const Kernel& kernel) : kernel_(kernel), numbers_(kernel.values.size(), 0) {
    region(kernel.body);
    const BlockRequest& block = kernel.block;
    if (!block.is_empty()) key_.add(block.stages), key_.add(block.warps), key_.add(block.producers);
  }
  std::string take() { return key_.take(); }

 private:
  void region(const Region& region) {
    const auto define = [&](ValueId id) {
      numbers_[id] = next_++;
      key_.add(kernel_.type(id));
    };
    key_.list(region.params, define);
    key_.list(region.ops, [&](OpId id) {
      const Operation& op = kernel_.ops[id];
      key_.add(op.code), key_.add(op.function);
      key_.add(op.literal.number), key_.add(op.literal.integer);
      key_.list(op.in, [&](ValueId in) { key_.add(numbers_[in]); });
      key_.list(op.ints), key_.list(op.text);
      key_.list(op.regions, [&](const Region& inner) { this->region(inner); });
      key_.list(op.out, define);
    });
  }

  const Kernel& kernel_;
  std::vector<std::uint32_t> numbers_;  // by value
  std::uint32_t next_ = 0;
  ByteKey key_;
};

}  // namespace

std::string fingerprint(const Kernel& kernel) {
  return Writer(kernel).take();
}

}  // namespace tessera::tile
