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

/// Estimated work of a step, for profiles.
struct StepWork {
  double flops = 0, bytes = 0;
};

/// Appends values, kernels and steps to a draft; equal kernels and equal weights are there once.
class DraftBuilder {
 public:
  Draft draft = {};

  runtime::Value& value(runtime::ValueIndex index) { return draft.program.values[index]; }
  const runtime::Value& value(runtime::ValueIndex index) const {
    return draft.program.values[index];
  }

  /// Its bytes follow from its shape and dtype.
  runtime::ValueIndex add_value(runtime::Value value);
  /// The constant of the graph with this number, as the packing has it; `key` names the packing.
  runtime::ValueIndex add_weight(std::uint32_t number, runtime::Value value, WeightUse use,
                                 const std::string& key);
  std::uint32_t add_kernel(const std::shared_ptr<const tile::Kernel>& kernel,
                           const std::string& fingerprint);

  void add_step(runtime::Step step, CompileReport::Step report, const StepWork& work = {});
  /// All of `to`, byte by byte.
  void add_copy(const runtime::Address& from, runtime::ValueIndex to);

 private:
  std::map<std::pair<std::uint32_t, std::string>, runtime::ValueIndex> weights_;
  std::map<std::string, std::uint32_t> kernels_;  // by fingerprint
};

}  // namespace tessera::program
