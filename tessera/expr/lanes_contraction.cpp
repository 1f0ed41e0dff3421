// Specialization of Lanes for sums of products: the inner loops of matmuls and convolutions,
// without dispatch on instructions or bounds checks.
#include "tessera/expr/lanes.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
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

/// The same for any number of lanes from a chunk on, with registers of so many bytes. The last
/// chunk overlaps the one before it and keeps what that has added. Products are rounded before
/// they are added, as everywhere else, so that each machine computes the same bits.
template <int bytes, class T, class S>
inline __attribute__((always_inline)) void add_wide_steps(T* __restrict sums, const T (&a)[kSteps],
                                                          const S* __restrict b,
                                                          std::int64_t stride, int count) {
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
  constexpr int kLanes = bytes / sizeof(T), kVectors = kChunk / kLanes;
  // NOLINTNEXTLINE(modernize-use-using): an alias drops the attribute of a dependent type
  typedef T Vector __attribute__((vector_size(bytes)));
  // NOLINTNEXTLINE(modernize-use-using): an alias drops the attribute of a dependent type
  typedef S Stored __attribute__((vector_size(kLanes * sizeof(S))));
  for (int begin = 0; begin < count; begin += kChunk) {
    const int at = std::min(begin, count - kChunk);
    Vector sum[kVectors], before[kVectors];
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      std::memcpy(&sum[i], sums + at + i * kLanes, sizeof(Vector));
      before[i] = sum[i];
    }
#pragma GCC unroll 8
    for (int step = 0; step < kSteps; ++step)
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) {
        Stored stored;
        std::memcpy(&stored, b + step * stride + at + i * kLanes, sizeof(Stored));
        sum[i] = sum[i] + a[step] * __builtin_convertvector(stored, Vector);
      }
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      if (at != begin) {
        Vector lane;
        for (int k = 0; k < kLanes; ++k) lane[k] = static_cast<T>(i * kLanes + k);
        sum[i] = lane >= static_cast<T>(begin - at) + Vector{} ? sum[i] : before[i];
      }
      std::memcpy(sums + at + i * kLanes, &sum[i], sizeof(Vector));
    }
  }
}

template <class T, class S>
__attribute__((target("avx2"))) void add_steps_avx2(T* __restrict sums, const T (&a)[kSteps],
                                                    const S* __restrict b, std::int64_t stride,
                                                    int count) {
  add_wide_steps<32>(sums, a, b, stride, count);
}

/// Unlike avx2, avx512f contains fused multiply-add, which must not be used.
#if defined(__clang__)
#define TESSERA_AVX512_UNFUSED __attribute__((target("avx512f")))
#else
#define TESSERA_AVX512_UNFUSED __attribute__((target("avx512f"), optimize("fp-contract=off")))
#endif
template <class T, class S>
TESSERA_AVX512_UNFUSED void add_steps_avx512(T* __restrict sums, const T (&a)[kSteps],
                                             const S* __restrict b, std::int64_t stride,
                                             int count) {
  add_wide_steps<64>(sums, a, b, stride, count);
}

/// Adds the steps with the widest registers that the machine has; false where it has none or the
/// row is short.
template <class T, class S>
bool add_wide(T* sums, const T (&a)[kSteps], const S* b, std::int64_t stride, int count) {
  static const bool kHasAvx512 = __builtin_cpu_supports("avx512f") != 0,
                    kHasAvx2 = __builtin_cpu_supports("avx2") != 0;
  if (count < kChunk || !kHasAvx2) return false;
  if (kHasAvx512)
    add_steps_avx512(sums, a, b, stride, count);
  else
    add_steps_avx2(sums, a, b, stride, count);
  return true;
}
#endif

