#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tessera/tile/gpu/programs.h"
#include "tessera/tile/gpu/schedule.h"
#include "tessera/tile/remarks.h"

namespace tessera::tile::gpu {
namespace {

/// `1:0 0:3 1:3-7`: bits of the index along an axis, in order; `-`: none.
std::string bits_text(const std::vector<IndexBit>& bits) {
  std::string text;
  for (std::size_t i = 0, end = 0; i < bits.size(); i = end) {
    const IndexBit& first = bits[i];
    const auto at = [&](std::size_t other) {
      return first.axis < 0 ? IndexBit{}
                            : IndexBit{first.axis, first.bit + static_cast<int>(other - i)};
    };
    for (end = i + 1; end < bits.size() && bits[end] == at(end);) ++end;
    text += i == 0 ? "" : " ";
    text += first.axis < 0 ? "-" : fmt::format("{}:{}", first.axis, first.bit);
    if (first.axis >= 0 && end > i + 1) text += fmt::format("-{}", bits[end - 1].bit);
  }
  return text;
}

/// Writes the remarks on all operations, and what is said before the kernel.
class Remarker {
 public:
  explicit Remarker(const Scheduled& scheduled)
      : scheduled_(scheduled), planned_(*scheduled.planned), plan_(*scheduled.plan) {}

  std::string run() {
    region(planned_.kernel.body, nullptr, {});
    for (const Roles::Early& early : early_loads()) add(early.load, "begun before the loop");
    if (scheduled_.shape.rows) rows();
    std::string head = block_text() + roles_text();
    if (scheduled_.shared_bytes > 0)
      head += fmt::format("// {} bytes of shared memory\n", scheduled_.shared_bytes);
    for (std::size_t i = 0; i < layouts_.size(); ++i)
      head += fmt::format("// L{}: {}\n", i, layouts_[i]);
    return head + tile::to_text(planned_.kernel, remarks_);
  }

 private:
  std::vector<Roles::Early> early_loads() const {
    return scheduled_.shape.roles ? scheduled_.roles->early : std::vector<Roles::Early>{};
  }

  void add(OpId id, const std::string& remark) {
    std::string& all = remarks_[id];
    all += (all.empty() ? "" : "; ") + remark;
  }

  std::string name(const Layout& layout) {
    const std::string text =
        fmt::format("registers [{}], threads [{}]", bits_text(layout.register_bits()),
                    bits_text(layout.thread_bits()));
    const auto found = std::find(layouts_.begin(), layouts_.end(), text);
    const auto number = found - layouts_.begin();
    if (found == layouts_.end()) layouts_.push_back(text);
    return fmt::format("L{}", number);
  }

  std::string block_text() const {
    const Shape& shape = scheduled_.shape;
    const int threads = plan_.threads();
    std::string text = fmt::format("// a block of {} threads: ", scheduled_.threads());
    if (shape.roles) {
      const Teams teams = teams_of(threads);
      text += fmt::format("{} of {} compute with {} registers each, {} copy with {}",
                          teams.count == 1 ? "one team" : "two teams", threads,
                          teams.compute_registers, kCopyThreads, teams.copy_registers);
    } else if (shape.programs > 1) {
      text += fmt::format("{} programs, a warp each", shape.programs);
    } else {
      text += "one program";
    }
    text += shape.loops || shape.roles ? ", then further ones\n" : "\n";
    if (!shape.rows) return text;
    text += fmt::format("// rows: {} bytes a thread", scheduled_.rows.bytes_per_thread);
    if (shape.together > 1) text += fmt::format(", {} programs together", shape.together);
    if (scheduled_.rows.registers > 0)
      text += fmt::format(", {} registers", scheduled_.rows.registers);
    if (shape.loops) text += fmt::format(", {} ahead", shape.ahead);
    if (shape.packed) text += ", packed until they are used";
    if (shape.cut != nullptr)
      text += fmt::format(", {} elements in parts of {}, {} bytes kept", shape.cut->extent,
                          shape.cut->part, shape.keep_bytes);
    return text + "\n";
  }

  std::string roles_text() const {
    if (scheduled_.shape.rows) return {};
    if (!scheduled_.roles) return fmt::format("// no roles: {}\n", scheduled_.roles.why_not());
    const Roles& roles = *scheduled_.roles;
    return roles.maps.empty() ? fmt::format("// no tensor maps: {}\n", roles.no_maps)
                              : fmt::format("// {} tensor maps\n", roles.maps.size());
  }

