#include "tessera/tile/gpu/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "tessera/tile/gpu/panels.h"
#include "tessera/tile/gpu/warp_specialization.h"

namespace tessera::tile::gpu {
namespace {

constexpr int kMostThreads = 1024;
constexpr int kDeepest = 32;  // longer chains of rematerialized tiles get a layout

std::int64_t padded_count(const Extents& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count <<= index_bits(extent);
  return count;
}

int power_of_two(std::int64_t at_least, int low, int high) {
  return static_cast<int>(std::clamp<std::int64_t>(held_extent(at_least), low, high));
}

/// Tile that an operation loads or stores.
const Type* moved(const Kernel& kernel, const Operation& op) {
  switch (op.code) {
    case Code::Load:
    case Code::Vload: return &kernel.type(op.out[0]);
    case Code::Store: return &kernel.type(op.in[1]);
    case Code::Vstore: return &kernel.type(op.in.back());
    default: return nullptr;
  }
}

bool costs_nothing(Code code) {
  switch (code) {
    case Code::Const:
    case Code::Iota:
    case Code::Broadcast:
    case Code::Reshape:
    case Code::Permute:
    case Code::Map:
    case Code::Cast:
    case Code::Bitcast:
    case Code::Offset:
    case Code::Hint: return true;
    default: return false;
  }
}

Extents without_ones(const Extents& shape) {
  Extents kept;
  for (const std::int64_t extent : shape)
    if (extent != 1) kept.push_back(extent);
  return kept;
}

}  // namespace

MatmulInstruction Plan::instruction_of(const Operation& dot) const {
  const DType a = kernel_->type(dot.in[0]).dtype, b = kernel_->type(dot.in[1]).dtype;
  const DType c = kernel_->type(dot.in[2]).dtype;
  if (a != b) return MatmulInstruction::Scalars;
  if (a == DType::F16 && (c == DType::F32 || c == a)) return MatmulInstruction::Half;
  if (a == DType::BF16 && (c == DType::F32 || c == a)) return MatmulInstruction::BFloat;
  if (a == DType::I8 && c == DType::I32) return MatmulInstruction::Byte;
  if (a == DType::F32 && c == DType::F32 && target_.tf32) return MatmulInstruction::Tf32;
  return MatmulInstruction::Scalars;
}

int contiguous_axis(const Type& view) {
  for (int axis = view.rank(); axis-- > 0;)
    if (view.strides[static_cast<std::size_t>(axis)] == 1) return axis;
  return view.rank() - 1;
}

int run_of(const Type& view, const Layout& layout, const Extents& shape) {
  const int axis = contiguous_axis(view);
  const auto at = static_cast<std::size_t>(axis);
  if (view.strides[at] != 1 && view.strides[at] != kDynamic) return 1;
  int run = std::min(layout.run(axis), static_cast<int>(kChunk) / byte_width(view.dtype));
  while (shape[at] % run != 0) run /= 2;
  return run;
}

std::optional<Layout> reshaped(const Layout& layout, const Extents& from, const Extents& to) {
  bool powers = true;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (layout.extent(static_cast<int>(i)) != std::int64_t{1} << index_bits(from[i])) return {};
    powers = powers && std::has_single_bit(static_cast<std::uint64_t>(from[i]));
  }
  for (const std::int64_t extent : to)
    powers = powers && std::has_single_bit(static_cast<std::uint64_t>(extent));
  if (!powers && without_ones(from) != without_ones(to)) return {};

  // In row-major order, bit i of an axis is bit i + first of the position, where `first` is the
  // number of bits of the axes after it: for powers of two, and where only axes of extent 1 are
  // added or removed.
  const auto firsts = [](const Extents& shape) {
    std::vector<int> first(shape.size() + 1, 0);
    for (std::size_t i = shape.size(); i-- > 0;) first[i] = first[i + 1] + index_bits(shape[i]);
    return first;
  };
  const std::vector<int> before = firsts(from), after = firsts(to);
  const auto relabel = [&](std::vector<IndexBit> bits) {
    for (IndexBit& bit : bits) {
      if (bit.axis < 0) continue;
      const int position = before[static_cast<std::size_t>(bit.axis) + 1] + bit.bit;
      std::size_t axis = to.size() - 1;
      while (after[axis] <= position) --axis;
      bit = {static_cast<int>(axis), position - after[axis + 1]};
    }
    return bits;
  };
  return Layout(static_cast<int>(to.size()), relabel(layout.register_bits()),
                relabel(layout.thread_bits()));
}