/// sums[lane] += sum over kSteps steps of a * b, where `a` is the same for all lanes and `b` has
/// them one after the other, from `step` on.
template <class T, class S>
void accumulate_row(T* sums, const Factor<S>& a, const Factor<S>& b, std::int64_t step, int begin,
                    int end) {
  T same[kSteps];
  for (int i = 0; i < kSteps; ++i)
    same[i] = static_cast<T>(load<S>(a.data, a.start + (step + i) * a.stride));
  const S* const rows = reinterpret_cast<const S*>(b.data) + b.start + step * b.stride;
  int done = 0;
  const int count = end - begin;
  const auto add = [&]<int chunk>(std::integral_constant<int, chunk>) {
    const int chunks = (count - done) / chunk;
    add_steps<chunk>(sums + begin + done, same, rows + done, b.stride, chunks);
    done += chunks * chunk;
  };
#if defined(TESSERA_HAS_WIDE_STEPS)
  if constexpr (std::is_floating_point_v<T> && std::is_floating_point_v<S>)
    if (add_wide(sums + begin, same, rows, b.stride, count)) return;
#endif
  add(std::integral_constant<int, kChunk>{});
  add(std::integral_constant<int, 4>{});
  for (; done < count; ++done)
    for (int i = 0; i < kSteps; ++i)
      sums[begin + done] = sums[begin + done] + same[i] * static_cast<T>(rows[i * b.stride + done]);
}

template <class S>
bool is_aligned(const Factor<S>& factor) {
  return reinterpret_cast<std::uintptr_t>(factor.data) % alignof(S) == 0;
}

/// The same over all steps that are whole groups of kSteps; gives their number.
template <class T, class S>
std::int64_t accumulate_rows(T* sums, const Factor<S>& a, Factor<S> b, std::int64_t steps,
                             int begin, int end) {
  if (!is_aligned(b)) return 0;
  b.start += begin;
  std::int64_t step = 0;
  for (; step + kSteps <= steps; step += kSteps) accumulate_row(sums, a, b, step, begin, end);
  return step;
}

/// The same for all segments of a block, a group of steps at a time, so that what its rows read
/// alike is in the cache.
template <class T, class S, class Segments>
std::int64_t accumulate_segments(T* sums, const Factor<S> (&factors)[2], const Segments& segments,
                                 std::int64_t steps) {
  std::int64_t step = 0;
  if constexpr (std::is_floating_point_v<T> && std::is_floating_point_v<S>) {
    for (; !segments.empty() && step + kSteps <= steps; step += kSteps)
      for (const auto& segment : segments) {
        Factor<S> same = factors[segment.which], consecutive = factors[1 - segment.which];
        same.start += segment.same;
        consecutive.start += segment.consecutive;
        accumulate_row(sums, same, consecutive, step, segment.begin, segment.end);
      }
  }
  return step;
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
      const auto grows = [&](int which, int at, std::int64_t step) {
        return offset(which, at + 1) - offset(which, at) == step;
      };
      int which = 0, end = lane + 1;
      const auto goes_on = [&](int same) {
        return end < run.end && grows(same, end - 1, 0) && grows(1 - same, end - 1, 1);
      };
      if (!goes_on(0) && goes_on(1)) which = 1;
      while (goes_on(which)) ++end;
      result.push_back({lane, end, offset(which, lane), offset(1 - which, lane), which});
      lane = end;
    }
  }
  if (static_cast<int>(result.size()) * kShortest > lanes) return {};
  return result;
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
  const FoldPlan::Loop* innermost = nullptr;
  if (!inner.empty()) {
    innermost = inner.back();
    inner.pop_back();
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
  std::vector<Run> runs;
  do {
    if (stopped()) {
      error_ = Diagnostic{.id = "stopped", .message = "the evaluation was stopped"};
      return false;
    }
    if (!execute(fold.product_code)) return false;
    valid_runs(fold, runs);
    if (runs.empty()) continue;
    std::vector<Segment> rows;
    if (std::is_floating_point_v<T> && is_aligned(factors[0]) && is_aligned(factors[1]) &&
        steps >= kSteps)
      rows = segments(fold, runs);
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
      const std::int64_t done = accumulate_segments(sums, factors, rows, steps);
      if (done == steps) continue;
      Factor<S> rest[2] = {factors[0], factors[1]};
      for (Factor<S>& factor : rest) factor.start += done * factor.stride;
      for (const Run& run : runs) kernel(sums, rest[0], rest[1], steps - done, run.begin, run.end);
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
  template void Lanes<T>::valid_runs(const FoldPlan&, std::vector<Lanes<T>::Run>&);
TESSERA_NUMBER_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
