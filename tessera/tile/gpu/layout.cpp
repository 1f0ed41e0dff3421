#include "tessera/tile/gpu/layout.h"

#include <algorithm>
#include <bit>

namespace tessera::tile::gpu {
namespace {

int log2_of(std::int64_t power) {
  return std::countr_zero(static_cast<std::uint64_t>(power));
}

/// Index bits of a shape that are not mapped yet, lowest first on each axis.
class Supply {
 public:
  explicit Supply(const Extents& shape) {
    for (const std::int64_t extent : shape) bits_.push_back(index_bits(extent));
    next_.resize(bits_.size());
  }

  int left(int axis) const { return at(bits_, axis) - at(next_, axis); }
  /// Appends up to `most` bits of an axis to a list.
  int take(int axis, int most, std::vector<IndexBit>& into) {
    const int count = std::min(most, left(axis));
    for (int i = 0; i < count; ++i) into.push_back({axis, next_[static_cast<std::size_t>(axis)]++});
    return count;
  }

 private:
  static int at(const std::vector<int>& list, int axis) {
    return list[static_cast<std::size_t>(axis)];
  }
  std::vector<int> bits_, next_;
};

std::vector<IndexBit> dropped(const std::vector<IndexBit>& bits, int axis) {
  std::vector<IndexBit> kept;
  for (const IndexBit& bit : bits)
    if (bit.axis != axis) kept.push_back(bit);
  return kept;
}

std::vector<IndexBit> emptied(std::vector<IndexBit> bits, int axis) {
  for (IndexBit& bit : bits)
    if (bit.axis == axis) bit = {};
  return bits;
}

template <class Rename>
std::vector<IndexBit> renamed(std::vector<IndexBit> bits, const Rename& rename) {
  for (IndexBit& bit : bits)
    if (bit.axis >= 0) bit.axis = rename(bit.axis);
  return bits;
}

}  // namespace

int index_bits(std::int64_t extent) {
  return std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 1) - 1));
}

Layout Layout::blocked(const Blocked& blocked) {
  Supply supply(blocked.shape);
  std::vector<IndexBit> registers, threads;
  supply.take(blocked.order.front(), log2_of(blocked.run), registers);
  const int thread_bits = log2_of(blocked.threads);
  const auto take_threads = [&](int axis, int until) {
    supply.take(axis, until - static_cast<int>(threads.size()), threads);
  };
  const int lane_bits = std::min(kLaneBits, thread_bits);
  take_threads(blocked.order.front(), std::min(log2_of(blocked.lanes), lane_bits));
  for (std::size_t i = 1; i < blocked.order.size(); ++i) take_threads(blocked.order[i], lane_bits);
  take_threads(blocked.order.front(), lane_bits);
  for (auto axis = blocked.order.rbegin(); axis != blocked.order.rend(); ++axis)
    take_threads(*axis, thread_bits);
  threads.resize(static_cast<std::size_t>(thread_bits));
  for (const int axis : blocked.order) supply.take(axis, supply.left(axis), registers);
  return {static_cast<int>(blocked.shape.size()), std::move(registers), std::move(threads)};
}

Layout Layout::in_order(const Extents& shape, int axis, int thread_count) {
  Supply supply(shape);
  std::vector<IndexBit> registers, threads;
  const int thread_bits = log2_of(thread_count);
  supply.take(axis, std::max(0, supply.left(axis) - thread_bits), registers);
  supply.take(axis, thread_bits, threads);
  const int rank = static_cast<int>(shape.size());
  for (int other = rank; other-- > 0;)
    supply.take(other, thread_bits - static_cast<int>(threads.size()), threads);
  threads.resize(static_cast<std::size_t>(thread_bits));
  for (int other = rank; other-- > 0;) supply.take(other, supply.left(other), registers);
  return {rank, std::move(registers), std::move(threads)};
}

Layout Layout::matrix(const Matrix& matrix) {
  constexpr int kRows = 0, kColumns = 1;
  const Extents shape = {std::max<std::int64_t>(matrix.shape[0], 16),
                         std::max<std::int64_t>(matrix.shape[1], 8)};
  Supply supply(shape);
  std::vector<IndexBit> registers, threads;
  supply.take(kColumns, 1, registers);
  supply.take(kColumns, 2, threads);
  supply.take(kRows, 3, threads);
  supply.take(kRows, 1, registers);

  int warp_bits = log2_of(matrix.threads) - kLaneBits, row_bits = 0, column_bits = 0;
  for (; warp_bits > 0; --warp_bits) {
    const int rows = supply.left(kRows) - row_bits, columns = supply.left(kColumns) - column_bits;
    // A patch is twice as high as wide, so equal counts of patches are not a square: a warp with
    // more columns than rows loads fewer operand elements.
    if (rows > 0 && (matrix.rows_first || rows + 1 >= columns || columns == 0)) {
      ++row_bits;
    } else if (columns > 0) {
      ++column_bits;
    } else {
      break;
    }
  }
  supply.take(kColumns, supply.left(kColumns) - column_bits, registers);
  supply.take(kRows, supply.left(kRows) - row_bits, registers);
  supply.take(kColumns, column_bits, threads);
  supply.take(kRows, row_bits, threads);
  threads.resize(static_cast<std::size_t>(log2_of(matrix.threads)));
  return {2, std::move(registers), std::move(threads)};
}

