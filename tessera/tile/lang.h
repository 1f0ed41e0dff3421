#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/tile/lang_arguments.h"
#include "tessera/tile/lang_kernel.h"
#include "tessera/tile/lang_val.h"

/// Kernels in C++. A kernel is traced: its body runs once, and what it does to values of type `Val`
/// is recorded. Sizes are plain C++ numbers, so the same body gives a kernel for every block size.
///
///   Expected<Kernel> add(std::int64_t block) {
///     return kernel("add", {"x", "y", "out", "n"},
///                   [&](Ptr<float> x, Ptr<float> y, Ptr<float> out, Num<std::int64_t> n) {
///                     const Val at = program_id(0) * block + arange(0, block);
///                     const Val mask = at < n;
///                     store(out + at, load(x + at, mask) + load(y + at, mask), mask);
///                   });
///   }
///
/// Operators promote and broadcast as Triton's do. A C++ number takes the type of what it meets
/// (`x * 2.0` of a tile of f16 is f16); on its own (`Val m = 0.0`) a whole number is i64, another
/// f32. As in C++, and unlike Triton, `/` of integers is an integer, rounded towards zero.
///
/// Loops, branches and assignments are written as in C++ (`range`, `when`, `loop_while`); C++ loops
/// and branches themselves are done while tracing. A mistake is a diagnostic at the line of the
/// body that made it; it ends the trace.
namespace tessera::tile {

// ---------------------------------------------------------------------------- element by element

Val exp(const Operand& x);
Val exp2(const Operand& x);
Val log(const Operand& x);
Val log2(const Operand& x);
Val sin(const Operand& x);
Val cos(const Operand& x);
Val tanh(const Operand& x);
Val erf(const Operand& x);
Val sqrt(const Operand& x);
Val rsqrt(const Operand& x);
Val sigmoid(const Operand& x);
Val abs(const Operand& x);
Val floor(const Operand& x);
Val ceil(const Operand& x);
Val round(const Operand& x);  // ties to even

/// NaN handling of maximum and minimum: ignore NaN, or propagate it.
enum class Nan : std::uint8_t { Ignore, Propagate };
Val maximum(const Operand& a, const Operand& b, Nan nan = Nan::Ignore);
Val minimum(const Operand& a, const Operand& b, Nan nan = Nan::Ignore);
Val clamp(const Operand& x, const Operand& low, const Operand& high, Nan nan = Nan::Ignore);
Val pow(const Operand& a, const Operand& b);
Val umulhi(const Operand& a, const Operand& b);
Val fma(const Operand& a, const Operand& b, const Operand& c);
/// x where the condition holds, y elsewhere; both are computed.
Val where(const Operand& condition, const Operand& x, const Operand& y);
Val cast(const Operand& x, DType dtype);

/// a / b, rounded up.
Val cdiv(const Operand& a, const Operand& b);
constexpr std::int64_t cdiv(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// --------------------------------------------------------------------------------- making tiles

Val program_id(int axis, Place where = Place::current());
Val num_programs(int axis, Place where = Place::current());
/// from, from + 1, … to - 1.
Val arange(std::int64_t from, std::int64_t to, DType dtype = DType::I64,
           Place where = Place::current());
/// Tile filled with a value; a scalar where the shape has no axes.
Val full(const Extents& shape, const Operand& value, DType dtype = DType::F32);
Val zeros(const Extents& shape, DType dtype = DType::F32, Place where = Place::current());
Val zeros_like(const Operand& x);

// ---------------------------------------------------------------------------------------- shapes

Val broadcast_to(const Operand& x, const Extents& shape);
Val reshape(const Operand& x, const Extents& shape);
/// Transpose: result axis i is axis order[i] of the tile.
Val permute(const Operand& x, const std::vector<std::int64_t>& order);
/// Transpose of the last two axes.
Val trans(const Operand& x);
Val expand_dims(const Operand& x, int axis);
Val concat(const Operands& parts, int axis, Place where = Place::current());
Val slice(const Operand& x, const std::vector<std::int64_t>& from, const Extents& shape);
/// Elements of x at the indices along the axis.
Val gather(const Operand& x, const Operand& index, int axis);

// -------------------------------------------------------------------------------- along an axis

/// All axes: the tile is reduced to a scalar.
constexpr int kAllAxes = 1 << 20;
/// Whether a reduced axis stays, with extent 1.
enum class Dims : std::uint8_t { Drop, Keep };

/// An axis below 0 is counted from the end. Sums and products of narrow integers are 32 bits wide.
Val sum(const Operand& x, int axis = kAllAxes, Dims dims = Dims::Drop);
Val prod(const Operand& x, int axis = kAllAxes, Dims dims = Dims::Drop);
Val max(const Operand& x, int axis = kAllAxes, Dims dims = Dims::Drop);
Val min(const Operand& x, int axis = kAllAxes, Dims dims = Dims::Drop);
Val max(const Operand& x, double) = delete;                      // of two: maximum
Val min(const Operand& x, double) = delete;                      // of two: minimum
Val argmax(const Operand& x, int axis, Dims dims = Dims::Drop);  // i64; the first of equals
Val argmin(const Operand& x, int axis, Dims dims = Dims::Drop);
/// Maximum or minimum, and its index.
std::pair<Val, Val> max_with_index(const Operand& x, int axis, Dims dims = Dims::Drop);
std::pair<Val, Val> min_with_index(const Operand& x, int axis, Dims dims = Dims::Drop);
Val cumsum(const Operand& x, int axis = 0);
Val cumprod(const Operand& x, int axis = 0);
/// Combiner of a reduction or scan of several tiles, given the left and the right elements.
using Combine = std::function<std::vector<Val>(const std::vector<Val>&, const std::vector<Val>&)>;
std::vector<Val> reduce(const Operands& x, int axis, const Combine& combine,
                        Place where = Place::current());
std::vector<Val> associative_scan(const Operands& x, int axis, const Combine& combine,
                                  Place where = Place::current());
Val softmax(const Operand& x, int axis = -1);

/// Accumulator dtype of sums and dots of this dtype: f32 for f16 and bf16, 32 bits for narrow
/// integers.
DType accumulator(DType dtype);

/// Matrix multiplication a·b + c; without c, into the accumulator type of a's dtype.
Val dot(const Operand& a, const Operand& b, const Maybe& c = {});

// --------------------------------------------------------------------------------------- memory

/// Masked load: where the mask is false nothing is read, and the result is `other`, or 0.
Val load(const Operand& pointer, const Maybe& mask = {}, const Maybe& other = {});
/// Masked store; x is converted to the element type of the pointers.
void store(const Operand& pointer, const Operand& x, const Maybe& mask = {});

/// Atomic read-modify-write operations; they return the old value.
Val atomic_add(const Operand& pointer, const Operand& x, const Maybe& mask = {});
Val atomic_max(const Operand& pointer, const Operand& x, const Maybe& mask = {});
Val atomic_min(const Operand& pointer, const Operand& x, const Maybe& mask = {});
Val atomic_and(const Operand& pointer, const Operand& x, const Maybe& mask = {});
Val atomic_or(const Operand& pointer, const Operand& x, const Maybe& mask = {});
Val atomic_xor(const Operand& pointer, const Operand& x, const Maybe& mask = {});
Val atomic_xchg(const Operand& pointer, const Operand& x, const Maybe& mask = {});
Val atomic_cas(const Operand& pointer, const Operand& expected, const Operand& x);

/// View of the memory at a pointer; C++ numbers become static extents and strides. Without strides:
/// row-major and contiguous.
View make_view(const Operand& pointer, const Operands& extents, const Operands& strides = {});

// -------------------------------------------------------------------------------------- control

/// Loop attributes: number of pipeline stages, unroll factor; 0 leaves the choice to the compiler.
struct LoopHints {
  std::int64_t stages = 0, unroll = 0;
};

/// A loop of a traced kernel: `for (const Val k : range(0, n, block)) …` is recorded as one For.
/// Variables of type Val that the body assigns are carried from iteration to iteration; their types
/// stay. No early exit.
class Range {
 public:
  Range(const Operand& from, const Operand& to, const Operand& step, const LoopHints& hints);
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range();

  struct End {};
  class Iterator {
   public:
    explicit Iterator(Range& range) : range_(range) {}
    Val operator*() const { return Val::of(range_.index_); }
    bool operator!=(End) const { return range_.open_; }
    void operator++() { range_.close(); }

   private:
    Range& range_;
  };
  Iterator begin() { return Iterator(*this); }
  End end() const { return {}; }

 private:
  void close();

  Trace& trace_;
  ValueId index_ = 0;
  bool open_ = true;
  int exceptions_;
};

/// Loop from `from` up to and excluding `to`; the step is greater than 0.
Range range(const Operand& from, const Operand& to, const Operand& step = 1,
            const LoopHints& hints = {});
Range range(const Operand& to);

/// Conditional. Variables that the branches assign keep their types; one that had no value before
/// has one afterwards if both assign it. A condition that is a C++ bool is decided while tracing.
void when(const Operand& condition, const std::function<void()>& then,
          const std::function<void()>& otherwise = {});
/// While loop: repeats the body as long as the condition, computed anew each time, holds.
void loop_while(const std::function<Val()>& condition, const std::function<void()>& body,
                Place where = Place::current());

/// Tile coordinates of program `pid` under a grouped order: the tiles of a rows × columns grid are
/// visited in groups of `group` rows, for L2 reuse.
std::pair<Val, Val> swizzle2d(const Operand& pid, const Operand& rows, const Operand& columns,
                              const Operand& group);

// --------------------------------------------------------------------------- facts and debugging

void assume(const Operand& condition);
/// Hint that every element, or the first of each group along an axis, is a multiple of a number.
Val multiple_of(const Operand& x, std::vector<std::int64_t> values);
Val max_contiguous(const Operand& x, std::vector<std::int64_t> values);
Val max_constancy(const Operand& x, std::vector<std::int64_t> values);
void device_assert(const Operand& condition, std::string message);
void device_print(std::string text, const Operands& values = {}, Place where = Place::current());
/// Memory barrier: stores before it are visible to loads after it.
void barrier(Place where = Place::current());

}  // namespace tessera::tile