Expected<Plan> Plan::make(const Kernel& kernel, const Target& target) {
  Plan plan(kernel, target);
  TESSERA_TRY_DONE(plan.count_threads());
  plan.homes_.resize(kernel.values.size());
  plan.depth_.resize(kernel.values.size());
  plan.visit(kernel.body);
  if (plan.request_layouts()) plan.visit(kernel.body);
  return plan;
}

bool Plan::request_layouts() {
  std::map<ValueId, std::vector<const Operation*>> uses;
  std::vector<const Operation*> loads;
  for_each_op(*kernel_, kernel_->body, [&](OpId id) {
    const Operation& op = kernel_->ops[id];
    for (const ValueId in : op.in) uses[in].push_back(&op);
    if (op.code == Code::Vload && kernel_->type(op.out[0]).is_tile()) loads.push_back(&op);
  });
  for (const Operation* load : loads) {
    // Casts and reshapes up to the broadcast.
    std::vector<ValueId> chain = {load->out[0]};
    const Operation* next = nullptr;
    while (true) {
      const auto& users = uses[chain.back()];
      next = users.size() == 1 ? users.front() : nullptr;
      if (next == nullptr || (next->code != Code::Reshape && next->code != Code::Cast)) break;
      chain.push_back(next->out[0]);
    }
    // The layout of the elementwise operations that use it, broadcast or as it is.
    const bool is_broadcast = next != nullptr && next->code == Code::Broadcast;
    const ValueId used = is_broadcast ? next->out[0] : chain.back();
    const Extents& narrow = kernel_->type(chain.back()).shape;
    const Extents& wide = kernel_->type(used).shape;
    if (narrow.size() != wide.size()) continue;
    std::optional<Layout> layout;
    bool agree = !uses[used].empty();
    for (const Operation* use : uses[used]) {
      const std::optional<Layout> home =
          use->code == Code::Map ? homes_[use->out[0]] : std::nullopt;
      agree = agree && home && (!layout || *layout == *home);
      layout = home;
    }
    if (!agree) continue;
    for (std::size_t i = 0; i < narrow.size(); ++i)
      if (narrow[i] == 1 && wide[i] != 1) layout = layout->collapsed(static_cast<int>(i));
    for (std::size_t i = chain.size(); layout && i-- > 1;)
      layout = reshaped(*layout, kernel_->type(chain[i]).shape, kernel_->type(chain[i - 1]).shape);
    const Type& view = kernel_->type(load->in[0]);
    const Extents& shape = kernel_->type(load->out[0]).shape;
    // Vector accesses stay as wide as they are.
    if (layout && *layout != *homes_[load->out[0]] &&
        gpu::run_of(view, *layout, shape) >= gpu::run_of(view, *homes_[load->out[0]], shape))
      requested_.emplace(load->out[0], *layout);
  }
  return !requested_.empty();
}

Expected<Done> Plan::count_threads() {
  std::int64_t bytes = 0, products = 0, largest = 1;
  int dots = 0;
  // A matmul that goes on with the accumulators of another one, or of a loop, needs no others.
  const auto continues = [&](const Region& region, const Operation& dot) {
    ValueId id = dot.in[2];
    for (std::size_t i = region.ops.size(); i-- > 0;) {
      const Operation& op = kernel_->ops[region.ops[i]];
      if (std::find(op.out.begin(), op.out.end(), id) == op.out.end()) continue;
      if (op.code == Code::Dot || op.code == Code::For) return true;
      if (op.code != Code::Map) return false;
      id = op.in[op.function == Function::Select ? op.in.size() - 1 : 0];
    }
    return false;
  };
  // The accumulators of all matmuls of a region are live at the same time.
  const auto count_products = [&](const Region& region) {
    std::int64_t elements = 0;
    for (const OpId id : region.ops) {
      const Operation& op = kernel_->ops[id];
      if (op.code != Code::Dot) continue;
      ++dots;
      if (continues(region, op)) continue;
      const bool matrix = instruction_of(op) != MatmulInstruction::Scalars;
      elements += padded_count(kernel_->type(op.out[0]).shape) / (matrix ? kMatrixRegisters : 64);
    }
    products = std::max(products, elements);
  };
  count_products(kernel_->body);
  for_each_op(*kernel_, kernel_->body, [&](OpId id) {
    const Operation& op = kernel_->ops[id];
    if (const Type* type = moved(*kernel_, op); type != nullptr && type->is_tile()) {
      const int width = byte_width(type->dtype);
      bytes = std::max(bytes, padded_count(type->shape) * width);
      int& narrowest = widths_.try_emplace(type->shape, width).first->second;
      narrowest = std::min(narrowest, width);
    }
    for (const Region& inner : op.regions) count_products(inner);
    for (const ValueId out : op.out)
      if (kernel_->type(out).is_tile())
        largest = std::max(largest, padded_count(kernel_->type(out).shape));
  });
  rows_first_ = dots > 1;  // the rows of one matmul are those of the next
  if (target_.exact_threads) products = 0;
  threads_ = dots > 0 ? power_of_two(std::max<std::int64_t>(products, target_.threads), 128, 512)
             : target_.threads > 0
                 ? power_of_two(std::min<std::int64_t>(target_.threads, largest), 32, kMostThreads)
                 : power_of_two(bytes / target_.bytes_per_thread, 32, kMostThreads);
  threads_ = std::max(threads_, power_of_two(largest / kMostRegisters, 32, kMostThreads));
  if (largest / threads_ > kMostRegisters) {
    return Diagnostic{.id = "ptx-tile-too-large",
                      .where = {.file = {}, .item = kernel_->name},
                      .message = fmt::format("a tile of {} elements does not fit into the "
                                             "registers of a block",
                                             largest),
                      .note = fmt::format("{} threads hold at most {} elements of a tile",
                                          kMostThreads, kMostThreads * kMostRegisters),
                      .help = "cut the tile into smaller ones with a loop"};
  }
  return Done{};
}

