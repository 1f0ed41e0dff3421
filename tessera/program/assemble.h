#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tessera/lower/group.h"
#include "tessera/program/boundary.h"
#include "tessera/program/compile.h"
#include "tessera/program/group.h"
#include "tessera/program/layout.h"
#include "tessera/program/lowerings.h"

namespace tessera::program {

/// A weight in the form in which a kernel reads it.
struct WeightUse {
  Tensor constant = {};
  std::shared_ptr<const Definition> packing = {};  // null: as it is
};

/// A program before its kernels are code, its weights are computed and its memory is planned.
struct Draft {
  runtime::Program program = {};
  std::vector<std::shared_ptr<const tile::Kernel>> kernels = {};
  std::map<runtime::ValueIndex, WeightUse> weights = {};
  CompileReport report = {};
};

/// What decisions are made with.
struct Planning {
  const CompileOptions& options;
  Lowerings& lowerings;  // for the machine and the options
  Boundary boundary = Boundary::Caller;
};

/// Decides for every group of a graph what it becomes: steps over values.
Expected<Draft> assemble(const Graph& graph, const Planning& planning);

}  // namespace tessera::program