Layout Layout::warpgroups(const Extents& shape, int thread_count) {
  constexpr int kRows = 0, kColumns = 1;
  Supply supply({std::max<std::int64_t>(shape[0], 64), std::max<std::int64_t>(shape[1], 8)});
  std::vector<IndexBit> registers, threads;
  supply.take(kColumns, 1, registers);
  supply.take(kColumns, 2, threads);
  supply.take(kRows, 3, threads);
  supply.take(kRows, 1, registers);
  supply.take(kRows, 2, threads);
  const int groups = log2_of(thread_count) - kGroupBits;
  const int row_bits = std::min(groups, supply.left(kRows));
  const int column_bits = std::min(groups - row_bits, supply.left(kColumns));
  supply.take(kColumns, supply.left(kColumns) - column_bits, registers);
  supply.take(kRows, supply.left(kRows) - row_bits, registers);
  supply.take(kRows, row_bits, threads);
  supply.take(kColumns, column_bits, threads);
  threads.resize(static_cast<std::size_t>(log2_of(thread_count)));
  return {2, std::move(registers), std::move(threads)};
}

Layout Layout::patches(const Extents& shape, int thread_count) {
  constexpr int kRows = 0, kColumns = 1;
  Supply supply(shape);
  std::vector<IndexBit> registers, threads;
  const int thread_bits = log2_of(thread_count);
  const int spare = std::max(
      0, index_bits(shape[0]) + index_bits(shape[1]) - thread_bits);  // index bits for registers
  const int columns = supply.take(kColumns, std::min(2, spare), registers);
  supply.take(kRows, std::min(2, spare - columns), registers);
  supply.take(kColumns, 3, threads);
  for (const int axis : {kRows, kColumns})
    supply.take(axis, thread_bits - static_cast<int>(threads.size()), threads);
  threads.resize(static_cast<std::size_t>(thread_bits));
  for (const int axis : {kColumns, kRows}) supply.take(axis, supply.left(axis), registers);
  return {2, std::move(registers), std::move(threads)};
}

std::int64_t Layout::extent(int axis) const {
  int bits = 0;
  for (const auto* places : {&registers_, &threads_})
    for (const IndexBit& bit : *places) bits += bit.axis == axis ? 1 : 0;
  return std::int64_t{1} << bits;
}

std::int64_t Layout::offset(int axis, int reg) const {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < registers_.size(); ++i) {
    if (registers_[i].axis == axis && ((reg >> i) & 1) != 0)
      offset |= std::int64_t{1} << registers_[i].bit;
  }
  return offset;
}

bool Layout::replicated() const {
  return std::any_of(threads_.begin(), threads_.end(),
                     [](const IndexBit& bit) { return bit.axis < 0; });
}

int Layout::run(int axis) const {
  int bits = 0;
  for (const IndexBit& bit : registers_) {
    if (bit != IndexBit{axis, bits}) break;
    ++bits;
  }
  return 1 << bits;
}

Layout Layout::without(int axis) const {
  const auto rename = [axis](int other) { return other > axis ? other - 1 : other; };
  return {rank_ - 1, renamed(dropped(registers_, axis), rename),
          renamed(emptied(threads_, axis), rename)};
}

Layout Layout::collapsed(int axis) const {
  return {rank_, dropped(registers_, axis), emptied(threads_, axis)};
}

Layout Layout::inserted(int axis) const {
  const auto rename = [axis](int other) { return other >= axis ? other + 1 : other; };
  return {rank_ + 1, renamed(registers_, rename), renamed(threads_, rename)};
}

Layout Layout::permuted(const std::vector<std::int64_t>& order) const {
  const auto rename = [&](int other) {
    return static_cast<int>(std::find(order.begin(), order.end(), other) - order.begin());
  };
  return {rank_, renamed(registers_, rename), renamed(threads_, rename)};
}

bool renames(const Layout& from, const Layout& to) {
  std::vector<IndexBit> before = from.register_bits(), after = to.register_bits();
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  return from.thread_bits() == to.thread_bits() && before == after;
}

}  // namespace tessera::tile::gpu
