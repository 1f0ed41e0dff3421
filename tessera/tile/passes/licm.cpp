#include <algorithm>
#include <utility>

#include "tessera/tile/passes/parts.h"
#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile {
namespace {

class Hoisting {
 public:
  explicit Hoisting(Kernel kernel)
      : kernel_(std::move(kernel)),
        depth_(kernel_.values.size(), 0),
        definitions_(definitions(kernel_)) {}

  Kernel run() && {
    kernel_.body = walk(kernel_.body, {});
    return std::move(kernel_);
  }

 private:
  /// An enclosing region.
  struct Frame {
    Region region = {};
    bool loop = false;   // the body of a loop
    bool loads = false;  // a load that comes first in it may be hoisted
    bool silent = true;  // so far, it has only pure operations and loads
  };

  std::optional<std::int64_t> integer(ValueId id) const {
    const auto op = definitions_[id];
    if (!op || kernel_.ops[*op].code != Code::Const) return {};
    return kernel_.ops[*op].literal.integer;
  }

  /// Whether a load may be hoisted out of a loop: it runs at least once, and nothing in it is
  /// observable.
  bool keeps_memory(const Operation& op) const {
    if (op.code != Code::For) return false;
    const auto from = integer(op.in[0]), to = integer(op.in[1]), step = integer(op.in[2]);
    const bool runs = from && to && step && *from<*to&& * step> 0;
    const auto seen = [](Code code) { return code != Code::Yield && has_effect(code); };
    return runs && !any_op(kernel_, op, seen);
  }

  Region walk(const Region& region, Frame frame) {
    frame.region.params = region.params;
    const int depth = static_cast<int>(frames_.size());
    for (const ValueId id : region.params) depth_[id] = depth;
    frames_.push_back(std::move(frame));
    for (const OpId id : region.ops) place(id);
    Region done = std::move(frames_.back().region);
    frames_.pop_back();
    return done;
  }

  void place(OpId id) {
    // Copied, because walking a region changes the operation.
    const Operation op = kernel_.ops[id];
    const int here = static_cast<int>(frames_.size()) - 1;
    for (std::size_t i = 0; i < op.regions.size(); ++i) {
      const bool loop = op.code == Code::For || op.code == Code::While;
      kernel_.ops[id].regions[i] =
          walk(op.regions[i], {.loop = loop, .loads = loop && keeps_memory(op)});
    }
    // Values that a region uses from outside are operands as well.
    int needs = 0;
    const auto need = [&](const Operation& user) {
      for (const ValueId in : user.in) {
        if (depth_[in] <= here) needs = std::max(needs, depth_[in]);
      }
    };
    need(op);
    for (const Region& region : op.regions)
      for_each_op(kernel_, region, [&](OpId inner) { need(kernel_.ops[inner]); });

    const bool load = reads_memory(op.code) && !writes_memory(op.code);
    // An index out of range ends the program, so a gather is not hoisted.
    const bool pure = is_pure(kernel_, op) && op.code != Code::Gather;
    int target = here;
    while (target > needs && frames_[static_cast<std::size_t>(target)].loop &&
           (pure || (load && frames_[static_cast<std::size_t>(target)].loads &&
                     frames_[static_cast<std::size_t>(target)].silent)))
      --target;
    for (const ValueId out : op.out) depth_[out] = target;
    Frame& frame = frames_[static_cast<std::size_t>(target)];
    frame.silent = frame.silent && (pure || load || op.code == Code::Yield);
    frame.region.ops.push_back(id);
  }

  Kernel kernel_;
  std::vector<int> depth_;
  std::vector<std::optional<OpId>> definitions_;
  std::vector<Frame> frames_;
};

}  // namespace

Kernel licm(const Kernel& kernel) {
  return Hoisting(kernel).run();
}

}  // namespace tessera::tile