int Plan::lanes_along(const Extents& shape, int fastest, std::int64_t run) const {
  constexpr int kWarp = 1 << kLaneBits, kLeast = 8;
  constexpr std::int64_t kMost = 4;     // accesses of a lane to a short row
  constexpr std::int64_t kSector = 32;  // bytes of memory that are accessed at once
  const auto width = widths_.find(shape);
  if (!target_.rows || threads_ != kWarp || width == widths_.end()) return threads_;
  const std::int64_t extent = shape[static_cast<std::size_t>(fastest)];
  if (run * width->second >= kChunk || extent > kMost * kWarp * run) return threads_;
  const std::int64_t rows = padded_count(shape) / held_extent(extent);
  return power_of_two(std::max(kSector / (run * width->second), kWarp / rows), kLeast, kWarp);
}

int Plan::run_of(const Extents& shape, int fastest) const {
  const auto width = widths_.find(shape);
  const std::int64_t most = width == widths_.end() ? 4 : 16 / width->second;
  const std::int64_t extent = shape[static_cast<std::size_t>(fastest)];
  std::int64_t run = std::clamp<std::int64_t>(padded_count(shape) / threads_, 1, most);
  // Vectors are whole; without them, neighbouring lanes access neighbouring elements.
  while (extent % run != 0) run /= 2;
  // Wide vectors leave lanes idle at the end of a short row.
  const auto held = [&](std::int64_t run) {
    const std::int64_t lanes = lanes_along(shape, fastest, run);
    const std::int64_t along = std::min<std::int64_t>(lanes, held_extent(extent) / run) * run;
    return (extent + along - 1) / along * along;
  };
  while (run > 1 && held(run) * 4 > held(1) * 5) run /= 2;
  return static_cast<int>(run);
}

Layout Plan::ordered(const Extents& shape, int fastest) const {
  std::vector<int> order = {fastest};
  for (int axis = static_cast<int>(shape.size()); axis-- > 0;)
    if (axis != fastest) order.push_back(axis);
  const int run = run_of(shape, fastest);
  return Layout::blocked({.shape = shape,
                          .order = std::move(order),
                          .threads = threads_,
                          .run = run,
                          .lanes = std::min(lanes_along(shape, fastest, run), 1 << kLaneBits)});
}

Layout Plan::standard(const Extents& shape) const {
  return ordered(shape, static_cast<int>(shape.size()) - 1);
}

Layout Plan::access(const Type& view, const Extents& shape) const {
  for (const auto& [wide, width] : widths_) {
    if (!target_.coarsening || wide.size() != shape.size() || wide == shape) continue;
    bool is_part = true;
    for (std::size_t i = 0; i < shape.size(); ++i)
      is_part = is_part && (shape[i] == 1 || shape[i] == wide[i]);
    if (!is_part) continue;
    Layout layout = ordered(wide, contiguous_axis(view));
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (shape[i] == 1) layout = layout.collapsed(static_cast<int>(i));
    return layout;
  }
  return ordered(shape, contiguous_axis(view));
}