  void region(const Region& region, const Operation* loop, const Ahead& ahead) {
    for (const OpId id : region.ops) {
      const Operation& op = planned_.kernel.ops[id];
      switch (op.code) {
        case Code::For: {
          const auto inner = copies_ahead(planned_, op, scheduled_.shape.stages);
          add(id, inner ? ahead_text(*inner, id) : "nothing is copied ahead: " + inner.why_not());
          this->region(op.regions[0], &op, inner ? *inner : Ahead{});
          break;
        }
        case Code::Dot: add(id, dot_text(op, loop)); break;
        case Code::Vload: add(id, load_text(id, ahead)); break;
        case Code::Vstore:
          add(id, access_text(planned_.type(op.in[0]), planned_.type(op.in.back()).shape));
          break;
        case Code::Reduce:
        case Code::Scan: place(id); break;  // what is in their regions is done to elements
        default:
          place(id);
          for (const Region& inner : op.regions) this->region(inner, nullptr, {});
      }
    }
  }

  void rows() {
    const Courses courses = courses_of(planned_.kernel);
    const Shape& shape = scheduled_.shape;
    if (!shape.loops) {
      for (const auto& [id, sure] : sure_accesses(planned_, courses))
        if (sure.constant) add(id, "the same for all programs");
      return;
    }
    for (const Stream& stream : streams_of(planned_, courses))
      add(stream.load, stream.fixed ? "copied once for all programs"
                                    : fmt::format("copied {} ahead", shape.ahead));
  }

  void place(OpId id) {
    const Operation& op = planned_.kernel.ops[id];
    if (op.out.empty() || !planned_.type(op.out[0]).is_tile()) return;
    const bool names = op.code == Code::Permute || op.code == Code::Reshape;
    if (names && in_ring_.count(op.in[0]) != 0) {
      in_ring_.insert(op.out[0]);
      return add(id, "in the ring");
    }
    const std::optional<Layout>& home = plan_.home(op.out[0]);
    add(id, home ? name(*home) : "made where it is used");
  }

  std::string ahead_text(const Ahead& ahead, OpId loop) const {
    const Shape& shape = scheduled_.shape;
    std::string text = fmt::format("{} stages of {} bytes", shape.stages, ahead.bytes);
    if (!shape.roles || scheduled_.roles->loop != loop) {
      text += ", copied ahead by all threads";
    } else {
      text += shape.maps > 0 ? ", filled by tensor maps" : ", filled by those that copy";
    }
    return text + (ahead.pending.empty() ? "" : "; its product goes on into the next round");
  }

  std::string load_text(OpId id, const Ahead& ahead) {
    const Operation& op = planned_.kernel.ops[id];
    for (const Ring& ring : ahead.rings) {
      if (ring.load != id) continue;
      in_ring_.insert(op.out[0]);
      return fmt::format("in the ring: {} rows of {} bytes", ring.panels.rows,
                         ring.panels.row_bytes());
    }
    return access_text(planned_.type(op.in[0]), planned_.type(op.out[0]).shape);
  }

  std::string access_text(const Type& view, const Extents& shape) {
    const Layout layout = plan_.access(view, shape);
    return fmt::format("{}, up to {} bytes at a time", name(layout),
                       run_of(view, layout, shape) * byte_width(view.dtype));
  }

  std::string operand_text(const Operation& dot, std::size_t side, const Operation* loop) const {
    if (in_ring_.count(dot.in[side]) != 0) return "the ring";
    const std::optional<Layout> fragments = side == 0 ? plan_.fragments(dot) : std::nullopt;
    const bool before = loop != nullptr && !planned_.made_in(*loop, dot.in[0]) &&
                        planned_.definitions[dot.in[0]].has_value();
    const bool in_registers =
        fragments && (before || (plan_.home(dot.in[0]) && *plan_.home(dot.in[0]) == *fragments));
    return in_registers ? "registers" : "shared memory";
  }

  std::string dot_text(const Operation& dot, const Operation* loop) {
    const Layout layout = plan_.product(dot);
    const Product product = plan_.means(dot);
    if (product == Product::Scalars)
      return fmt::format("{}: multiplications and additions of threads", name(layout));
    std::string instruction = fmt::format("mma m16n8k{}", k_step(product)), why;
    if (plan_.by_warpgroups(dot)) {
      // Of a warpgroup: what its threads do not divide among them.
      int bits = 0;
      for (const IndexBit& bit : layout.register_bits()) bits += bit.axis == 1 ? 1 : 0;
      for (int i = 0; i < kLaneBits; ++i)
        bits += layout.thread_bits()[static_cast<std::size_t>(i)].axis == 1 ? 1 : 0;
      instruction = fmt::format("wgmma m64n{}k16", 1 << bits);
    } else {
      why = fmt::format(" (no wgmma: {})", plan_.against_warpgroups(dot));
    }
    return fmt::format("{}: {}{} of {} and {}", name(layout), instruction, why,
                       operand_text(dot, 0, loop), operand_text(dot, 1, loop));
  }

  const Scheduled& scheduled_;
  const Planned& planned_;
  const Plan& plan_;
  Remarks remarks_;
  std::vector<std::string> layouts_;  // in the order in which they are met
  std::set<ValueId> in_ring_;
};

}  // namespace

std::string to_text(const Scheduled& scheduled) {
  return Remarker(scheduled).run();
}

}  // namespace tessera::tile::gpu
