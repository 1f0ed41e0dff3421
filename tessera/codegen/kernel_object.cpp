#include "tessera/codegen/kernel_object.h"

#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "tessera/codegen/llvm/emit.h"
#include "tessera/runtime/launch.h"
#include "tessera/tile/cpu/nest.h"
#include "tessera/tile/cpu/prepare.h"
#include "tessera/tile/fingerprint.h"

namespace tessera::codegen {

Diagnostic too_large(const tile::Kernel& kernel, std::int64_t bytes) {
  return Diagnostic{.id = "tile-memory",
                    .where = {.item = kernel.name},
                    .message = fmt::format("{} bytes of tiles", bytes),
                    .note = "a thread keeps tiles that are not computed where they are used",
                    .help = "use smaller tiles"};
}

Expected<std::unique_ptr<llvm::Module>> module_of(const tile::Kernel& kernel,
                                                  const ObjectTarget& target,
                                                  llvm::LLVMContext& context) {
  const bool checked = target.options.checked;
  const tile::cpu::ScheduledKernel scheduled =
      tile::cpu::schedule(tile::cpu::prepare(kernel, checked), target.machine,
                          {.overlap = target.overlap, .scalar = checked});
  if (scheduled.buffer_bytes > runtime::kMostScratch)
    return too_large(kernel, scheduled.buffer_bytes);
  return emit(scheduled, target.machine,
              {.precision = target.options.precision,
               .checked = checked,
               .assertions = checked || target.options.assertions,
               .overlap = target.overlap},
              context);
}

std::string object_key(const tile::Kernel& kernel, const ObjectTarget& target) {
  const machine::Machine& m = target.machine;
  return fmt::format(
      "{}\n{} {} {}\ncaches {} {} {} {} vectors {} {}\nprecision {} checked {} assertions {} "
      "overlap {}\n{}",
      generator_version(), to_string(m.architecture), m.cpu, machine::llvm_features(m), m.l1d, m.l2,
      m.l3, m.cache_line, m.vector_bytes, m.vector_registers,
      static_cast<int>(target.options.precision), target.options.checked, target.options.assertions,
      target.overlap, tile::fingerprint(kernel));
}

Expected<KernelObject> object_of(const tile::Kernel& kernel, const ObjectTarget& target,
                                 const std::string& key, const runtime::ObjectCache* cache) {
  if (cache != nullptr) {
    if (auto found = cache->find(key)) return KernelObject{*std::move(found), true};
  }
  llvm::LLVMContext context;
  TESSERA_TRY(const auto module, module_of(kernel, target, context));
  TESSERA_TRY(ObjectBytes object, object_of(*module, target.machine));
  if (cache != nullptr) cache->store(key, object);
  return KernelObject{std::move(object), false};
}

}  // namespace tessera::codegen
