#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/prove/window.h"

namespace tessera::prove {

/// The largest difference of two tensors of one shape relative to the largest element, if each
/// element differs by no more than rounding explains: 1e-5 of it and 1e-7 of the largest.
std::optional<double> rounding_difference(const Tensor& a, const Tensor& b);

/// Finds out how constants of one graph follow from those of the other, and adds to the other graph
/// what they follow by. Constants that files hold have to be the same bit by bit; those that were
/// computed may differ by rounding.
class ConstantMatcher {
 public:
  explicit ConstantMatcher(Pairing& pairing);

  /// For a constant of the target that is none of the source's: the same after a computation,
  /// reshaped, transposed, joined or cut out.
  bool match(ValueId target);

  /// For the loose constants of a window: one side scales and shifts each channel of a product with
  /// weights, the other has this in its weights and bias.
  bool absorb(const Window& window);

  /// What was taken for granted; empty if nothing was.
  std::vector<std::string> assumptions() const;

 private:
  bool assign(Side side, ValueId value, ValueId derived);
  bool assign_rounded(Side side, ValueId value, ValueId derived);
  bool absorb(const Window& window, Side from);
  bool absorb(const Window& window, Side from, ClassId product, ValueId weights, int channel);
  std::optional<ValueId> replayed(const Window& window, Side side, ClassId product, ValueId start);
  std::optional<ValueId> reshaped(Side side, ValueId value, const Ints& shape);
  std::optional<ValueId> joined(ValueId target);
  std::optional<ValueId> cut_out(ValueId target);
  std::optional<Tensor> evaluated(Side side, ValueId value);

  Pairing& pairing_;
  std::map<std::pair<DType, std::int64_t>, std::vector<ValueId>> by_count_;  // of the source
  std::vector<ValueId> source_;
  std::map<std::pair<Side, std::uint32_t>, Tensor> evaluated_;
  std::size_t rounded_ = 0;
  double largest_ = 0;
};

}  // namespace tessera::prove
