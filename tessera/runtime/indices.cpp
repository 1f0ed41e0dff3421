#include "tessera/runtime/indices.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tessera/runtime/threads.h"
#include "tessera/support/check.h"

namespace tessera::runtime {
namespace {

/// Bounds check of contiguous indices.
template <class T>
class Scan {
 public:
  Scan(const std::byte* elements, std::int64_t low, std::int64_t high)
      : elements_(elements), low_(bounded(low)), high_(bounded(high)), is_empty_(low > high) {}

  T at(std::int64_t i) const {
    T element;
    std::memcpy(&element, elements_ + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    return element;
  }
  bool is_outside(std::int64_t i) const {
    const T element = at(i);
    return is_empty_ || element < low_ || element > high_;
  }

  bool any_outside(std::int64_t first, std::int64_t last) const {
    if (is_empty_) return last > first;
    // Without comparisons, which x86-64 has for 64 bits in extensions alone: of two differences
    // that add up to the length of the range, one has its sign bit set where an element is outside.
    using Word = std::make_unsigned_t<T>;
    using Vector [[gnu::vector_size(64)]] = Word;  // in as many registers as needed
    constexpr auto kLanes = static_cast<std::int64_t>(64 / sizeof(T));
    constexpr auto kSign = static_cast<Word>(Word{1} << (8 * sizeof(T) - 1));
    const auto low = static_cast<Word>(low_), high = static_cast<Word>(high_);
    const bool is_short = static_cast<Word>(high - low) < kSign;
    Vector wrong = {};
    for (; first + kLanes <= last && is_short; first += kLanes) {
      Vector loaded;
      std::memcpy(&loaded, elements_ + first * static_cast<std::int64_t>(sizeof(T)), sizeof loaded);
      wrong |= (loaded - low) | (high - loaded);
    }
    bool any = false;
    for (std::int64_t i = 0; i < kLanes; ++i) any = any || (wrong[i] & kSign) != 0;
    for (; first < last; ++first) any = any || is_outside(first);
    return any;
  }

 private:
  /// Bound converted to the type, saturating: numbers that it cannot hold do not occur.
  static T bounded(std::int64_t bound) {
    if constexpr (std::is_same_v<T, std::uint64_t>) return static_cast<T>(std::max(bound, {}));
    if constexpr (sizeof(T) < sizeof bound)
      bound = std::clamp<std::int64_t>(bound, std::numeric_limits<T>::min(),
                                       std::numeric_limits<T>::max());
    return static_cast<T>(bound);
  }

  const std::byte* elements_;
  T low_, high_;
  bool is_empty_;
};

template <class T>
bool any_outside(const Scan<T>& scan, std::int64_t count, int threads) {
  constexpr std::int64_t kChunk = 1 << 16;  // more work than waking a thread
  const Threads::Work work{
      .run = [](const void* context, std::int64_t first, std::int64_t last, std::byte*) -> int {
        return static_cast<const Scan<T>*>(context)->any_outside(first, last);
      },
      .context = &scan,
      .count = count,
      .chunk = kChunk};
  if (count < 2 * kChunk || threads == 1) return scan.any_outside(0, count);
  return process_threads().run(work, threads) != 0;
}

template <class T>
std::optional<std::int64_t> find(const step::CheckIndices& step, const std::byte* elements,
                                 int threads) {
  const Scan<T> scan(elements, step.low, step.high);
  const bool is_whole = step.period == 1;
  if (is_whole && !any_outside(scan, step.count, threads)) return std::nullopt;
  const std::int64_t block = step.period * step.stride;
  for (std::int64_t first = step.phase * step.stride; first < step.count; first += block)
    for (std::int64_t i = first; i < first + step.stride; ++i)
      if (scan.is_outside(i)) return static_cast<std::int64_t>(scan.at(i));
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> index_outside(const step::CheckIndices& step, DType dtype,
                                          const std::byte* elements, int threads) {
  switch (dtype) {
    case DType::I8: return find<std::int8_t>(step, elements, threads);
    case DType::I16: return find<std::int16_t>(step, elements, threads);
    case DType::I32: return find<std::int32_t>(step, elements, threads);
    case DType::I64: return find<std::int64_t>(step, elements, threads);
    case DType::U8: return find<std::uint8_t>(step, elements, threads);
    case DType::U16: return find<std::uint16_t>(step, elements, threads);
    case DType::U32: return find<std::uint32_t>(step, elements, threads);
    case DType::U64: return find<std::uint64_t>(step, elements, threads);
    default: break;
  }
  TESSERA_CHECK(false, "indices of type {}", to_string(dtype));
  return std::nullopt;
}

}  // namespace tessera::runtime
