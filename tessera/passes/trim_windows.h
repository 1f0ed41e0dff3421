#pragma once

#include "tessera/ir/graph.h"

namespace tessera::passes {

/// Trims windows of convolutions: positions at both ends of an axis that read nothing but padding
/// are dropped, with their weights. A 3 x 3 window with dilation 24 on an image of 14 x 14 pixels
/// becomes 1 x 1.
///
/// Leaves alone those with weights that are not constant.
/// Keeps:  the meaning over the reals (zero times infinity is NaN); all other nodes.
Graph trim_windows(const Graph& graph);

}  // namespace tessera::passes
