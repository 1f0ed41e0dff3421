#include "tessera/tile/verify.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "tessera/tile/type_check.h"

namespace tessera::tile {
namespace {

constexpr int kDeepest = 256;  // maximum nesting depth of regions

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel)
      : kernel_(kernel), scope_(kernel.values.size(), Scope::Unseen), placed_(kernel.ops.size()) {}

  Expected<Done> verify() {
    for (const ValueId id : kernel_.body.params) {
      if (id >= kernel_.values.size())
        return unsound({}, fmt::format("parameter {}", id), "a value");
      const Type& type = kernel_.type(id);
      const auto mistake = type_mistake(type);
      if (mistake || type.is_tile()) {
        return Diagnostic{.id = "tile-type",
                          .message = fmt::format("parameter {} is {}", kernel_.values[id].name,
                                                 mistake ? "of no type" : to_string(type)),
                          .note = mistake.value_or("a number, a pointer or a view")};
      }
    }
    return region(kernel_.body, nullptr, 0);
  }

 private:
  /// Scope: a value is visible from its definition to the end of its region.
  enum class Scope : std::uint8_t { Unseen, Visible, Past };

  Expected<Done> region(const Region& region, const Operation* owner, int depth) {
    const Source source = owner ? owner->source : Source{};
    if (depth > kDeepest) {
      return unsound(source, "regions within regions", fmt::format("{} at most", kDeepest));
    }
    std::vector<ValueId> defined;
    for (const ValueId id : region.params) TESSERA_TRY_DONE(define(id, source, defined));
    for (std::size_t i = 0; i < region.ops.size(); ++i) {
      const OpId id = region.ops[i];
      if (id >= kernel_.ops.size() || std::exchange(placed_[id], 1)) {
        return unsound(source, fmt::format("operation {}", id), "an operation, placed once");
      }
      const Operation& op = kernel_.ops[id];
      const bool ends = owner && i + 1 == region.ops.size();
      if ((op.code == Code::Yield) != ends)
        return unsound(op.source,
                       name(op) + (ends ? " at the end of a region" : " where none belongs"),
                       ending(owner));
      TESSERA_TRY_DONE(operation(op, owner, depth, defined));
    }
    if (owner && region.ops.empty()) return unsound(source, "an empty region", ending(owner));
    for (const ValueId id : defined) scope_[id] = Scope::Past;
    return Done{};
  }

  Expected<Done> operation(const Operation& op, const Operation* owner, int depth,
                           std::vector<ValueId>& defined) {
    for (const ValueId id : op.in) {
      if (id >= scope_.size() || scope_[id] != Scope::Visible) {
        return unsound(op.source, fmt::format("{} uses value {}", name(op), text_of(id)),
                       "a value that is defined before and outside or in the same region");
      }
    }
    const bool combines = owner && (owner->code == Code::Reduce || owner->code == Code::Scan);
    if (combines) TESSERA_TRY_DONE(combining(op));
    for (const Region& inner : op.regions) TESSERA_TRY_DONE(region(inner, &op, depth + 1));
    for (const ValueId id : op.out) TESSERA_TRY_DONE(define(id, op.source, defined));
    return check_types(kernel_, op);
  }

  /// Back ends run a combiner region on many elements at once: it must be elementwise.
  Expected<Done> combining(const Operation& op) const {
    const bool simple = op.code == Code::Const || op.code == Code::Map || op.code == Code::Cast ||
                        op.code == Code::Bitcast || op.code == Code::Yield;
    bool scalars = true;
    for (const auto* ids : {&op.in, &op.out}) {
      for (const ValueId id : *ids) {
        scalars &= id < kernel_.values.size() && kernel_.type(id).is_scalar();
      }
    }
    if (simple && scalars) return Done{};
    return unsound(op.source, name(op) + " in the region of a reduce or a scan",
                   "const, cast, bitcast and functions of scalars");
  }

  Expected<Done> define(ValueId id, const Source& source, std::vector<ValueId>& defined) {
    if (id >= scope_.size() || scope_[id] != Scope::Unseen) {
      return unsound(source, fmt::format("value {} is defined again", text_of(id)),
                     "a value of the kernel, defined once");
    }
    scope_[id] = Scope::Visible;
    defined.push_back(id);
    return Done{};
  }

  static std::string name(const Operation& op) {
    return std::string(op.code == Code::Map ? to_string(op.function) : to_string(op.code));
  }
  static std::string ending(const Operation* owner) {
    return owner ? "a region that ends with its one yield" : "no yield outside of regions";
  }
  std::string text_of(ValueId id) const {
    const bool named = id < kernel_.values.size() && !kernel_.values[id].name.empty();
    return named ? kernel_.values[id].name : fmt::format("{}", id);
  }

  static Diagnostic unsound(const Source& source, std::string found, std::string expected) {
    return {.id = "tile-structure",
            .where = place_of(source),
            .message = std::move(found),
            .note = std::move(expected)};
  }

  const Kernel& kernel_;
  std::vector<Scope> scope_;
  std::vector<char> placed_;
};

}  // namespace

Expected<Done> verify(const Kernel& kernel) {
  return Verifier(kernel).verify();
}

}  // namespace tessera::tile
