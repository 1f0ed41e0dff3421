// Specialization of Lanes for sums of products: the inner loops of matmuls and convolutions,
// without dispatch on instructions or bounds checks.
#include "tessera/expr/lanes.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <tuple>
#include <type_traits>

#include "tessera/expr/number.h"
#include "tessera/expr/storage.h"

namespace tessera {

template <class T>
typename Lanes<T>::Storage Lanes<T>::storage_of(const FoldPlan& fold) const {
  std::optional<Storage> common;
  for (const int number : fold.product) {
    const Access& access = setup_.plan.accesses[static_cast<std::size_t>(number)];
    const bool may_fail = !access.checked.empty() || !access.computed.empty();
    if (access.otherwise < 0 && may_fail) return Storage::None;  // to be told which index it was
    const ConstArray& array = setup_.inputs[static_cast<std::size_t>(access.operand)];
    Storage storage = Storage::None;
    if (array.lifted)
      storage = Storage::Lifted;
    else if (array.dtype == DType::F32)
      storage = Storage::F32;
    else if (array.dtype == DType::F64)
      storage = Storage::F64;
    if (common && *common != storage) return Storage::None;
    common = storage;
  }
  if constexpr (!std::is_floating_point_v<T>)
    if (*common != Storage::Lifted) return Storage::None;
  return *common;
}

template <class T>
bool Lanes<T>::sums_products(const FoldPlan& fold) const {
  return !setup_.in_order && !fold.product.empty() && storage_of(fold) != Storage::None;
}

template <class T>
bool Lanes<T>::sum_of_products(const FoldPlan& fold) {
  if constexpr (std::is_floating_point_v<T>) {
    if (storage_of(fold) == Storage::F32) return sum_of_products_as<float>(fold);
    if (storage_of(fold) == Storage::F64) return sum_of_products_as<double>(fold);
  }
  return sum_of_products_as<T>(fold);
}

/// Ranges of lanes in which every read is in range and the condition holds.
template <class T>
void Lanes<T>::valid_runs(const FoldPlan& fold, std::vector<Run>& runs) {
  const int width = reg(fold.results[0]).varies ? count_ : 1;
  std::fill_n(valid_.begin(), width, std::uint8_t{1});
  bool all = true;
  const auto demand = [&](auto&& holds) {
    all = false;
    for (int lane = 0; lane < width; ++lane)
      valid_[static_cast<std::size_t>(lane)] &= holds(static_cast<std::size_t>(lane)) ? 1 : 0;
  };
  for (const int number : fold.product) {
    const Access& access = setup_.plan.accesses[static_cast<std::size_t>(number)];
    const AccessState& state = accesses_[static_cast<std::size_t>(number)];
    for (std::size_t i = 0; i < access.checked.size(); ++i) {
      const std::int64_t size = access.checked[i].size, start = uniform_part(access.checked[i].at);
      const auto& table = state.checked[i].table;
      demand([&](std::size_t lane) {
        const std::int64_t at = table.empty() ? start : start + table[lane];
        return at >= 0 && at < size;
      });
    }
    for (const Access::Computed& computed : access.computed) {
      const Register& index = reg(computed.reg);
      demand([&](std::size_t lane) {
        const std::int64_t at = index.integers[index.varies ? lane : 0];
        return at >= 0 && at < computed.size;
      });
    }
  }
  if (fold.product_when >= 0) {
    const Register& when = reg(fold.product_when);
    demand([&](std::size_t lane) { return when.integers[when.varies ? lane : 0] != 0; });
  }
  runs.clear();
  if (all) runs.push_back({0, width});
  for (int lane = 0; !all && lane < width; ++lane) {
    if (valid_[static_cast<std::size_t>(lane)] == 0) continue;
    if (runs.empty() || runs.back().end != lane) runs.push_back({lane, lane});
    runs.back().end = lane + 1;
  }
}

/// Whether an axis affects the condition or a computed index.
template <class T>
bool Lanes<T>::decides(const FoldPlan& fold, int slot) const {
  const auto in = [slot](const AffinePosition& affine) { return affine.factor(slot) != 0; };
  const auto checked_by = [&](const Access& access) {
    return std::ranges::any_of(access.checked, in, &Access::Checked::at);
  };
  for (const int number : fold.product)
    if (checked_by(setup_.plan.accesses[static_cast<std::size_t>(number)])) return true;
  for (const Instruction& instruction : fold.product_code) {
    if (instruction.kind == Instruction::Kind::Index && instruction.which == slot) return true;
    if (instruction.kind == Instruction::Kind::Read) {
      const Access& access = setup_.plan.accesses[static_cast<std::size_t>(instruction.which)];
      if (in(access.offset) || checked_by(access)) return true;
    }
  }
  return false;
}

namespace {

/// Operand of the contraction: address of its element per lane, for the first step of the inner
/// loop.
template <class S>
struct Factor {
  const std::byte* data;
  const std::int64_t* table;  // relative offsets of the lanes, unless uniform or consecutive
  std::int64_t start;         // offset of the first lane
  std::int64_t stride;        // per step of the inner loop
};

struct UniformLane {
  static std::int64_t at(const std::int64_t*, int) { return 0; }
};
struct ConsecutiveLane {
  static std::int64_t at(const std::int64_t*, int lane) { return lane; }
};
struct TableLane {
  static std::int64_t at(const std::int64_t* table, int lane) { return table[lane]; }
};

/// Register blocking: sums[i] += a[0] * b[i], then a[1] * b[i + stride] and so on, for whole
/// chunks; a sum stays in a register for kSteps steps. Each sum adds its terms in order.
constexpr int kSteps = 8, kChunk = 16;
template <int chunk, class T, class S>
void add_steps(T* __restrict sums, const T (&a)[kSteps], const S* __restrict b, std::int64_t stride,
               int chunks) {
  for (int c = 0; c < chunks; ++c, sums += chunk, b += chunk) {
    for (int i = 0; i < chunk; ++i) {
      T sum = sums[i];
#pragma GCC unroll 8
      for (int step = 0; step < kSteps; ++step)
        sum = sum + a[step] * static_cast<T>(b[step * stride + i]);
      sums[i] = sum;
    }
  }
}

/// The same where nothing is converted, in vectors: the sums of a chunk are independent, so that
/// their additions overlap.
template <int chunk, class T>
void add_steps(T* __restrict sums, const T (&a)[kSteps], const T* __restrict b, std::int64_t stride,
               int chunks) {
  constexpr int kLanes = 16 / sizeof(T), kVectors = chunk / kLanes;
  // NOLINTNEXTLINE(modernize-use-using): an alias drops the attribute of a dependent type
  typedef T Vector __attribute__((vector_size(16)));
  const auto read = [](const T* at) {
    Vector vector;
    std::memcpy(&vector, at, sizeof(vector));
    return vector;
  };
  for (int c = 0; c < chunks; ++c, sums += chunk, b += chunk) {
    Vector sum[kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) sum[i] = read(sums + i * kLanes);
#pragma GCC unroll 8
    for (int step = 0; step < kSteps; ++step)
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i)
        sum[i] = sum[i] + a[step] * read(b + step * stride + i * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) std::memcpy(sums + i * kLanes, &sum[i], sizeof(Vector));
  }
}

#if defined(__x86_64__)
#define TESSERA_HAS_WIDE_STEPS 1

/// The same for several rows of sums that read the same b, and any number of lanes from a chunk on,
/// with registers of so many bytes. The last chunk overlaps the one before it and keeps what that
/// has added. Products are rounded before they are added, as everywhere else, so that each machine
/// computes the same bits.
template <int bytes, int chunk, int rows, int steps, class T, class S>
inline __attribute__((always_inline)) void add_wide_steps(T* const* sums, const T (*a)[kSteps],
                                                          const S* b, std::int64_t stride,
                                                          int count) {
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
  constexpr int kLanes = bytes / sizeof(T), kVectors = chunk / kLanes;
  // NOLINTNEXTLINE(modernize-use-using): an alias drops the attribute of a dependent type
  typedef T Vector __attribute__((vector_size(bytes)));
  // NOLINTNEXTLINE(modernize-use-using): an alias drops the attribute of a dependent type
  typedef S Stored __attribute__((vector_size(kLanes * sizeof(S))));
  for (int begin = 0; begin < count; begin += chunk) {
    const int at = std::min(begin, count - chunk);
    Vector sum[rows][kVectors];
#pragma GCC unroll 4
    for (int row = 0; row < rows; ++row)
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i)
        std::memcpy(&sum[row][i], sums[row] + at + i * kLanes, sizeof(Vector));
#pragma GCC unroll 8
    for (int step = 0; step < steps; ++step)
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) {
        Stored stored;
        std::memcpy(&stored, b + step * stride + at + i * kLanes, sizeof(Stored));
        const Vector read = __builtin_convertvector(stored, Vector);
#pragma GCC unroll 4
        for (int row = 0; row < rows; ++row) sum[row][i] = sum[row][i] + a[row][step] * read;
      }
#pragma GCC unroll 4
    for (int row = 0; row < rows; ++row)
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) {
        T* const here = sums[row] + at + i * kLanes;
        if (at != begin) {
          Vector before, lane;
          std::memcpy(&before, here, sizeof(Vector));
          for (int k = 0; k < kLanes; ++k) lane[k] = static_cast<T>(i * kLanes + k);
          sum[row][i] = lane >= static_cast<T>(begin - at) + Vector{} ? sum[row][i] : before;
        }
        std::memcpy(here, &sum[row][i], sizeof(Vector));
      }
  }
}

