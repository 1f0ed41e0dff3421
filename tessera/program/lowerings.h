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

/// What a group of nodes became.
struct Lowering {
  std::string key;   // of the group and the options, 32 hexadecimal digits: what is computed
  std::string code;  // of the kernels, likewise: how
  Expected<lower::GroupCode> made;
  std::vector<std::string> fingerprints = {};  // of the kernels
  std::vector<std::string> packings = {};      // as text
  std::size_t launches = 0;                    // kernels with anything to do
  double operations = 0;                       // scalar ones, about
};

/// The lowerings of one machine and one set of options, each made once: kept from graph to graph,
/// they make plans of graphs that share most of their groups quick.
class Lowerings {
 public:
  Lowerings(machine::Machine machine, const lower::GroupOptions& options)
      : machine_(std::move(machine)), options_(options) {}

  std::shared_ptr<const Lowering> of(const Canonical& group);

 private:
  machine::Machine machine_;
  lower::GroupOptions options_;
  std::map<std::string, std::shared_ptr<const Lowering>, std::less<>> made_;
};

}  // namespace tessera::program
