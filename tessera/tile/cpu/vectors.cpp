#include "tessera/tile/cpu/vectors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <set>
#include <utility>

#include "tessera/tile/function.h"

namespace tessera::tile::cpu {
namespace {

/// Statistics of a nest that the vectorization depends on.
struct Survey {
  std::vector<int> score;  // by axis of the space: contiguous accesses along it, minus others
  int narrowest = 8, widest = 1;
  bool has_addresses = false;  // gathers, scatters, atomics: element by element
  bool has_region_fold = false;
  bool has_transcendentals = false;
  std::array<std::int64_t, 9> lengths = {};  // number of operations, by the bytes of their results

  /// Estimated number of instructions for vectors of so many elements.
  std::int64_t length(int width, const machine::Machine& machine) const {
    std::int64_t sum = 0;
    for (std::size_t bytes = 1; bytes < lengths.size(); ++bytes)
      sum += lengths[bytes] *
             std::max<std::int64_t>(1, static_cast<int>(bytes) * width / machine.vector_bytes);
    return sum;
  }
};

constexpr std::int64_t kTranscendentalLength = 20;
/// Unroll limit: a longer body provides enough instruction-level parallelism, and compiles faster.
constexpr std::int64_t kLongest = 440;

/// Unroll factor for a few vectors, at most `most`: a divisor of their number, if it is not less
/// than half of that. The remaining vectors are computed one by one, each with a loop of its own
/// where the nest folds along another axis.
int even_part(std::int64_t vectors, int most) {
  if (vectors > 4 * std::int64_t{most}) return most;
  for (int part = most; 2 * part >= most; --part)
    if (vectors % part == 0) return part;
  return most;
}

/// Least lanes of a vector.
constexpr std::int64_t kLeastLanes = 4;
/// Cost of a lane that is loaded by a gather over that of one in a contiguous load.
constexpr std::int64_t kStridedCost = 4;

/// Lanes of the longest vector along an axis; none where single elements are as fast.
std::int64_t lanes_along(std::int64_t extent, int width) {
  if (extent >= width) return width;
  const auto lanes = static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 1))));
  return lanes < kLeastLanes ? 0 : lanes;
}

class Surveyor {
 public:
  Surveyor(const Nest& nest, const ScheduledKernel& scheduled, const Placement& placement)
      : nest_(nest), scheduled_(scheduled), placement_(placement) {
    survey_.score.assign(nest.space.size(), 0);
  }

  Survey run() {
    const IndexMap identity = identity_map(nest_.space.size());
    for (const Root& root : nest_.roots) {
      if (root.kind == Root::Kind::Write) {
        count_type(type(root.value).dtype);
        access(identity, dense(scheduled_.buffers[static_cast<std::size_t>(root.buffer)].shape));
        // A reshape that is copied is read from its buffer, anything else is computed.
        is_buffered(root.value) && !computes(root.value) ? value(root.value, identity)
                                                         : operands(root.value, identity);
        continue;
      }
      const Operation& op = kernel().ops[root.op];
      if (root.kind == Root::Kind::Effect) effect(op, identity);
      survey_.has_region_fold = survey_.has_region_fold || !op.regions.empty();
      for (const ValueId in : op.in) value(in, identity);
    }
    return survey_;
  }

 private:
  const Kernel& kernel() const { return scheduled_.kernel; }
  const Type& type(ValueId id) const { return kernel().type(id); }
  bool is_buffered(ValueId id) const { return scheduled_.buffer_of[id] >= 0; }
  bool computes(ValueId id) const {
    return placement_.definition[id] && !placement_.reshaped[id] &&
           is_inline(kernel(), kernel().ops[*placement_.definition[id]]);
  }

  void count_type(DType dtype) {
    const int bytes = byte_width(dtype);
    if (dtype != DType::Bool) survey_.narrowest = std::min(survey_.narrowest, bytes);
    survey_.widest = std::max(survey_.widest, bytes);
  }

  static Extents dense(const Extents& shape) { return Type::view(DType::F32, shape).strides; }

  void access(const IndexMap& map, const Extents& strides) {
    std::vector<std::int64_t> along(nest_.space.size(), 0);
    for (std::size_t i = 0; i < map.size(); ++i) {
      if (map[i].axis < 0) continue;
      std::int64_t& stride = along[static_cast<std::size_t>(map[i].axis)];
      stride = strides[i] == kDynamic || stride == kDynamic ? kDynamic : stride + strides[i];
    }
    for (std::size_t i = 0; i < along.size(); ++i) {
      if (along[i] != 0) survey_.score[i] += along[i] == 1 ? 2 : -1;
    }
  }

  void effect(const Operation& op, const IndexMap& map) {
    if (op.code == Code::Vstore) {
      count_type(type(op.in.back()).dtype);
      access(map, type(op.in[0]).strides);
    } else {
      survey_.has_addresses = true;
    }
  }