/// Two rows at a time: there are 16 registers.
template <int chunk, int rows, int steps, class T, class S>
__attribute__((target("avx2"))) void add_steps_avx2(T* const* sums, const T (*a)[kSteps],
                                                    const S* b, std::int64_t stride, int count) {
  constexpr int kTogether = std::min(rows, 2), kBytes = std::min<int>(32, chunk * sizeof(T));
  for (int row = 0; row < rows; row += kTogether)
    add_wide_steps<kBytes, chunk, kTogether, steps>(sums + row, a + row, b, stride, count);
}

/// Unlike avx2, avx512f contains fused multiply-add, which must not be used.
#if defined(__clang__)
#define TESSERA_AVX512_UNFUSED __attribute__((target("avx512f")))
#else
#define TESSERA_AVX512_UNFUSED __attribute__((target("avx512f"), optimize("fp-contract=off")))
#endif
template <int chunk, int rows, int steps, class T, class S>
TESSERA_AVX512_UNFUSED void add_steps_avx512(T* const* sums, const T (*a)[kSteps], const S* b,
                                             std::int64_t stride, int count) {
  constexpr int kBytes = std::min<int>(64, chunk * sizeof(T));
  add_wide_steps<kBytes, chunk, rows, steps>(sums, a, b, stride, count);
}

