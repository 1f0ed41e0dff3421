#pragma once

#include "tessera/prove/prove.h"

namespace tessera::prove {

/// Whether two graphs, equal over the reals, give the same results bit for bit, but for the sign of
/// zero and what is not finite. At sizes that are drawn, both are evaluated on inputs that stand
/// for any number, and every operation is written down: the results are the same if they come of
/// the same operations in the same order (see Tracer for what counts as the same operation).
///
/// Nothing if that is so at all sizes; a refutation where results in single precision differ;
/// otherwise why it is not known.
std::optional<Verdict> inexactness(const Graph& source, const Graph& target, const Guard& guard,
                                   const Options& options);

/// Runs what refutes exactness again.
Expected<bool> differ_in_bits(const Graph& source, const Graph& target, const Refuted& refuted);

}  // namespace tessera::prove
