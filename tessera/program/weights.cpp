#include "tessera/program/weights.h"

#include <algorithm>
#include <cstring>

#include "tessera/codegen/compile.h"
#include "tessera/expr/eval.h"
#include "tessera/expr/text.h"
#include "tessera/lower/lower.h"
#include "tessera/runtime/program.h"

namespace tessera::program {
namespace {

/// Compiles and runs packing definitions; equal ones share code.
class Packer {
 public:
  explicit Packer(const CompileOptions& options) : options_(options) {}

  Expected<Done> pack(const Definition& packing, const Tensor& from, std::byte* to,
                      std::int64_t bytes) {
    const auto code = code_of(packing);
    if (code && launch(*code, from, to, bytes)) return Done{};
    // Axes of one element may have been left out.
    const std::vector<Shape> shapes{packing.inputs[0].shape};
    TESSERA_TRY(const Sizes sizes, solve_sizes(packing, shapes));
    const std::vector<ConstArray> in{{.dtype = from.dtype, .data = from.bytes.data()}};
    const std::vector<MutableArray> out{{.dtype = packing.outputs[0].dtype, .data = to}};
    return eval<float>(packing, sizes, in, out,
                       {.threads = options_.threads, .stop = options_.stop});
  }

 private:
  struct Code {
    lower::Lowered lowered;
    std::shared_ptr<const codegen::CompiledKernel> kernel;
    Definition definition;
  };

  std::optional<Code> code_of(const Definition& packing) {
    std::string key = to_text(packing);
    const auto it = made_.find(key);
    if (it != made_.end()) return it->second;
    return made_.emplace(std::move(key), make(packing)).first->second;
  }

  std::optional<Code> make(const Definition& packing) const {
    std::vector<Shape> shapes{packing.inputs[0].shape};
    const auto stages = tile::stages_of(packing, shapes);
    if (!stages) return std::nullopt;
    const lower::Group group{
        .stages = *stages, .results = {packing.outputs[0].name}, .weights = {}};
    auto lowered = lower::lower_group(group, machine::host());
    if (!lowered || lowered->kernels.size() != 1 || !lowered->kernels[0].offsets.empty() ||
        !lowered->packings.empty())
      return std::nullopt;
    auto kernel = codegen::compile(lowered->kernels[0].kernel, {.cache = options_.cache});
    if (!kernel) return std::nullopt;
    return Code{std::move(lowered->kernels[0]), *std::move(kernel), packing};
  }

  bool launch(const Code& code, const Tensor& from, std::byte* to, std::int64_t bytes) const {
    std::vector<tile::Argument> arguments;
    const auto& params = code.lowered.kernel.params();
    for (std::size_t i = 0; i < code.lowered.arguments.size(); ++i) {
      const bool is_input = code.lowered.arguments[i] == code.definition.inputs[0].name;
      const tile::Type& type = code.lowered.kernel.type(params[i]);
      auto* data = is_input ? const_cast<std::byte*>(from.bytes.data()) : to;
      const std::int64_t size = is_input ? static_cast<std::int64_t>(from.bytes.size()) : bytes;
      arguments.push_back(type.is_view() ? tile::Argument::view(type.dtype, data, type.shape)
                                         : tile::Argument::pointer(type.dtype, data, size));
    }
    return code.kernel->launch(arguments, code.lowered.grid, options_.threads).has_value();
  }

  const CompileOptions& options_;
  std::map<std::string, std::optional<Code>> made_;
};

}  // namespace

Expected<Done> lay_out_weights(const CompileOptions& options, Draft& draft) {
  std::int64_t bytes = 0;
  for (auto& [index, use] : draft.weights) {
    runtime::Value& value = draft.program.values[index];
    value.offset = bytes;
    bytes += (value.bytes + runtime::kAlignment - 1) / runtime::kAlignment * runtime::kAlignment;
  }
  Buffer weights(static_cast<std::size_t>(bytes));
  std::byte* memory = weights.data();
  Packer packer(options);
  for (const auto& [index, use] : draft.weights) {
    const runtime::Value& value = draft.program.values[index];
    const Tensor& constant = use.constant;
    if (use.packing != nullptr)
      TESSERA_TRY_DONE(packer.pack(*use.packing, constant, memory + value.offset, value.bytes));
    else if (value.bytes > 0)
      std::memcpy(memory + value.offset, constant.bytes.data(),
                  static_cast<std::size_t>(value.bytes));
  }
  draft.program.weights = std::move(weights).freeze();
  draft.report.weight_bytes = bytes;
  return Done{};
}

}  // namespace tessera::program