/// Adds the steps with the widest registers that the machine has; false where it has none or the
/// rows are short.
template <int rows, int steps, class T, class S>
bool add_wide(T* const* sums, const T (*a)[kSteps], const S* b, std::int64_t stride, int count) {
  static const bool kHasAvx512 = __builtin_cpu_supports("avx512f") != 0,
                    kHasAvx2 = __builtin_cpu_supports("avx2") != 0;
  const auto add = [&]<int chunk>(std::integral_constant<int, chunk>) {
    if (kHasAvx512)
      add_steps_avx512<chunk, rows, steps>(sums, a, b, stride, count);
    else
      add_steps_avx2<chunk, rows, steps>(sums, a, b, stride, count);
    return true;
  };
  if (!kHasAvx2) return false;
  if (count >= kChunk) return add(std::integral_constant<int, kChunk>{});
  if (count >= kChunk / 2) return add(std::integral_constant<int, kChunk / 2>{});
  return count >= kChunk / 4 && add(std::integral_constant<int, kChunk / 4>{});
}
#endif

/// Elements of a factor that is the same for all lanes, from `step` on.
template <int steps, class T, class S>
void load_steps(const Factor<S>& a, std::int64_t step, T (&same)[kSteps]) {
  for (int i = 0; i < steps; ++i)
    same[i] = static_cast<T>(load<S>(a.data, a.start + (step + i) * a.stride));
}

/// The same for any number of lanes, without wide registers.
template <int steps, class T, class S>
void add_narrow(T* sums, const T (&a)[kSteps], const S* b, std::int64_t stride, int count) {
  int done = 0;
  const auto add = [&]<int chunk>(std::integral_constant<int, chunk>) {
    const int chunks = (count - done) / chunk;
    add_steps<chunk>(sums + done, a, b + done, stride, chunks);
    done += chunks * chunk;
  };
  if constexpr (steps == kSteps) {
    add(std::integral_constant<int, kChunk>{});
    add(std::integral_constant<int, 4>{});
  }
  for (; done < count; ++done)
    for (int i = 0; i < steps; ++i)
      sums[done] = sums[done] + a[i] * static_cast<T>(b[i * stride + done]);
}

