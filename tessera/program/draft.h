#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/program/compile.h"
#include "tessera/runtime/program.h"
#include "tessera/support/tensor.h"
#include "tessera/tile/kernel.h"

namespace tessera::program {

/// Constant as a kernel reads it, perhaps prepacked.
struct WeightUse {
  Tensor constant = {};
  std::shared_ptr<const Definition> packing = {};  // null: as it is
};

/// Program before code generation, weight packing and memory planning.
struct Draft {
  runtime::Program program = {};
  std::vector<std::shared_ptr<const tile::Kernel>> kernels = {};
  std::map<runtime::ValueIndex, WeightUse> weights = {};
  CompileReport report = {};
};

/// Estimated work of a step, for profiles.
struct StepWork {
  double flops = 0, bytes = 0;
};

/// Appends values, kernels and steps to a draft; equal kernels and weights are shared.
class DraftBuilder {
 public:
  Draft draft = {};

  runtime::Value& value(runtime::ValueIndex index) { return draft.program.values[index]; }
  const runtime::Value& value(runtime::ValueIndex index) const {
    return draft.program.values[index];
  }

  /// Its size in bytes is computed from shape and dtype.
  runtime::ValueIndex add_value(runtime::Value value);
  /// Adds the constant of the graph with this number in the packed form that `key` identifies.
  runtime::ValueIndex add_weight(std::uint32_t number, runtime::Value value, WeightUse use,
                                 const std::string& key);
  std::uint32_t add_kernel(const std::shared_ptr<const tile::Kernel>& kernel,
                           const std::string& fingerprint);

  void add_step(runtime::Step step, CompileReport::Step report, const StepWork& work = {});
  /// Adds a copy of as many bytes as `to` has.
  void add_copy(const runtime::Address& from, runtime::ValueIndex to);

 private:
  std::map<std::pair<std::uint32_t, std::string>, runtime::ValueIndex> weights_;
  std::map<std::string, std::uint32_t> kernels_;  // by fingerprint
};

}  // namespace tessera::program
