#pragma once

#include <optional>
#include <vector>

#include "tessera/lower/attention_form.h"
#include "tessera/lower/range.h"

namespace tessera::lower {

/// Attention over tiles of keys: how partial reductions follow the rows that their terms read.
///
/// A reduction over the keys reads results of earlier ones (the sum of a softmax reads the
/// maximum), which change while tiles of keys go by. Where its terms are products with factors
/// exp(x + t), t being what is computed of those results and of no key, a partial sum for t
/// becomes one for t' by multiplication with exp(t' - t), because exp turns sums into products and
/// products distribute over sums. A softmax is the case t = -maximum.
struct OnlineAttention {
  /// Exponents t of the reductions between the matmuls, in order; none: terms read no row.
  std::vector<std::optional<Scalar>> exponents = {};
  std::optional<Scalar> result_exponent = {};  // of the second matmul
  Scalar weights = 0.0;                        // its first operand
  std::optional<Scalar> outside = {};          // common factor of its sum
  std::optional<Scalar> blank = {};            // rows whose sum is 0 regardless
};

/// Condition of the scores on positions: keys for which it does not hold have the score -inf, so
/// that they change nothing. It reads key <= row_factor * row + rest, or >= for a first key.
struct KeyBound {
  Scalar condition = 0.0;
  std::int64_t row_factor = 0;
  Range rest = {};  // over the other loops
};
struct VisibleKeys {
  std::vector<KeyBound> last = {}, first = {};
};
/// Causal masks and sliding windows that are written as conditions on positions.
VisibleKeys visible_keys(const AttentionForm& form);
/// Whether a sum of -inf makes a score of -inf: then a key that is not visible may be masked in the
/// sum of the first matmul, before anything else is computed of it.
bool keeps_lowest(const AttentionForm& form);

/// None where a reduction cannot follow the rows that it reads.
std::optional<OnlineAttention> online_attention(const AttentionForm& form);

}  // namespace tessera::lower
