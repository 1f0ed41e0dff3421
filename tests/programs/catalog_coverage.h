#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera::testing {

/// The operators that programs have used, and their attributes that differed from the default.
class CatalogCoverage {
 public:
  void add(const Graph& graph);
  /// Adds one of the names of another coverage.
  void add(std::string name) { names_.insert(std::move(name)); }
  /// `operator` and `operator.attribute`.
  const std::set<std::string>& names() const { return names_; }
  /// "215 of 218 operators, 301 of 310 attributes", and the names of the rest.
  std::string summary() const;
  /// Operators and `operator.attribute`s that no program had, of those that are not random.
  std::vector<std::string> missing() const;

 private:
  std::set<std::string> names_;
};

}  // namespace tessera::testing
