#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/lower/group.h"
#include "tessera/program/canonical.h"
#include "tessera/support/expected.h"

namespace tessera::program {

/// Result of lowering a fusion group: kernels, packings and cost, or a diagnostic.
struct Lowering {
  std::string key;   // hash of the group and the options, 32 hexadecimal digits
  std::string code;  // hash of the kernels
  Expected<lower::GroupCode> made;
  std::vector<std::string> fingerprints = {};  // of the kernels
  std::vector<std::string> packings = {};      // as text
  std::size_t launches = 0;                    // kernels that are not empty
  double operations = 0;                       // estimated scalar operations
};

/// Lowering cache for one machine and one set of options. Shared between graphs: plans of graphs
/// that have most groups in common are fast.
class Lowerings {
 public:
  Lowerings(machine::Machine machine, const lower::GroupOptions& options)
      : machine_(std::move(machine)), options_(options) {}

  std::shared_ptr<const Lowering> of(const CanonicalGroup& group);

 private:
  machine::Machine machine_;
  lower::GroupOptions options_;
  std::map<std::string, std::shared_ptr<const Lowering>, std::less<>> made_;
};

}  // namespace tessera::program