template <int rows, int steps, class T, class S>
void add_rows(T* const* sums, const T (*a)[kSteps], const S* b, std::int64_t stride, int count) {
#if defined(TESSERA_HAS_WIDE_STEPS)
  if constexpr (std::is_floating_point_v<T> && std::is_floating_point_v<S>)
    if (add_wide<rows, steps>(sums, a, b, stride, count)) return;
#endif
  for (int row = 0; row < rows; ++row) add_narrow<steps>(sums[row], a[row], b, stride, count);
}

template <class S>
bool is_aligned(const Factor<S>& factor) {
  return reinterpret_cast<std::uintptr_t>(factor.data) % alignof(S) == 0;
}

/// sums[lane] += sum over the steps of a * b, where `a` is the same for all lanes and `b` has them
/// one after the other, over all steps that are whole groups of kSteps; gives their number.
template <class T, class S>
std::int64_t accumulate_rows(T* sums, const Factor<S>& a, const Factor<S>& b, std::int64_t steps,
                             int begin, int end) {
  if (!is_aligned(b)) return 0;
  std::int64_t step = 0;
  T* const row = sums + begin;
  for (T same[1][kSteps]; step + kSteps <= steps; step += kSteps) {
    load_steps<kSteps>(a, step, same[0]);
    add_rows<1, kSteps>(&row, same,
                        reinterpret_cast<const S*>(b.data) + b.start + begin + step * b.stride,
                        b.stride, end - begin);
  }
  return step;
}

/// Elements of a factor for some steps and lanes, copied so that those of a step are one after the
/// other. All rows that read them share the copy.
template <class S>
class PackedSteps {
 public:
  /// Packed elements of a factor, starting at an offset.
  template <int steps>
  const S* packed(const Factor<S>& of, std::int64_t offset, std::int64_t pitch, int count) {
    const std::byte* const from = of.data + offset * static_cast<std::int64_t>(sizeof(S));
    if (from == from_ && of.stride == stride_ && pitch == pitch_ && count == count_ &&
        steps == steps_)
      return elements_.data();
    elements_.resize(static_cast<std::size_t>(steps * count));
    for (int lane = 0; lane < count; ++lane)
      for (int i = 0; i < steps; ++i)
        elements_[static_cast<std::size_t>(i * count + lane)] =
            load<S>(from, lane * pitch + i * of.stride);
    from_ = from;
    stride_ = of.stride;
    pitch_ = pitch;
    count_ = count;
    steps_ = steps;
    return elements_.data();
  }

 private:
  std::vector<S> elements_;
  const std::byte* from_ = nullptr;
  std::int64_t stride_ = 0, pitch_ = 0;
  int count_ = 0, steps_ = 0;
};

/// Segments that are added together, where all of them read the same elements one after the other.
constexpr std::size_t kRows = 4;

/// Some steps of all segments of a block.
template <int steps, class T, class S, class Segment>
void accumulate_steps(T* sums, const Factor<S> (&factors)[2], std::span<const Segment> segments,
                      std::int64_t step, PackedSteps<S>& copy) {
  const auto reads_same = [](const Segment& a, const Segment& b) {
    return a.which == b.which && a.consecutive == b.consecutive && a.pitch == b.pitch &&
           a.end - a.begin == b.end - b.begin;
  };
  for (std::size_t i = 0; i < segments.size();) {
    const Segment& first = segments[i];
    const Factor<S>& b = factors[1 - first.which];
    const int count = first.end - first.begin;
    const std::int64_t offset = b.start + first.consecutive + step * b.stride;
    const bool in_place = first.pitch == 1 && is_aligned(b);
    const S* const read = in_place ? reinterpret_cast<const S*>(b.data) + offset
                                   : copy.template packed<steps>(b, offset, first.pitch, count);
    const std::int64_t stride = in_place ? b.stride : count;
    const bool together = i + kRows <= segments.size() &&
                          std::ranges::all_of(segments.subspan(i, kRows), [&](const Segment& s) {
                            return reads_same(first, s);
                          });
    const std::size_t rows = together ? kRows : 1;
    T same[kRows][kSteps];
    T* row[kRows];
    for (std::size_t r = 0; r < rows; ++r) {
      Factor<S> a = factors[first.which];
      a.start += segments[i + r].same;
      load_steps<steps>(a, step, same[r]);
      row[r] = sums + segments[i + r].begin;
    }
    if (together)
      add_rows<kRows, steps>(row, same, read, stride, count);
    else
      add_rows<1, steps>(row, same, read, stride, count);
    i += rows;
  }
}