Layout Plan::access(const Operation& op) const {
  const bool loads = op.code == Code::Vload;
  const auto requested = loads ? requested_.find(op.out[0]) : requested_.end();
  if (requested != requested_.end()) return requested->second;
  return access(kernel_->type(op.in[0]), kernel_->type(loads ? op.out[0] : op.in.back()).shape);
}

Layout Plan::accumulator_layout(const Operation& dot) const {
  const Extents& shape = kernel_->type(dot.out[0]).shape;
  if (instruction_of(dot) == MatmulInstruction::Scalars) return Layout::patches(shape, threads_);
  if (uses_wgmma(dot)) return Layout::warpgroups(shape, threads_);
  return Layout::matrix({.shape = shape, .threads = threads_, .rows_first = rows_first_});
}

std::string_view Plan::why_not_wgmma(const Operation& dot) const {
  const MatmulInstruction instruction = instruction_of(dot);
  if (!target_.wgmma) return "the GPU has no wgmma";
  if (instruction != MatmulInstruction::Half && instruction != MatmulInstruction::BFloat)
    return "not of f16 or bf16";
  constexpr std::int64_t kRows = 64, kLeast = 16, kMost = 256;  // per instruction
  const Extents& shape = kernel_->type(dot.out[0]).shape;
  const std::int64_t rows = held_extent(shape[0]), columns = held_extent(shape[1]);
  if (rows < kRows) return "fewer than 64 rows";
  const int groups = threads_ >> kGroupBits;
  if (groups == 0) return "fewer than 128 threads";
  const std::int64_t beside = std::max<std::int64_t>(1, groups / (rows / kRows));
  if (columns / beside < kLeast) return "fewer than 16 columns for each warpgroup";
  if (columns / beside > kMost) return "more than 256 columns for each warpgroup";
  // The accumulators of an instruction are in registers all at once, and so are its descriptors.
  constexpr std::int64_t kOthers = 32;
  if (columns / beside / 2 + kOthers > kRegistersOfAMultiprocessor / threads_)
    return "too few registers for the columns of each warpgroup";
  return {};
}

std::int64_t Plan::wgmma_columns(const Operation& dot) const {
  constexpr std::int64_t kUnit = 8;
  const Layout layout = accumulator_layout(dot);
  std::int64_t held = 1;  // by a warpgroup: register bits and lane bits
  for (const IndexBit& bit : layout.register_bits()) held *= bit.axis == 1 ? 2 : 1;
  for (std::size_t i = 0; i < kLaneBits; ++i) held *= layout.thread_bits()[i].axis == 1 ? 2 : 1;
  const std::int64_t columns = kernel_->type(dot.out[0]).shape[1];
  // Registers hold columns in ascending order.
  return held < held_extent(columns) ? held : (columns + kUnit - 1) / kUnit * kUnit;
}

std::optional<Layout> Plan::fragments(const Operation& dot) const {
  const Extents& shape = kernel_->type(dot.in[0]).shape;
  const MatmulInstruction instruction = instruction_of(dot);
  if (instruction == MatmulInstruction::Byte || instruction == MatmulInstruction::Tf32 ||
      shape[1] % 16 != 0)
    return {};
  const Layout layout =
      uses_wgmma(dot) ? Layout::warpgroups(shape, threads_)
                      : Layout::matrix({.shape = shape, .threads = threads_, .rows_first = true});
  const Layout sums = accumulator_layout(dot);
  const auto rows = [](const std::vector<IndexBit>& bits) {
    std::vector<IndexBit> kept = bits;
    std::erase_if(kept, [](const IndexBit& bit) { return bit.axis != 0; });
    return kept;
  };
  if (rows(layout.register_bits()) != rows(sums.register_bits())) return {};
  for (std::size_t i = 0; i < layout.thread_bits().size(); ++i) {
    const IndexBit &own = layout.thread_bits()[i], &sum = sums.thread_bits()[i];
    const bool warp = i >= kLaneBits;
    if (warp && own.axis == 1) return {};
    if ((own.axis == 0 || sum.axis == 0) && own != sum) return {};
  }
  return layout;
}

