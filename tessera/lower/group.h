#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tessera/lower/lower.h"
#include "tessera/machine/machine.h"
#include "tessera/tile/schedule.h"

namespace tessera::lower {

/// Operators that are computed together. A stage reads operands and stages before it by name; what
/// can be computed where it is read has been put there (inlined()), so that the stages left are
/// those that others read at other positions than their own. All tensors are as they lie in memory:
/// row by row, the last axis without gaps.
///
///   conv + bias + relu       one stage, whose value holds the one sum
///   softmax                  three: the maximum, the sum, the result
///   attention                four: the scores, their maximum, the sum, the result
struct Group {
  tile::Stages stages = {};
  std::vector<std::string> results = {};  // the stages that are kept
  std::set<std::string> weights = {};     // operands whose content is known when code is made
};

/// A weight as a kernel wants it: another tensor over it, computed once.
struct Packing {
  std::string weight;
  Definition definition;  // one input, one output: the name of the kernel's argument
};

/// Kernels that compute a group, in order.
struct GroupCode {
  std::vector<Lowered> kernels = {};
  std::vector<Packing> packings = {};
  std::vector<Operand> temporaries = {};  // that one kernel leaves to another
  std::string strategy = {};              // for reports: "dot 128x256x64, weights packed"
};

/// Multiply-adds of a product that a GPU computes in f32 as fast as in bf16, about: where bf16 is
/// asked for, products of fewer are computed in f32, which is eight bits more.
constexpr double kSmallProduct = 1 << 24;

struct GroupOptions {
  /// Keep the order of additions: no Winograd, no online softmax, no sums in parts.
  bool exact = false;
  /// BF16, and on a GPU F16: factors are rounded to it, sums stay in F32.
  DType products = DType::F32;
  /// On a GPU: factors of f32 may be rounded to tf32, so that tensor cores multiply them.
  bool tf32 = false;
  /// Whether code can be made of a kernel; where it cannot, another strategy is tried.
  std::function<Expected<Done>(const tile::Kernel&)> accept = {};
};

/// The code of a group by the first strategy that suits it: scatter, attention, winograd,
/// contraction, segments, rows, elements. `lower-unsupported` where it has no form as tile
/// programs.
Expected<GroupCode> lower_group(const Group& group, const machine::Machine& machine,
                                const GroupOptions& options = {});

/// The strategies: nothing where a group is not of their kind.
using Attempt = std::optional<GroupCode>;
Expected<Attempt> lower_scatter(const Group&, const machine::Machine&, const GroupOptions&);
Expected<Attempt> lower_attention(const Group&, const machine::Machine&, const GroupOptions&);
Expected<Attempt> lower_winograd(const Group&, const machine::Machine&, const GroupOptions&);
Expected<Attempt> lower_contraction(const Group&, const machine::Machine&, const GroupOptions&);
Expected<Attempt> lower_rows(const Group&, const machine::Machine&, const GroupOptions&);
Expected<Attempt> lower_segments(const Group&, const machine::Machine&, const GroupOptions&);
Expected<Attempt> lower_elements(const Group&, const machine::Machine&, const GroupOptions&);

/// The stages with those that can be computed where they are read put there: all that have no fold,
/// or whose only reader reads them at its own positions and has no fold; never a result.
Expected<tile::Stages> inlined(tile::Stages stages, const std::vector<std::string>& results);

/// The stages where a tensor, read or computed, lies with its axes in another order: axis i in
/// memory is axis order[i] of what it was.
Expected<tile::Stages> reordered(tile::Stages stages, const std::string& tensor,
                                 const std::vector<int>& order);

}  // namespace tessera::lower
