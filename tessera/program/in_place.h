#pragma once

#include <vector>

#include "tessera/lower/group.h"
#include "tessera/program/classify.h"
#include "tessera/program/decisions.h"
#include "tessera/program/layout.h"

namespace tessera::program {

/// Values whose memory a later result may take over, since nothing else reads it: computed by a
/// node, and used once, as is every value that they are a view or transpose of.
class ReusableValues {
 public:
  ReusableValues(const Graph& graph, const Decisions& decisions);

  bool contains(ValueId value) const;

 private:
  const Graph& graph_;
  const Decisions& decisions_;
  std::vector<std::size_t> uses_;  // by value
};

/// Layouts and types of the tensors of a box update in memory.
struct BoxUpdateLayout {
  AxisOrder whole = {}, update = {};
  DType whole_dtype = DType::F32, update_dtype = DType::F32;
};

/// Group that writes an update ("from") into its box of the tensor ("to"); none if no element of
/// it lies inside.
Expected<std::optional<lower::Group>> box_update_group(const tile::Stage& stage,
                                                       const BoxUpdate& update,
                                                       const BoxUpdateLayout& layout);

}  // namespace tessera::program