/// The same for all steps, a group of them at a time, so that what the rows of a block read alike
/// is in the cache; false where there are no segments.
template <class T, class S, class Segment>
bool accumulate_segments(T* sums, const Factor<S> (&factors)[2],
                         const std::vector<Segment>& segments, std::int64_t steps) {
  if (segments.empty()) return false;
  if constexpr (std::is_floating_point_v<T> && std::is_floating_point_v<S>) {
    const std::span<const Segment> all(segments);
    PackedSteps<S> copy;
    std::int64_t step = 0;
    for (; step + kSteps <= steps; step += kSteps)
      accumulate_steps<kSteps>(sums, factors, all, step, copy);
    for (; step < steps; ++step) accumulate_steps<1>(sums, factors, all, step, copy);
  }
  return true;
}

/// sums[lane] += sum over the steps of a * b.
template <class T, class S, class LaneA, class LaneB>
void accumulate(T* sums, const Factor<S>& a, const Factor<S>& b, std::int64_t steps, int begin,
                int end) {
  constexpr int kFewLanes = 8;
  if (end - begin < kFewLanes) {
    for (int lane = begin; lane < end; ++lane) {
      const std::int64_t at_a = a.start + LaneA::at(a.table, lane);
      const std::int64_t at_b = b.start + LaneB::at(b.table, lane);
      const auto term = [&](std::int64_t step) {
        return static_cast<T>(load<S>(a.data, at_a + step * a.stride)) *
               static_cast<T>(load<S>(b.data, at_b + step * b.stride));
      };
      T sum0 = sums[lane], sum1{}, sum2{}, sum3{};  // apart, so that additions overlap
      std::int64_t step = 0;
      for (; step + 4 <= steps; step += 4) {
        sum0 = sum0 + term(step);
        sum1 = sum1 + term(step + 1);
        sum2 = sum2 + term(step + 2);
        sum3 = sum3 + term(step + 3);
      }
      for (; step < steps; ++step) sum0 = sum0 + term(step);
      sums[lane] = (sum0 + sum1) + (sum2 + sum3);
    }
    return;
  }
  std::int64_t step = 0;
  if constexpr (std::is_floating_point_v<T> && std::is_floating_point_v<S>) {
    if constexpr (std::is_same_v<LaneA, UniformLane> && std::is_same_v<LaneB, ConsecutiveLane>)
      step = accumulate_rows(sums, a, b, steps, begin, end);
    if constexpr (std::is_same_v<LaneA, ConsecutiveLane> && std::is_same_v<LaneB, UniformLane>)
      step = accumulate_rows(sums, b, a, steps, begin, end);
  }
  for (; step < steps; ++step) {
    const std::int64_t at_a = a.start + step * a.stride, at_b = b.start + step * b.stride;
    for (int lane = begin; lane < end; ++lane)
      sums[lane] =
          sums[lane] + static_cast<T>(load<S>(a.data, at_a + LaneA::at(a.table, lane))) *
                           static_cast<T>(load<S>(b.data, at_b + LaneB::at(b.table, lane)));
  }
}

}  // namespace

