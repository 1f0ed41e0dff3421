#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tessera/lower/group_schedule.h"
#include "tessera/lower/lower.h"
#include "tessera/machine/machine.h"
#include "tessera/tile/schedule.h"

namespace tessera::lower {

/// Box of a larger tensor, along its axes in memory.
struct OutputBox {
  std::vector<std::int64_t> whole = {};  // extents of the tensor
  std::vector<std::int64_t> start = {};  // position of the box in it
};

/// Fusion group: stages that are lowered together. A stage reads operands and earlier stages by
/// name; stages that can be computed at their use are inlined (inlined()), so that those left are
/// read at other positions than their own. All tensors are dense and row-major, as in memory.
///
///   conv + bias + relu       one stage with one reduction
///   softmax                  three: the maximum, the sum, the result
///   attention                four: the scores, their maximum, the sum, the result
struct Group {
  tile::Stages stages = {};
  std::vector<std::string> results = {};  // stages that are stored
  std::set<std::string> weights = {};     // operands that are constant
  /// The one result is written into a box of a tensor, whose other elements are kept.
  std::optional<OutputBox> box = {};
};

/// Weight packing: a tensor that is computed from a weight at compile time.
struct Packing {
  std::string weight;
  Definition definition;  // one input, one output: the name of the kernel's argument
};

/// Lowered group: its kernels, in order.
struct GroupCode {
  std::vector<Lowered> kernels = {};
  std::vector<Packing> packings = {};
  std::vector<Operand> temporaries = {};       // tensors between kernels
  std::string strategy = {};                   // for reports: "dot 128x256x64, weights packed"
  std::optional<GroupSchedule> schedule = {};  // that it was lowered by, if the strategy has one
};

/// Multiply-adds below which a contraction takes about as long in f32 as in bf16 on a GPU: with
/// bf16 requested, smaller ones are computed in f32, which has more bits.
constexpr double kSmallContraction = 1 << 24;

/// Options of lowering.
struct GroupOptions {
  /// Keep the order of additions: no Winograd, no online softmax, no split-K.
  bool exact = false;
  /// Operands of contractions are rounded to it: BF16, on a GPU also F16. Accumulators are F32.
  DType contraction_dtype = DType::F32;
  /// They are numbers of that type anyway: rounding changes nothing.
  bool exact_operands = false;
  /// On a GPU: f32 operands may be rounded to tf32, for tensor cores.
  bool tf32 = false;
  /// Schedule to lower by; none: the default schedule. An illegal one is `schedule-illegal`.
  std::optional<GroupSchedule> schedule = {};
  /// Checks whether code can be generated for a kernel; if not, another strategy is tried.
  std::function<Expected<Done>(const tile::Kernel&)> accept = {};
};

/// Options that lower_group applies: operands that are 16-bit floats stay so where the machine
/// multiplies them faster than f32.
GroupOptions effective_options(const Group& group, const machine::Machine& machine,
                               GroupOptions options);

/// Lowers a group by the first strategy that applies: scatter, attention, Winograd, contraction,
/// copy, rows, split reduction, elementwise; one with a box elementwise. `lower-unsupported` if it
/// cannot be expressed as tile kernels.
Expected<GroupCode> lower_group(const Group& group, const machine::Machine& machine,
                                const GroupOptions& options = {});

/// Candidate schedule of a group.
struct ScheduleCandidate {
  GroupSchedule schedule = {};
  /// Estimated cycles by the analytic model of the strategy; comparable within a strategy. 0: the
  /// strategy has no model.
  double cycles = 0;
};

/// Schedule space of a group: the legal schedules of every strategy that applies, those of the
/// default strategy first, then by estimated cycles. With `exact`, only schedules that keep the
/// order of additions. Empty where no strategy has schedules (scatters, copies, boxes).
std::vector<ScheduleCandidate> schedule_space(const Group& group, const machine::Machine& machine,
                                              const GroupOptions& options);

/// Strategies: none where they do not apply.
using Attempt = std::optional<GroupCode>;
Expected<Attempt> lower_scatter(const Group&, const machine::Machine&, const GroupOptions&);
Expected<Attempt> lower_attention(const Group&, const machine::Machine&, const GroupOptions&);
Expected<Attempt> lower_winograd(const Group&, const machine::Machine&, const GroupOptions&);
Expected<Attempt> lower_contraction(const Group&, const machine::Machine&, const GroupOptions&);
Expected<Attempt> lower_rows(const Group&, const machine::Machine&, const GroupOptions&);
Expected<Attempt> lower_split_reduction(const Group&, const machine::Machine&, const GroupOptions&);
Expected<Attempt> lower_box(const Group&, const machine::Machine&, const GroupOptions&);
Expected<Attempt> lower_copy(const Group&, const machine::Machine&, const GroupOptions&);
Expected<Attempt> lower_elementwise(const Group&, const machine::Machine&, const GroupOptions&);

/// Schedule spaces of the strategies; empty where they do not apply.
using ScheduleCandidates = std::vector<ScheduleCandidate>;
ScheduleCandidates attention_space(const Group&, const machine::Machine&, const GroupOptions&);
ScheduleCandidates winograd_space(const Group&, const machine::Machine&, const GroupOptions&);
ScheduleCandidates contraction_space(const Group&, const machine::Machine&, const GroupOptions&);
ScheduleCandidates rows_space(const Group&, const machine::Machine&, const GroupOptions&);
ScheduleCandidates loops_space(const Group&, const machine::Machine&, const GroupOptions&);

/// Inlines stages into their consumers: those without a reduction, and those whose only consumer
/// reads them at its own positions and has no reduction; never a result.
Expected<tile::Stages> inlined(tile::Stages stages, const std::vector<std::string>& results);

/// Applies a layout to a tensor of the stages: axis i in memory is axis order[i] of the tensor.
Expected<tile::Stages> reordered(tile::Stages stages, const std::string& tensor,
                                 const std::vector<int>& order);

}  // namespace tessera::lower
