#pragma once

#include <cstdint>
#include <vector>

namespace tessera::lower {

/// Programs of causal attention on persistent blocks, which run them in rounds, every second round
/// in the opposite order of blocks: those of some heads at a time, the longest blocks of rows
/// first.
struct ProgramOrder {
  std::int64_t heads = 1, processors = 1;
  std::vector<double> lengths =
      {};                          // of the blocks of rows of a head, in the order of the programs
  std::int64_t bytes_of_head = 0;  // of keys and values
};

/// Number of heads at a time, a divisor of all, with which the last block ends earliest. Heads
/// whose keys and values do not fit into the second-level cache together take a tenth longer: a
/// tile of 128 rows computes about as fast as memory delivers its keys (H200).
std::int64_t heads_at_a_time(const ProgramOrder& order);

}  // namespace tessera::lower
