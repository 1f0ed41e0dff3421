#include "tessera/codegen/ptx/ptx.h"

#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "tessera/codegen/llvm/optimize.h"
#include "tessera/codegen/llvm/targets.h"
#include "tessera/codegen/ptx/block_writer.h"
#include "tessera/codegen/ptx/depth_first.h"
#include "tessera/codegen/ptx/instructions.h"
#include "tessera/machine/machine.h"
#include "tessera/tile/argument.h"
#include "tessera/tile/gpu/schedule.h"
#include "tessera/tile/verify.h"

namespace tessera::codegen {
namespace {

constexpr const char* kTriple = "nvptx64-nvidia-cuda";

struct Generation {
  const char* name;
  std::int64_t shared_bytes;  // opt-in maximum per block
};
Generation generation(PtxTarget target) {
  const char* const name = target == PtxTarget::Sm80 ? "sm_80" : "sm_90a";
  return {name, machine::shared_bytes_of_block(name)};
}

llvm::TargetMachine& target_of(PtxTarget of) {
  // A TargetMachine is not thread-safe.
  thread_local std::map<PtxTarget, std::unique_ptr<llvm::TargetMachine>> machines;
  std::unique_ptr<llvm::TargetMachine>& machine = machines[of];
  if (machine == nullptr) {
    machine.reset(target_named(kTriple).createTargetMachine(kTriple, generation(of).name, "+ptx83",
                                                            {}, llvm::Reloc::PIC_));
  }
  return *machine;
}

/// Occupancy: number of blocks per SM for a number of registers per thread. Each of its schedulers
/// has a share of the registers, for whole warps.
int blocks_with(int threads, int registers) {
  constexpr int kSchedulers = 4, kWarp = 32, kMostBlocks = 32;
  const int warps = tile::gpu::kRegistersOfAMultiprocessor / kSchedulers / (kWarp * registers);
  return std::clamp(warps * kSchedulers * kWarp / threads, 1, kMostBlocks);
}

/// PTX allows fewer characters in a name than a kernel.
std::string entry_name(const std::string& name) {
  std::string entry = "tessera_";
  for (const char c : name) entry += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return entry;
}

/// Declares the tensor maps, the last parameters, which the GPU reads in place.
void declare_maps(llvm::Function& function, int count, llvm::NamedMDNode& annotations) {
  llvm::LLVMContext& context = function.getContext();
  auto* bytes =
      llvm::ArrayType::get(llvm::Type::getInt8Ty(context), sizeof(runtime::cuda::EncodedMap));
  std::vector<llvm::Metadata*> numbers;  // of parameters, from 1 on
  const auto end = static_cast<unsigned>(function.arg_size());
  for (unsigned i = end - static_cast<unsigned>(count); i < end; ++i) {
    function.addParamAttr(i, llvm::Attribute::getWithByValType(context, bytes));
    function.addParamAttr(i, llvm::Attribute::getWithAlignment(
                                 context, llvm::Align(alignof(runtime::cuda::EncodedMap))));
    numbers.push_back(llvm::ConstantAsMetadata::get(
        llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), i + 1)));
  }
  annotations.addOperand(llvm::MDNode::get(context, {llvm::ValueAsMetadata::get(&function),
                                                     llvm::MDString::get(context, "grid_constant"),
                                                     llvm::MDNode::get(context, numbers)}));
}

/// Declares the function: its parameters, and its number of threads.
llvm::Function& declared(llvm::Module& module, const tile::gpu::ScheduledKernel& scheduled) {
  llvm::LLVMContext& context = module.getContext();
  const tile::gpu::BlockMapping& mapping = scheduled.mapping;
  const int words = tile::word_positions(scheduled.kernel).back() + mapping.words();
  std::vector<llvm::Type*> types(static_cast<std::size_t>(words), llvm::Type::getInt64Ty(context));
  types.resize(types.size() + static_cast<std::size_t>(mapping.maps),
               llvm::PointerType::get(context, 0));
  auto* function = llvm::Function::Create(
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false),
      llvm::GlobalValue::ExternalLinkage, entry_name(scheduled.kernel.name), module);
  llvm::NamedMDNode* annotations = module.getOrInsertNamedMetadata("nvvm.annotations");
  const auto annotate = [&](const char* name, int value) {
    llvm::Type* type = llvm::Type::getInt32Ty(context);
    annotations->addOperand(llvm::MDNode::get(
        context, {llvm::ValueAsMetadata::get(function), llvm::MDString::get(context, name),
                  llvm::ConstantAsMetadata::get(
                      llvm::ConstantInt::get(type, static_cast<std::uint64_t>(value)))}));
  };
  annotate("kernel", 1);
  if (mapping.maps > 0) declare_maps(*function, mapping.maps, *annotations);
  annotate("maxntidx", scheduled.threads());
  // For a large block that spills, ptxas would choose very few registers, unless it is told that
  // one block on an SM is enough.
  constexpr int kLargeBlock = 512;
  if (scheduled.registers > 0) {
    annotate("minctasm", blocks_with(scheduled.threads(), scheduled.registers));
  } else if (mapping.warp_specialized || scheduled.threads() >= kLargeBlock) {
    annotate("minctasm", 1);
  }
  return *function;
}

tile::gpu::Options schedule_options(const PtxOptions& options) {
  const bool shares = !options.triton_abi;
  return {.wgmma = options.target == PtxTarget::Sm90a,
          .tf32 = options.tf32,
          .fast_precision = options.precision == Precision::Fast,
          .shared_bytes = generation(options.target).shared_bytes,
          .stages = options.stages,
          .more_stages = options.more_stages,
          .persistent = options.persistent && shares,
          .block_per_program = !shares,
          .threads = options.threads,
          .warp_specialization = options.warp_specialization,
          .maps = options.maps && shares,
          .programmatic_launch = options.programmatic_launch && shares,
          .constants = options.constants,
          .bytes_per_thread = options.bytes_per_thread,
          .prefetched_rows = options.prefetched_rows,
          .coarsening = shares ? options.coarsening : 1,
          .registers = options.registers,
          .packed = options.packed,
          .part = options.part,
          .cached_bytes = options.cached_bytes};
}

