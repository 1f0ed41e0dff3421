#include <utility>

#include "tessera/tile/passes/parts.h"
#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile {
namespace {

/// Liveness of values and operations. A carried value is live as a whole: its start, its
/// parameters, what is yielded for it and its result.
class Liveness {
 public:
  explicit Liveness(const Kernel& kernel)
      : kernel_(kernel),
        makers_(kernel.values.size()),
        ops_(kernel.ops.size()),
        values_(kernel.values.size()),
        parents_(kernel.ops.size()) {
    index(kernel.body, {});
    for_each_op(kernel, kernel.body, [&](OpId id) {
      if (kernel.ops[id].code != Code::Yield && has_effect(kernel.ops[id].code)) op(id);
    });
    while (!pending_.empty()) {
      const ValueId next = pending_.back();
      pending_.pop_back();
      follow(next);
    }
  }

  bool lives(OpId id) const { return ops_[id]; }
  std::vector<bool> kept(const Operation& op) const {
    const bool all = op.code != Code::For && op.code != Code::While && op.code != Code::If;
    std::vector<bool> keep;
    for (const ValueId id : op.out) keep.push_back(all || values_[id]);
    return keep;
  }

 private:
  /// Operation that a value is a result of, or a parameter of a region of.
  struct Maker {
    std::optional<OpId> op = {};
    int result = -1;  // index of the result or carried value
  };

  void index(const Region& region, std::optional<OpId> parent) {
    for (const OpId id : region.ops) {
      parents_[id] = parent;
      const Operation& op = kernel_.ops[id];
      const int lead = op.code == Code::For ? 1 : 0;
      for (std::size_t i = 0; i < op.out.size(); ++i)
        makers_[op.out[i]] = {id, static_cast<int>(i)};
      for (const Region& inner : op.regions) {
        for (std::size_t i = 0; i < inner.params.size(); ++i)
          makers_[inner.params[i]] = {id, static_cast<int>(i) - lead};
        index(inner, id);
      }
    }
  }

  void value(ValueId id) {
    if (values_[id]) return;
    values_[id] = true;
    pending_.push_back(id);
  }
  void all(const std::vector<ValueId>& ids) {
    for (const ValueId id : ids) value(id);
  }

  void op(OpId id) {
    if (ops_[id]) return;
    ops_[id] = true;
    const Operation& op = kernel_.ops[id];
    switch (op.code) {
      case Code::For:
        for (int i = 0; i < 3; ++i) value(op.in[static_cast<std::size_t>(i)]);
        break;
      case Code::While: all(yields(kernel_, op.regions.front())); break;
      case Code::Reduce:
      case Code::Scan:
        for (const Region& region : op.regions) all(yields(kernel_, region));
        all(op.in);
        break;
      default: all(op.in);
    }
    if (parents_[id]) this->op(*parents_[id]);
  }

  void follow(ValueId id) {
    const auto [maker, result] = makers_[id];
    if (!maker) return;
    op(*maker);
    if (result < 0) return;
    const Operation& op = kernel_.ops[*maker];
    const auto i = static_cast<std::size_t>(result);
    switch (op.code) {
      case Code::For:
        value(op.out[i]), value(op.in[3 + i]), value(yields(kernel_, op.regions[0])[i]);
        break;
      case Code::While:
        value(op.out[i]), value(op.in[i]), value(yields(kernel_, op.regions[1])[i]);
        break;
      case Code::If:
        for (const Region& region : op.regions) value(yields(kernel_, region)[i]);
        break;
      default: break;
    }
  }

  const Kernel& kernel_;
  std::vector<Maker> makers_;
  std::vector<bool> ops_, values_;
  std::vector<std::optional<OpId>> parents_;
  std::vector<ValueId> pending_;
};

}  // namespace

Kernel dce(const Kernel& kernel) {
  const Liveness live(kernel);
  return Rewrite::run(kernel, [&](Rewrite& out, const Operation& op) {
    if (live.lives(static_cast<OpId>(&op - kernel.ops.data()))) out.copy(op, live.kept(op));
  });
}

}  // namespace tessera::tile