  void operands(ValueId id, const IndexMap& map) {
    if (!placement_.definition[id]) return;
    const Operation& op = kernel().ops[*placement_.definition[id]];
    const Type& result = type(id);
    std::int64_t& length = survey_.lengths[static_cast<std::size_t>(
        byte_width(result.is_pointer() ? DType::I64 : result.dtype))];
    ++length;
    if (op.code == Code::Vload) return access(map, type(op.in[0]).strides);
    if (op.code == Code::Load || op.code == Code::Gather) survey_.has_addresses = true;
    const bool transcendental = op.code == Code::Map && is_transcendental(op.function);
    survey_.has_transcendentals = survey_.has_transcendentals || transcendental;
    if (transcendental) length += kTranscendentalLength;
    if (const auto moved = operand_map(kernel(), op, map)) return value(op.in[0], *moved);
    for (const ValueId in : op.in) {
      if (op.code == Code::Gather && in == op.in[0]) continue;
      value(in, map);
    }
  }

  void value(ValueId id, const IndexMap& map) {
    if (!type(id).is_tile() || !seen_.insert({id, key(map)}).second) return;
    count_type(type(id).is_pointer() ? DType::I64 : type(id).dtype);
    if (is_buffered(id)) return access(map, dense(type(id).shape));
    operands(id, map);
  }

  static std::vector<std::int64_t> key(const IndexMap& map) {
    std::vector<std::int64_t> key;
    for (const AxisMap& axis : map) key.insert(key.end(), {axis.axis, axis.offset});
    return key;
  }

  const Nest& nest_;
  const ScheduledKernel& scheduled_;
  const Placement& placement_;
  Survey survey_;
  std::set<std::pair<ValueId, std::vector<std::int64_t>>> seen_;
};

}  // namespace

void choose_vectors(Nest& nest, const ScheduledKernel& scheduled, const Placement& placement,
                    const machine::Machine& machine, const NestOptions& options) {
  const Survey survey = Surveyor(nest, scheduled, placement).run();
  const auto rank = static_cast<int>(nest.space.size());
  const bool is_scan = std::any_of(nest.roots.begin(), nest.roots.end(),
                                   [](const Root& root) { return root.kind == Root::Kind::Scan; });
  const bool keeps_order = is_scan || survey.has_region_fold;
  // A long body of several types uses the vector length of the wider ones, where that shortens it:
  // registers are few.
  int width = std::max(1, machine.vector_bytes / survey.narrowest);
  const auto length = [&](int of) { return survey.length(of, machine); };
  while (width > 1 && length(width) > kLongest && 3 * length(width / 2) < 2 * length(width))
    width /= 2;

  // The axis with the longest vectors, among equals that of the best accesses, then the last. Where
  // no axis fills a vector, shorter vectors are better than single elements.
  int lane = -1;
  std::int64_t longest = 0;
  for (int axis = 0; axis < rank; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    if (keeps_order && nest.fold == axis) continue;
    const std::int64_t lanes = lanes_along(nest.space[at], width);
    const std::int64_t useful = survey.score[at] > 0 ? lanes : lanes / kStridedCost;
    if (useful < 1 || useful < longest) continue;
    if (useful == longest && survey.score[at] < survey.score[static_cast<std::size_t>(lane)])
      continue;
    longest = useful;
    lane = axis;
  }
  nest.lane = lane >= 0 ? lane : rank - 1;
  if (lane < 0 || options.scalar || survey.has_addresses) return;
  width = static_cast<int>(lanes_along(nest.space[static_cast<std::size_t>(lane)], width));
  nest.width = width;
  // Folds need many independent chains; a quarter of the registers leaves room for temporaries.
  // Polynomials need many constants besides, and have long chains, of which more at a time pay
  // where each ends in a lane of its own. Streaming code needs little.
  const bool folds_lanes = nest.fold && *nest.fold == lane;
  const int sixteenths = survey.has_transcendentals && (folds_lanes || !nest.fold) ? 3
                         : nest.fold                                               ? 4
                                                                                   : 2;
  const std::int64_t registers = std::max(1, machine.vector_registers * sixteenths / 16);
  const std::int64_t each = std::max<std::int64_t>(1, width * survey.widest / machine.vector_bytes);
  const std::int64_t fit = std::min(nest.space[static_cast<std::size_t>(lane)] / width,
                                    kLongest / std::max<std::int64_t>(1, length(width)));
  // Each of many roots is a chain of its own; two are often one value, kept and folded.
  const auto roots =
      nest.roots.size() > 2 ? static_cast<std::int64_t>(nest.roots.size()) : std::int64_t{1};
  const auto most =
      static_cast<int>(std::max<std::int64_t>(1, std::min(registers / each / roots, fit)));
  nest.unroll = even_part(nest.space[static_cast<std::size_t>(lane)] / width, most);
}

}  // namespace tessera::tile::cpu
