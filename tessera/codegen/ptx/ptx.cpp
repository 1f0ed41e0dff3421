#include "tessera/codegen/ptx/ptx.h"

#include <fmt/format.h>
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
#include "tessera/codegen/ptx/depth_first.h"
#include "tessera/codegen/ptx/emitter.h"
#include "tessera/codegen/ptx/instructions.h"
#include "tessera/tile/argument.h"
#include "tessera/tile/gpu/plan.h"
#include "tessera/tile/gpu/roles.h"
#include "tessera/tile/gpu/rows.h"
#include "tessera/tile/passes/coarsen.h"
#include "tessera/tile/passes/recover.h"
#include "tessera/tile/passes/simplify.h"
#include "tessera/tile/verify.h"

namespace tessera::codegen {
namespace {

constexpr const char* kTriple = "nvptx64-nvidia-cuda";
constexpr int kMostStages = 8, kLeastWithRoles = 3;
constexpr int kMostWithRoles = 256;  // threads of a program: more leave too few registers to each
constexpr int kWarp = 32, kProgramsOfABlock = 4;

struct Generation {
  const char* name;
  std::int64_t shared_bytes;  // of a block, when asked for
};
Generation generation(PtxTarget target) {
  switch (target) {
    case PtxTarget::Sm80: return {"sm_80", 99 << 10};  // what 8.6 and 8.9 have too
    case PtxTarget::Sm90a: break;
  }
  return {"sm_90a", 227 << 10};
}

llvm::TargetMachine& target_of(PtxTarget of) {
  // A TargetMachine serves one thread at a time.
  thread_local std::map<PtxTarget, std::unique_ptr<llvm::TargetMachine>> machines;
  std::unique_ptr<llvm::TargetMachine>& machine = machines[of];
  if (machine == nullptr) {
    machine.reset(target_named(kTriple).createTargetMachine(kTriple, generation(of).name, "+ptx83",
                                                            {}, llvm::Reloc::PIC_));
  }
  return *machine;
}

/// How many blocks a multiprocessor takes at once where each thread has so many registers. Each of
/// its schedulers has a share of them, for whole warps.
int blocks_with(int threads, int registers) {
  constexpr int kSchedulers = 4;
  const int warps = tile::gpu::kRegistersOfAMultiprocessor / kSchedulers / (kWarp * registers);
  return std::max(1, warps * kSchedulers * kWarp / threads);
}

/// PTX takes fewer characters in a name than a kernel may have.
std::string entry_name(const std::string& name) {
  std::string entry = "tessera_";
  for (const char c : name) entry += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return entry;
}

/// The last parameters are maps, which the GPU reads where they are.
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

}  // namespace

std::string key_of(const PtxOptions& o) {
  return fmt::format(
      "ptx {} precision {} tf32 {} stages {} to {} loops {} roles {} maps {} "
      "bytes {} ahead {} together {} registers {}",
      static_cast<int>(o.target), static_cast<int>(o.precision), o.tf32, o.stages, o.more_stages,
      o.loops, o.roles, o.maps, o.bytes_per_thread, o.rows_ahead, o.together, o.registers);
}

Expected<PtxModule> ptx_module_of(const tile::Kernel& given, llvm::LLVMContext& context,
                                  const PtxOptions& options) {
  TESSERA_TRY_DONE(tile::verify(given));
  tile::Kernel kernel = tile::simplify(tile::recover(tile::simplify(given)));
  tile::gpu::Rows rows = tile::gpu::rows_of(kernel);
  if (options.together > 0) rows.together = options.together;
  if (options.registers > 0) rows.registers = options.registers;
  if (options.bytes_per_thread > 0) rows.bytes_per_thread = options.bytes_per_thread;
  if (options.rows_ahead >= 0 && rows.any) {
    rows.loops = options.rows_ahead > 0;
    rows.ahead = std::max(1, options.rows_ahead);
  }
  if (rows.together > 1) {
    if (const auto coarse = rows.any ? tile::coarsen(kernel, rows.together) : std::nullopt) {
      kernel = tile::simplify(*coarse);
    } else {
      rows.together = 1;
    }
  }
  if (rows.any) tile::gpu::gather_reductions(kernel);
  TESSERA_TRY(const tile::gpu::Plan plan,
              tile::gpu::Plan::make(kernel, {.warpgroups = options.target == PtxTarget::Sm90a,
                                             .tf32 = options.tf32,
                                             .bytes_per_thread = rows.bytes_per_thread,
                                             .together = rows.together > 1}));
  const tile::gpu::Planned planned(kernel, plan);
  const std::int64_t most_shared = generation(options.target).shared_bytes;
  PtxModule result;
  result.kernel = {.text = {},
                   .entry = entry_name(kernel.name),
                   .threads = plan.threads(),
                   .words = tile::word_positions(kernel).back(),
                   .shared_bytes = 0};
  // A program of one warp shares a block with others, if its threads exchange nothing through
  // shared memory: barriers are the block's.
  // One that has rows of several programs has enough to do.
  const bool small = plan.threads() == kWarp && rows.together < kProgramsOfABlock;
  ptx::Emitter::Shape shape{.programs = small ? kProgramsOfABlock : 1,
                            .together = rows.together,
                            .loops = options.loops && rows.loops,
                            .ahead = rows.ahead,
                            .rows = rows.any,
                            .roles = options.loops && options.roles && plan.any_warpgroups() &&
                                     plan.threads() <= kMostWithRoles};
  const int computing = plan.threads() * tile::gpu::teams_of(plan.threads()).count;
  // Fewer copies in flight where shared memory is short of room for them.
  const int most_stages = std::min(std::max(options.stages, options.more_stages), kMostStages);
  int stages = most_stages;
  for (;;) {
    result.module = std::make_unique<llvm::Module>(kernel.name, context);
    llvm::Module& module = *result.module;
    module.setTargetTriple(kTriple);
    module.setDataLayout(target_of(options.target).createDataLayout());
    std::vector<llvm::Type*> words(static_cast<std::size_t>(result.kernel.words + shape.words()),
                                   llvm::Type::getInt64Ty(context));
    words.resize(words.size() + static_cast<std::size_t>(shape.maps),
                 llvm::PointerType::get(context, 0));
    auto* function = llvm::Function::Create(
        llvm::FunctionType::get(llvm::Type::getVoidTy(context), words, false),
        llvm::GlobalValue::ExternalLinkage, result.kernel.entry, module);
    llvm::NamedMDNode* annotations = module.getOrInsertNamedMetadata("nvvm.annotations");
    const auto annotate = [&](const char* name, int value) {
      llvm::Type* type = llvm::Type::getInt32Ty(context);
      annotations->addOperand(llvm::MDNode::get(
          context, {llvm::ValueAsMetadata::get(function), llvm::MDString::get(context, name),
                    llvm::ConstantAsMetadata::get(
                        llvm::ConstantInt::get(type, static_cast<std::uint64_t>(value)))}));
    };
    annotate("kernel", 1);
    if (shape.maps > 0) declare_maps(*function, shape.maps, *annotations);
    const int threads =
        shape.roles ? computing + tile::gpu::kCopyThreads : plan.threads() * shape.programs;
    annotate("maxntidx", threads);
    if (shape.roles) annotate("minctasm", 1);
    if (rows.registers > 0)
      annotate("minctasm", blocks_with(plan.threads() * shape.programs, rows.registers));

    ptx::Emitter emitter(planned, options, *function, shape);
    TESSERA_TRY_DONE(emitter.emit(stages));
    const bool has_more = stages > options.stages;
    const std::int64_t room = has_more ? most_shared / 2 : most_shared;
    const bool short_of_memory = emitter.shared_bytes() > room;
    if (shape.roles && (!emitter.has_roles() || (short_of_memory && stages <= kLeastWithRoles))) {
      shape.roles = false;
      shape.maps = 0;
      stages = most_stages;
      continue;
    }
    if (emitter.own_bytes() != shape.own_bytes && shape.roles) {
      shape.own_bytes = emitter.own_bytes();
      continue;
    }
    if (const auto wanted = static_cast<int>(emitter.maps().size()); wanted != shape.maps) {
      shape.maps = wanted;
      continue;
    }
    if (shape.programs > 1 && emitter.shares_memory()) {
      shape.programs = 1;
      continue;
    }
    if (shape.loops && short_of_memory) {
      shape.loops = false;
      continue;
    }
    result.kernel.programs = shape.programs * shape.together;
    result.kernel.loops = shape.loops || shape.roles;
    result.kernel.threads = threads;
    result.kernel.maps = emitter.maps();
    result.kernel.shared_bytes = static_cast<int>(emitter.shared_bytes());
    if (!short_of_memory) break;
    if (stages == 0 || !emitter.copies_ahead()) {
      return Diagnostic{.id = "ptx-shared-memory",
                        .where = {.file = {}, .item = kernel.name},
                        .message = fmt::format("a program needs {} bytes of shared memory",
                                               emitter.shared_bytes()),
                        .note = fmt::format("a block has {}", most_shared),
                        .help = "cut the tiles into smaller ones"};
    }
    const auto fitting = static_cast<int>(stages * room / emitter.shared_bytes());
    stages = has_more ? std::max(options.stages, fitting) : stages > 2 ? stages - 1 : 0;
  }
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  TESSERA_CHECK(!llvm::verifyModule(*result.module, &stream), "{}: {}", kernel.name, problem);
  return result;
}

Expected<PtxKernel> ptx_of(const tile::Kernel& kernel, const PtxOptions& options) {
  llvm::LLVMContext context;
  TESSERA_TRY(PtxModule made, ptx_module_of(kernel, context, options));
  ptx::expand(*made.module);
  llvm::TargetMachine& target = target_of(options.target);
  optimize(*made.module, target);
  ptx::depth_first(*made.module);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (target.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return Diagnostic{.id = "ptx-unsupported", .message = "LLVM cannot write PTX"};
  passes.run(*made.module);
  made.kernel.text = text.str().str();
  return std::move(made.kernel);
}

}  // namespace tessera::codegen
