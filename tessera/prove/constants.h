#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/prove/verdict.h"
#include "tessera/prove/window.h"
#include "tessera/support/rng.h"

namespace tessera::prove {

/// The largest difference of two tensors of floats of one shape, in units of the last place of
/// `given`, if no element differs by more than rounding explains: 4 units of its own, or 8 times
/// the largest difference of `draws`, which are `computed` with other roundings, from `computed`
/// at this element. Elements that are not finite have to be the same.
std::optional<double> rounding_difference(const Tensor& given, const Tensor& computed,
                                          const std::function<std::vector<Tensor>()>& draws = {});

/// How the text of the assumption ends that constants are rounded results.
inline constexpr std::string_view kLastPlace = " units in the last place";

/// Finds out how constants of one graph follow from those of the other, and adds to the other graph
/// what they follow by. Constants that files hold have to be the same bit by bit; those that were
/// computed may differ by rounding.
class ConstantMatcher {
 public:
  explicit ConstantMatcher(Pairing& pairing);

  /// For a constant of the target that is none of the source's: the same after a computation,
  /// reshaped, transposed, joined or cut out.
  bool match(ValueId target);
  /// For a value of the target that is computed of constants alone: a constant of the source that
  /// is its rounded result.
  bool match_computed(ValueId target);

  /// For the loose constants of a window: one side scales and shifts each channel of a product with
  /// weights, the other has this in its weights and bias; or one side adds or multiplies constants
  /// one after the other, the other has their sum or product.
  bool absorb(const Window& window);

  /// What was taken for granted; empty if nothing was.
  std::vector<Assumption> assumptions() const;

 private:
  bool assign(Side side, ValueId value, ValueId derived);
  bool assign_rounded(Side side, ValueId value, ValueId derived);
  /// Whether a constant is what a value of the other side computes to, rounded.
  bool is_rounded(Side side, ValueId constant, ValueId computed);
  bool absorb(const Window& window, Side from);
  bool combine(const Window& window, Side from);
  bool absorb(const Window& window, Side from, ClassId product, ValueId weights, int channel);
  std::optional<ValueId> replayed(const Window& window, Side side, ClassId product, ValueId start);
  std::optional<ValueId> reshaped(Side side, ValueId value, const Ints& shape);
  std::optional<ValueId> joined(ValueId target);
  std::optional<ValueId> cut_out(ValueId target);
  /// The value in double precision; with `rounding`, every result is rounded to its type, up or
  /// down at random.
  std::optional<Tensor> evaluated(Side side, ValueId value, Rng* rounding = nullptr);

  Pairing& pairing_;
  std::map<std::pair<DType, std::int64_t>, std::vector<ValueId>> by_count_;  // of the source
  std::vector<ValueId> source_;
  std::map<std::pair<Side, std::uint32_t>, Tensor> evaluated_;
  std::size_t rounded_ = 0;
  double largest_ = 0;
};

}  // namespace tessera::prove