/// The segments that runs of lanes consist of; none where they are short or a factor has other
/// offsets.
template <class T>
std::vector<typename Lanes<T>::Segment> Lanes<T>::segments(const FoldPlan& fold,
                                                           const std::vector<Run>& runs) const {
  constexpr int kShortest = 4;  // on average
  std::vector<Segment> result;
  if (fold.product.size() != 2) return result;
  const Relative* offsets[2];
  for (const std::size_t i : {0, 1}) {
    const auto number = static_cast<std::size_t>(fold.product[i]);
    if (!setup_.plan.accesses[number].computed.empty()) return {};
    offsets[i] = &accesses_[number].offset;
  }
  if (offsets[0]->table.empty() && offsets[1]->table.empty()) return {};
  const auto offset = [&](int which, int lane) -> std::int64_t {
    const Relative& of = *offsets[which];
    if (!of.table.empty()) return of.table[static_cast<std::size_t>(lane)];
    return of.shape == Relative::Shape::Consecutive ? lane : 0;
  };
  int lanes = 0;
  for (const Run& run : runs) {
    lanes += run.end - run.begin;
    for (int lane = run.begin; lane < run.end;) {
      const auto growth = [&](int which, int at) {
        return offset(which, at + 1) - offset(which, at);
      };
      Segment segment{.begin = lane, .end = lane + 1};
      for (const int same : {0, 1})
        if (lane + 1 < run.end && growth(same, lane) == 0 && growth(1 - same, lane) != 0) {
          segment.which = same;
          segment.pitch = growth(1 - same, lane);
          break;
        }
      const int which = segment.which;
      int& end = segment.end;
      while (end < run.end && growth(which, end - 1) == 0 &&
             growth(1 - which, end - 1) == segment.pitch)
        ++end;
      segment.same = offset(which, lane);
      segment.consecutive = offset(1 - which, lane);
      result.push_back(segment);
      lane = segment.end;
    }
  }
  if (static_cast<int>(result.size()) * kShortest > lanes) return {};
  // Segments that read the same elements are adjacent.
  std::ranges::stable_sort(result, {}, [](const Segment& segment) {
    return std::tuple(segment.which, segment.consecutive, segment.pitch);
  });
  return result;
}

template <class T>
const typename Lanes<T>::Reach& Lanes<T>::reach(const FoldPlan& fold) {
  constexpr std::size_t kMostReaches = 256;
  constexpr std::int64_t kInside = std::numeric_limits<std::int64_t>::min();
  std::vector<std::int64_t> key{&fold - setup_.plan.folds.data(), count_};
  bool by_position = fold.product_when < 0;
  for (const int number : fold.product) {
    const Access& access = setup_.plan.accesses[static_cast<std::size_t>(number)];
    const AccessState& state = accesses_[static_cast<std::size_t>(number)];
    by_position = by_position && access.computed.empty();
    for (std::size_t i = 0; i < access.checked.size(); ++i) {
      const std::int64_t start = uniform_part(access.checked[i].at);
      const bool is_inside = integer::add(start, state.checked[i].least) >= 0 &&
                             integer::add(start, state.checked[i].most) < access.checked[i].size;
      key.push_back(is_inside ? kInside : start);
    }
  }
  if (!by_position || reaches_.size() >= kMostReaches) reaches_.clear();
  const auto [here, fresh] = reaches_.try_emplace(std::move(key));
  if (fresh) {
    valid_runs(fold, here->second.runs);
    if (std::is_floating_point_v<T>) here->second.segments = segments(fold, here->second.runs);
  }
  return here->second;
}

