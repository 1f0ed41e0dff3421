#include <string>
#include <unordered_map>

#include "tessera/tile/byte_key.h"
#include "tessera/tile/passes/parts.h"
#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile {
namespace {

/// Key of an operation: everything that its result depends on.
std::string key_of(const Rewrite& out, const Operation& op, const std::vector<ValueId>& in,
                   int epoch) {
  ByteKey key;
  key.add(op.code), key.add(op.function), key.add(epoch);
  key.add(op.literal.number), key.add(op.literal.integer);
  key.list(op.out, [&](ValueId id) { key.add(out.source().type(id)); });
  key.list(in), key.list(op.ints), key.list(op.text);
  return key.take();
}

bool ends_epoch(Code code) {
  return writes_memory(code) || code == Code::Barrier;
}

}  // namespace

Kernel cse(const Kernel& kernel) {
  std::unordered_map<std::string, std::vector<ValueId>> computed;
  int epoch = 0;  // of memory: ends at a possible store
  return Rewrite::run(kernel, [&](Rewrite& out, const Operation& op) {
    const bool loads = reads_memory(op.code) && !writes_memory(op.code);
    if (op.regions.empty() && (loads || is_pure(kernel, op))) {
      std::string key = key_of(out, op, out.of(op.in), loads ? epoch : 0);
      std::vector<ValueId>& results = computed[std::move(key)];
      if (!results.empty() && out.visible(results.front())) {
        for (std::size_t i = 0; i < results.size(); ++i) out.set(op.out[i], results[i]);
      } else {
        out.copy(op);
        results = out.of(op.out);
      }
      return;
    }
    // A store late in an iteration is visible early in the next.
    const bool writes = ends_epoch(op.code) || any_op(kernel, op, ends_epoch);
    if (writes) ++epoch;
    out.copy(op);
    if (writes) ++epoch;
  });
}

}  // namespace tessera::tile
