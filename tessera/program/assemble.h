#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tessera/lower/group.h"
#include "tessera/program/compile.h"
#include "tessera/program/group.h"
#include "tessera/program/layout.h"

namespace tessera::program {

/// A weight in the form in which a kernel reads it.
struct WeightUse {
  Tensor constant = {};
  std::shared_ptr<const Definition> packing = {};  // null: as it is
};

/// A program before its kernels are code, its weights are computed and its memory is planned.
struct Draft {
  runtime::Program program = {};
  std::vector<tile::Kernel> kernels = {};
  std::map<runtime::ValueIndex, WeightUse> weights = {};
  CompileReport report = {};
};

/// Decides for every group of a graph what it becomes: steps over values.
Expected<Draft> assemble(const Graph& graph, const CompileOptions& options);

}  // namespace tessera::program
