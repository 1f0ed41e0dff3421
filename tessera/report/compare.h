#pragma once

#include <vector>

#include "tessera/report/event_log.h"

namespace tessera::report {

/// Differences between two logs: steps that compute the same ONNX nodes are compared, the largest
/// gain or loss of time first. Groups of steps are as small as possible such that no node belongs
/// to two of them. Nodes of one log alone have no time in the other.
std::vector<Difference> compare(const EventLog& a, const EventLog& b);

}  // namespace tessera::report