template <class T>
template <class S>
bool Lanes<T>::sum_of_products_as(const FoldPlan& fold) {
  using Kernel = void (*)(T*, const Factor<S>&, const Factor<S>&, std::int64_t, int, int);
  static constexpr Kernel kKernels[3][3] = {
      {accumulate<T, S, UniformLane, UniformLane>, accumulate<T, S, UniformLane, ConsecutiveLane>,
       accumulate<T, S, UniformLane, TableLane>},
      {accumulate<T, S, ConsecutiveLane, UniformLane>,
       accumulate<T, S, ConsecutiveLane, ConsecutiveLane>,
       accumulate<T, S, ConsecutiveLane, TableLane>},
      {accumulate<T, S, TableLane, UniformLane>, accumulate<T, S, TableLane, ConsecutiveLane>,
       accumulate<T, S, TableLane, TableLane>}};

  // Loops that affect bounds checks are moved outside; the rest run without checks.
  std::vector<const FoldPlan::Loop*> outer, inner;
  for (const FoldPlan::Loop& loop : fold.loops) {
    if (loop.extent == 0) return true;
    (decides(fold, loop.slot) ? outer : inner).push_back(&loop);
    position_[static_cast<std::size_t>(loop.slot)] = 0;
  }
  // The innermost loop is a long one where there is one, as that over the channels of a
  // convolution, otherwise the last one.
  const FoldPlan::Loop* innermost = nullptr;
  for (const std::int64_t least : {std::int64_t{kSteps}, std::int64_t{2}, std::int64_t{1}}) {
    const auto here =
        std::ranges::find_if(inner.rbegin(), inner.rend(),
                             [&](const FoldPlan::Loop* loop) { return loop->extent >= least; });
    if (here == inner.rend()) continue;
    innermost = *here;
    inner.erase(std::next(here).base());
    break;
  }

  static const S kOne = [] {
    if constexpr (kIsField<S>)
      return S::of_integer(1);
    else
      return S{1};
  }();
  Factor<S> factors[2] = {};
  std::vector<std::int64_t> tables[2];  // offsets with computed coordinates
  typename Relative::Shape shapes[2] = {Relative::Shape::Uniform, Relative::Shape::Uniform};
  factors[1] = {reinterpret_cast<const std::byte*>(&kOne), nullptr, 0, 0};
  for (std::size_t i = 0; i < fold.product.size(); ++i) {
    const auto number = static_cast<std::size_t>(fold.product[i]);
    const Access& access = setup_.plan.accesses[number];
    shapes[i] = access.computed.empty() ? accesses_[number].offset.shape : Relative::Shape::Table;
    factors[i] = {setup_.inputs[static_cast<std::size_t>(access.operand)].data,
                  accesses_[number].offset.table.data(), 0, 0};
    if (!access.computed.empty()) {
      tables[i].resize(static_cast<std::size_t>(setup_.lanes));
      factors[i].table = tables[i].data();
    }
    if (innermost != nullptr) factors[i].stride = access.offset.factor(innermost->slot);
  }
  const Kernel kernel = kKernels[static_cast<int>(shapes[0])][static_cast<int>(shapes[1])];
  T* const sums = reg(fold.results[0]).values.data();
  const std::int64_t steps = innermost == nullptr ? 1 : innermost->extent;

  const auto advance = [&](const std::vector<const FoldPlan::Loop*>& loops) {
    for (std::size_t i = loops.size(); i-- > 0;) {
      std::int64_t& at = position_[static_cast<std::size_t>(loops[i]->slot)];
      if (++at < loops[i]->extent) return true;
      at = 0;
    }
    return false;
  };
  do {
    if (stopped()) {
      error_ = Diagnostic{.id = "stopped", .message = "the evaluation was stopped"};
      return false;
    }
    if (!execute(fold.product_code)) return false;
    const auto& [runs, rows] = reach(fold);
    if (runs.empty()) continue;
    for (std::size_t i = 0; i < fold.product.size(); ++i) {
      const auto number = static_cast<std::size_t>(fold.product[i]);
      const auto& within = accesses_[number].offset.table;
      if (!tables[i].empty()) std::ranges::fill(tables[i], 0);
      for (const Run& run : runs)
        for (int lane = run.begin; !tables[i].empty() && lane < run.end; ++lane) {
          const auto l = static_cast<std::size_t>(lane);
          tables[i][l] = within.empty() ? 0 : within[l];
          for (const Access::Computed& computed : setup_.plan.accesses[number].computed) {
            const Register& index = reg(computed.reg);
            tables[i][l] += index.integers[index.varies ? l : 0] * computed.stride;
          }
        }
    }
    do {
      for (std::size_t i = 0; i < fold.product.size(); ++i)
        factors[i].start =
            uniform_part(setup_.plan.accesses[static_cast<std::size_t>(fold.product[i])].offset);
      if (accumulate_segments(sums, factors, rows, steps)) continue;
      for (const Run& run : runs) kernel(sums, factors[0], factors[1], steps, run.begin, run.end);
    } while (advance(inner));
  } while (advance(outer));
  return true;
}

#define TESSERA_INSTANTIATE(T)                                            \
  template bool Lanes<T>::decides(const FoldPlan&, int) const;            \
  template Lanes<T>::Storage Lanes<T>::storage_of(const FoldPlan&) const; \
  template bool Lanes<T>::sums_products(const FoldPlan&) const;           \
  template bool Lanes<T>::sum_of_products(const FoldPlan&);               \
  template std::vector<Lanes<T>::Segment> Lanes<T>::segments(             \
      const FoldPlan&, const std::vector<Lanes<T>::Run>&) const;          \
  template const Lanes<T>::Reach& Lanes<T>::reach(const FoldPlan&);       \
  template void Lanes<T>::valid_runs(const FoldPlan&, std::vector<Lanes<T>::Run>&);
TESSERA_NUMBER_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