/// Replaces the words that are the parameters of the kernel by those of Triton's launcher, and
/// states their divisors: checks of alignment then are constants.
void give_triton_parameters(llvm::Module& module, const tile::Kernel& kernel,
                            const std::vector<std::int64_t>& divisors) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* word = llvm::Type::getInt64Ty(context);
  llvm::Function* old = module.getFunction(entry_name(kernel.name));
  std::vector<llvm::Type*> types;
  for (const tile::ValueId id : kernel.params()) {
    const tile::Type& type = kernel.type(id);
    const auto bits = static_cast<unsigned>(8 * byte_width(type.dtype));
    types.push_back(type.is_pointer() ? word : llvm::Type::getIntNTy(context, bits));
  }
  TESSERA_CHECK(old->arg_size() == types.size(), "{} has parameters of its own", kernel.name);
  types.insert(types.end(), 2, word);
  auto* entry =
      llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false),
                             old->getLinkage(), "", module);
  entry->takeName(old);
  entry->copyAttributesFrom(old);
  entry->splice(entry->end(), old);
  llvm::BasicBlock& first = entry->getEntryBlock();
  llvm::IRBuilder<> ir(&first, first.getFirstInsertionPt());
  for (llvm::Argument& argument : old->args()) {
    const unsigned number = argument.getArgNo();
    llvm::Value* passed = ir.CreateZExt(entry->getArg(number), word);
    argument.replaceAllUsesWith(passed);
    if (number >= divisors.size() || divisors[number] == 1) continue;
    const auto mask = static_cast<std::uint64_t>(divisors[number] - 1);
    ir.CreateAssumption(ir.CreateIsNull(ir.CreateAnd(passed, ir.getInt64(mask))));
  }
  // Annotations of the kernel, such as its number of threads, move to the new function.
  old->replaceAllUsesWith(entry);
  llvm::ValueAsMetadata::handleRAUW(old, entry);
  old->eraseFromParent();
}

}  // namespace

std::string key_of(const PtxOptions& o) {
  return fmt::format(
      "ptx {} precision {} tf32 {} stages {} to {} loops {} roles {} maps {} "
      "bytes {} ahead {} together {} registers {} packed {} part {} keep {} triton {} threads {} "
      "align {} divisors {} dependent {} constants {}",
      static_cast<int>(o.target), static_cast<int>(o.precision), o.tf32, o.stages, o.more_stages,
      o.persistent, o.warp_specialization, o.maps, o.bytes_per_thread, o.prefetched_rows,
      o.coarsening, o.registers, o.packed, o.part, o.cached_bytes, o.triton_abi, o.threads,
      o.alignment, fmt::join(o.divisors, " "), o.programmatic_launch, fmt::join(o.constants, " "));
}

Expected<std::unique_ptr<tile::gpu::ScheduledKernel>> schedule_for_ptx(const tile::Kernel& kernel,
                                                                       const PtxOptions& options) {
  TESSERA_TRY_DONE(tile::verify(kernel));
  return tile::gpu::schedule(kernel, schedule_options(options));
}

Expected<PtxModule> ptx_module_of(const tile::Kernel& given, llvm::LLVMContext& context,
                                  const PtxOptions& options) {
  TESSERA_TRY(const auto scheduled, schedule_for_ptx(given, options));
  PtxModule result{.module = std::make_unique<llvm::Module>(scheduled->kernel.name, context),
                   .kernel = {},
                   .side_by_side = scheduled->mapping.programs};
  result.module->setTargetTriple(kTriple);
  result.module->setDataLayout(target_of(options.target).createDataLayout());
  ptx::BlockWriter(*scheduled, options, declared(*result.module, *scheduled)).write();
  const tile::gpu::BlockMapping& mapping = scheduled->mapping;
  result.kernel = {.text = {},
                   .entry = entry_name(scheduled->kernel.name),
                   .threads = scheduled->threads(),
                   .words = tile::word_positions(scheduled->kernel).back(),
                   .shared_bytes = static_cast<int>(scheduled->program.shared.bytes),
                   .programs = mapping.programs * mapping.coarsening,
                   .persistent = mapping.persistent || mapping.warp_specialized,
                   .maps = scheduled->maps(),
                   .is_whole = mapping.tile_pipelines};
  std::string problem;
  llvm::raw_string_ostream buffer(problem);
  TESSERA_CHECK(!llvm::verifyModule(*result.module, &buffer), "{}: {}", given.name, problem);
  return result;
}

Expected<PtxKernel> ptx_of(const tile::Kernel& kernel, const PtxOptions& options) {
  llvm::LLVMContext context;
  TESSERA_TRY(PtxModule made, ptx_module_of(kernel, context, options));
  if (options.triton_abi) give_triton_parameters(*made.module, kernel, options.divisors);
  ptx::expand(*made.module);
  llvm::TargetMachine& target = target_of(options.target);
  optimize(*made.module, target);
  ptx::depth_first(*made.module);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream buffer(text);
  llvm::legacy::PassManager passes;
  if (target.addPassesToEmitFile(passes, buffer, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return Diagnostic{.id = "ptx-unsupported", .message = "LLVM cannot write PTX"};
  passes.run(*made.module);
  made.kernel.text = text.str().str();
  return std::move(made.kernel);
}

}  // namespace tessera::codegen