std::optional<Layout> Plan::joined(const std::vector<ValueId>& ids) const {
  const std::optional<Layout>* best = nullptr;
  for (const ValueId id : ids) {
    const std::optional<Layout>& home = homes_[id];
    if (!home) continue;
    // Fewer registers mean less replication. At equal numbers the non-default layout is more
    // expensive to obtain: it stems from a matmul.
    const auto rank = [&](const Layout& layout) {
      return std::pair(layout.registers(), layout == standard(kernel_->type(id).shape));
    };
    if (best == nullptr || rank(*home) < rank(**best)) best = &home;
  }
  return best == nullptr ? std::nullopt : *best;
}

void Plan::visit(const Region& region) {
  for (const OpId id : region.ops) visit(kernel_->ops[id]);
}

void Plan::settle(const Operation& op) {
  for (const ValueId out : op.out)
    if (kernel_->type(out).is_tile() && !homes_[out])
      homes_[out] = standard(kernel_->type(out).shape);
}

void Plan::visit_loop(const Operation& op, std::size_t first, const Region& region) {
  const auto carried = [&](std::size_t i) -> std::vector<ValueId> {
    std::vector<ValueId> places = {op.out[i]};
    for (const Region& part : op.regions)
      places.push_back(part.params[i + part.params.size() - op.out.size()]);
    return places;
  };
  const auto assign = [&](std::size_t i, const std::optional<Layout>& home) {
    for (const ValueId place : carried(i)) homes_[place] = home;
  };
  for (std::size_t i = 0; i < op.out.size(); ++i) assign(i, homes_[op.in[first + i]]);
  visit(region);
  const Operation& yield = kernel_->ops[region.ops.back()];
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    if (!kernel_->type(op.out[i]).is_tile()) continue;
    std::optional<Layout> home = homes_[yield.in[i]];
    if (!home) home = homes_[op.in[first + i]];
    if (!home) home = standard(kernel_->type(op.out[i]).shape);
    assign(i, home);
  }
  for (const Region& part : op.regions) visit(part);
}

void Plan::visit(const Operation& op) {
  switch (op.code) {
    case Code::For: return visit_loop(op, 3, op.regions[0]);
    case Code::While: return visit_loop(op, 0, op.regions[1]);
    case Code::If:
      for (const Region& branch : op.regions) visit(branch);
      for (std::size_t i = 0; i < op.out.size(); ++i) {
        std::vector<ValueId> yields;
        for (const Region& branch : op.regions)
          yields.push_back(kernel_->ops[branch.ops.back()].in[i]);
        homes_[op.out[i]] = joined(yields);
      }
      return settle(op);
    default: break;
  }
  if (op.out.empty() || !kernel_->type(op.out[0]).is_tile()) return;
  std::optional<Layout> home;
  const Extents& shape = kernel_->type(op.out[0]).shape;
  const std::optional<Layout> first = op.in.empty() ? std::nullopt : homes_[op.in[0]];
  switch (op.code) {
    case Code::Vload: home = access(op); break;
    case Code::Dot:
      home = accumulator_layout(op);
      any_wgmma_ = any_wgmma_ || uses_wgmma(op);
      break;
    case Code::Reduce:
    case Code::Scan: {
      const Extents& whole = kernel_->type(op.in[0]).shape;
      std::optional<Layout> of = joined(op.in);
      if (!of) of = standard(whole);
      home = op.code == Code::Scan ? of : of->without(static_cast<int>(op.ints[0]));
      break;
    }
    case Code::Permute:
      if (first) home = first->permuted(op.ints);
      break;
    case Code::Reshape: {
      const Type& whole = kernel_->type(op.in[0]);
      if (first) home = reshaped(*first, whole.shape, shape);
      // The layout that will be requested of a rematerialized tile is not known yet: only one that
      // can always be propagated backwards may stay open.
      const bool open =
          !first && (whole.is_scalar() || without_ones(whole.shape) == without_ones(shape));
      if (!home && !open) home = standard(shape);
      break;
    }
    case Code::Const:
    case Code::Iota:
    case Code::Broadcast: break;
    case Code::Map:
    case Code::Cast:
    case Code::Bitcast:
    case Code::Offset:
    case Code::Hint:
    case Code::Load:
    case Code::Atomic:
    case Code::Cas: home = joined(op.in); break;
    default: break;
  }
  int depth = 0;
  for (const ValueId in : op.in)
    if (!homes_[in]) depth = std::max(depth, depth_[in] + 1);
  if (!home && (!costs_nothing(op.code) || depth > kDeepest)) home = standard(shape);
  for (const ValueId out : op.out) {
    homes_[out] = home;
    depth_[out] = home ? 0 : depth;
  }
}

}  // namespace tessera::tile::gpu
