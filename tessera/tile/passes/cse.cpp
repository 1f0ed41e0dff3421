#include <string>
#include <type_traits>
#include <unordered_map>

#include "tessera/tile/passes/parts.h"
#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile {
namespace {

/// All that determines what an operation computes, as bytes: numbers by their bits, so that the two
/// zeros stay apart and NaN equals itself.
class Key {
 public:
  Key(const Rewrite& out, const Operation& op, const std::vector<ValueId>& in, int epoch) {
    add(op.code), add(op.function), add(epoch), add(op.literal.number), add(op.literal.integer);
    for (const ValueId id : op.out) add(out.source().type(id));
    list(in), list(op.ints);
    bytes_ += op.text;
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <class T>
  void add(const T& x) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&x), sizeof x);
  }
  template <class T>
  void list(const std::vector<T>& all) {
    add(all.size());
    for (const T& x : all) add(x);
  }
  void add(const Type& type) {
    add(type.kind), add(type.dtype), list(type.shape), list(type.strides);
  }

  std::string bytes_;
};

bool ends_epoch(Code code) {
  return writes_memory(code) || code == Code::Barrier;
}

}  // namespace

Kernel cse(const Kernel& kernel) {
  std::unordered_map<std::string, std::vector<ValueId>> computed;
  int epoch = 0;  // of memory: it ends where something may be written
  return Rewrite::run(kernel, [&](Rewrite& out, const Operation& op) {
    const bool loads = reads_memory(op.code) && !writes_memory(op.code);
    if (op.regions.empty() && (loads || is_pure(kernel, op))) {
      std::string key = Key(out, op, out.of(op.in), loads ? epoch : 0).take();
      std::vector<ValueId>& results = computed[std::move(key)];
      if (!results.empty() && out.visible(results.front())) {
        for (std::size_t i = 0; i < results.size(); ++i) out.set(op.out[i], results[i]);
      } else {
        out.copy(op);
        results = out.of(op.out);
      }
      return;
    }
    // What a loop writes late in a round is seen early in the next.
    const bool writes = ends_epoch(op.code) || any_op(kernel, op, ends_epoch);
    if (writes) ++epoch;
    out.copy(op);
    if (writes) ++epoch;
  });
}

}  // namespace tessera::tile
