#include "tessera/codegen/compile.h"

#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <optional>

#include "tessera/codegen/kernel_object.h"
#include "tessera/codegen/llvm/emit.h"
#include "tessera/runtime/launch.h"
#include "tessera/tile/cpu/nest.h"
#include "tessera/tile/cpu/prepare.h"
#include "tessera/tile/text.h"
#include "tessera/tile/verify.h"

namespace tessera::codegen {
namespace {

using runtime::kGridWords;

struct Variant {
  std::shared_ptr<const LoadedObject> image;
  runtime::KernelEntry entry = nullptr;
  std::int64_t scratch_bytes = 0;
  bool from_cache = false;
};

const machine::Machine& host() {
  static const machine::Machine machine = machine::host();
  return machine;
}

Expected<Variant> build(const tile::Kernel& kernel, const Options& options, bool overlap) {
  Variant variant;
  const ObjectTarget target{.machine = host(), .options = options, .overlap = overlap};
  TESSERA_TRY(const std::optional<runtime::ObjectCache> cache,
              runtime::ObjectCache::open_unless_empty(options.cache));
  const std::string key = cache ? object_key(kernel, target) : std::string();
  TESSERA_TRY(const KernelObject object, object_of(kernel, target, key, cache ? &*cache : nullptr));
  variant.from_cache = object.from_cache;
  TESSERA_TRY(variant.image, LoadedObject::load(object.bytes));
  variant.entry = reinterpret_cast<runtime::KernelEntry>(variant.image->address(kEntrySymbol));
  variant.scratch_bytes = *static_cast<const std::int64_t*>(variant.image->address(kScratchSymbol));
  return variant;
}

struct Range {
  const std::byte* first;
  const std::byte* last;
};
Range range_of(const tile::Argument& argument) {
  return {argument.data, argument.data + argument.bytes};
}

class Compiled final : public CompiledKernel {
 public:
  Compiled(tile::Kernel kernel, Options options, Variant variant)
      : kernel_(std::move(kernel)),
        options_(std::move(options)),
        variant_(std::move(variant)),
        work_(tile::cpu::work_of(kernel_)),
        written_(kernel_.params().size(), false) {
    const auto definition = tile::definitions(kernel_);
    tile::for_each_op(kernel_, kernel_.body, [&](tile::OpId id) {
      const tile::Operation& op = kernel_.ops[id];
      if (!tile::writes_memory(op.code)) return;
      const auto param = tile::cpu::parameter_of(kernel_, definition, op.in[0]);
      for (std::size_t i = 0; i < written_.size(); ++i) {
        if (!param || *param == kernel_.params()[i]) written_[i] = true;
      }
    });
  }

  const tile::Kernel& kernel() const override { return kernel_; }
  bool from_cache() const override { return variant_.from_cache; }
  std::int64_t scratch_bytes() const override { return variant_.scratch_bytes; }

  Expected<Done> launch(std::span<const tile::Argument> arguments, const tile::Grid& grid,
                        int threads) const override {
    TESSERA_TRY_DONE(tile::check_arguments(kernel_, arguments, grid));
    const Variant* variant = &variant_;
    if (share_memory(arguments)) {
      TESSERA_TRY(variant, overlapping());
    }
    std::array<std::uint64_t, 64> few{};
    std::vector<std::uint64_t> many;
    std::vector<std::uint64_t> words = tile::words_of(arguments);
    if (options_.checked) {
      for (const tile::Argument& argument : arguments) {
        const auto first = reinterpret_cast<std::uintptr_t>(argument.data);
        words.push_back(first);
        words.push_back(first + static_cast<std::uintptr_t>(argument.bytes));
      }
    }
    int failed = 0;
    try {
      failed = start(*variant, with_grid(words, grid, few, many), grid, threads);
    } catch (const std::bad_alloc&) {
      return too_large(kernel_, variant->scratch_bytes);
    }
    if (failed == 0) return Done{};
    const tile::Kernel prepared = tile::cpu::prepare(kernel_, options_.checked);
    const tile::Operation& op = prepared.ops[static_cast<std::size_t>(failed - 1)];
    const bool is_assertion = op.code == tile::Code::Assert;
    return Diagnostic{
        .id = is_assertion ? "tile-assertion" : "tile-out-of-bounds",
        .where = {.file = op.source.file.empty() ? kernel_.name : op.source.file,
                  .item = op.source.line > 0 ? fmt::format("line {}", op.source.line) : ""},
        .message = is_assertion ? fmt::format("the assertion does not hold: {}", op.text)
                                : fmt::format("{} of kernel {} leaves the memory of the arguments",
                                              to_string(op.code), kernel_.name)};
  }

  void run(std::span<const std::uint64_t> words, const tile::Grid& grid,
           int threads) const override {
    std::array<std::uint64_t, 64> few;
    std::vector<std::uint64_t> many;
    start(variant_, with_grid(words, grid, few, many), grid, threads);
  }

 private:
  /// Grid and words in one buffer: on the stack, if there are few.
  static const std::uint64_t* with_grid(std::span<const std::uint64_t> words,
                                        const tile::Grid& grid, std::array<std::uint64_t, 64>& few,
                                        std::vector<std::uint64_t>& many) {
    std::uint64_t* at = few.data();
    if (words.size() + kGridWords > few.size()) {
      many.resize(words.size() + kGridWords);
      at = many.data();
    }
    std::copy(grid.begin(), grid.end(), at);
    std::copy(words.begin(), words.end(), at + kGridWords);
    return at;
  }

  int start(const Variant& variant, const std::uint64_t* context, const tile::Grid& grid,
            int threads) const {
    const std::int64_t programs = grid[0] * grid[1] * grid[2];
    return runtime::run_kernel({.entry = variant.entry,
                                .launch = context,
                                .programs = programs,
                                .scratch_bytes = variant.scratch_bytes,
                                .work = work_ * static_cast<double>(programs)},
                               threads);
  }

  bool share_memory(std::span<const tile::Argument> arguments) const {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!written_[i]) continue;
      const Range a = range_of(arguments[i]);
      for (std::size_t j = 0; j < arguments.size(); ++j) {
        const Range b = range_of(arguments[j]);
        if (i != j && a.first < b.last && b.first < a.last) return true;
      }
    }
    return false;
  }

  Expected<const Variant*> overlapping() const {
    const std::lock_guard lock(mutex_);
    if (!overlapping_) {
      TESSERA_TRY(Variant variant, build(kernel_, options_, true));
      overlapping_ = std::make_unique<Variant>(std::move(variant));
    }
    return overlapping_.get();
  }

  tile::Kernel kernel_;
  Options options_;
  Variant variant_;
  double work_;
  std::vector<bool> written_;  // by parameter
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Variant> overlapping_;  // compiled on first use
};

}  // namespace

Expected<std::shared_ptr<const CompiledKernel>> compile(const tile::Kernel& kernel,
                                                        const Options& options) {
  TESSERA_TRY_DONE(tile::verify(kernel));
  TESSERA_TRY(Variant variant, build(kernel, options, false));
  return std::shared_ptr<const CompiledKernel>(
      std::make_shared<const Compiled>(kernel, options, std::move(variant)));
}

Expected<std::string> form_of(const tile::Kernel& kernel, Form form,
                              const machine::Machine& machine, const Options& options) {
  TESSERA_TRY_DONE(tile::verify(kernel));
  if (form == Form::T) return tile::to_text(tile::cpu::prepare(kernel, options.checked));
  if (form == Form::S) {
    return tile::cpu::to_text(tile::cpu::schedule(tile::cpu::prepare(kernel, options.checked),
                                                  machine, {.scalar = options.checked}));
  }
  llvm::LLVMContext context;
  TESSERA_TRY(const auto module, module_of(kernel, {machine, options}, context));
  TESSERA_TRY_DONE(set_target(*module, machine));
  if (form == Form::Assembly) return assembly_of(*module, machine);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, nullptr);
  return stream.str();
}

}  // namespace tessera::codegen
