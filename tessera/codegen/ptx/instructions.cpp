#include "tessera/codegen/ptx/instructions.h"

#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Module.h>

#include <vector>

#include "tessera/support/check.h"

namespace tessera::codegen::ptx {
namespace {

constexpr int kLeadingBit = 16, kStrideBit = 32, kSwizzleBit = 62;
constexpr std::uint64_t kField = 0x3FFF;  // of 14 bits, in chunks of 16 bytes

/// Operand placeholders in inline assembly: $from, $from+1, …
std::string places(std::size_t from, std::size_t count) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < count; ++i) list.push_back(fmt::format("${}", from + i));
  return fmt::format("{{{}}}", fmt::join(list, ", "));
}

/// One call: its arguments as operands of inline assembly.
class Expansion {
 public:
  explicit Expansion(llvm::CallInst& call) : call_(call), ir_(&call) {
    const llvm::StringRef name = call.getCalledFunction()->getName();
    llvm::SmallVector<llvm::StringRef> parts;
    name.drop_front(llvm::StringRef(kSpecial).size()).split(parts, '.');
    for (const llvm::StringRef part : parts) words_.push_back(part.str());
  }

  void run() {
    if (words_[0] == "mbarrier" || words_[0] == "map") return on_barrier();
    if (words_[0] == "div") return divide();
    if (words_[0] == "grid")
      return replace(
          words_[1] == "await" ? "griddepcontrol.wait;" : "griddepcontrol.launch_dependents;", {},
          0);
    if (words_[0] == "fence") return replace("fence.proxy.async.shared::cta;", {}, 0);
    if (words_[1] == "fence") return replace("wgmma.fence.sync.aligned;", {}, 0);
    if (words_[1] == "commit") return replace("wgmma.commit_group.sync.aligned;", {}, 0);
    if (words_[1] == "pin") return replace("", {}, 0);
    if (words_[1] == "wait")
      return replace(fmt::format("wgmma.wait_group.sync.aligned {};", words_[2]), {}, 0);
    TESSERA_CHECK(words_[1] == "mma", "an instruction {}", fmt::join(words_, "."));
    multiply();
  }

 private:
  void divide() {
    llvm::Type* type = call_.getType();
    auto* signature = llvm::FunctionType::get(type, {type, type}, false);
    auto* code = llvm::InlineAsm::get(signature, "div.full.f32 $0, $1, $2;", "=f,f,f", false);
    llvm::CallInst* made =
        ir_.CreateCall(signature, code, {call_.getArgOperand(0), call_.getArgOperand(1)});
    made->setDoesNotAccessMemory();
    call_.replaceAllUsesWith(made);
    call_.eraseFromParent();
  }

  void multiply() {
    const std::string &columns = words_[2], &type = words_[3], &turned = words_[4];
    const auto sums = static_cast<unsigned>(std::stoi(columns)) / 2;
    const unsigned others = call_.arg_size() - sums;
    const bool in_registers = others > 4;
    std::vector<llvm::Value*> operands;
    if (in_registers) {
      for (unsigned i = 0; i < 4; ++i) operands.push_back(call_.getArgOperand(i));
    } else {
      operands.push_back(descriptor(0));
    }
    operands.push_back(descriptor(others - 2));
    const std::string a = in_registers ? places(sums, 4) : fmt::format("${}", sums);
    // Accumulators of 0 need no registers that hold it.
    bool adds = false;
    for (unsigned i = others; i < call_.arg_size(); ++i) {
      const auto* number = llvm::dyn_cast<llvm::ConstantFP>(call_.getArgOperand(i));
      adds = adds || number == nullptr || !number->isZero();
    }
    replace(fmt::format("{{ .reg .pred p; setp.ne.b32 p, {}, 0; "
                        "wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {}, {}, ${}, p, 1, 1, "
                        "{}{}; }}",
                        adds ? 1 : 0, columns, type, type, places(0, sums), a,
                        sums + operands.size() - 1,
                        in_registers ? "" : fmt::format("{}, ", turned[0]), turned[1]),
            operands, others, adds);
  }

  void on_barrier() {
    std::vector<llvm::Value*> operands;
    for (llvm::Value* argument : call_.args()) {
      if (argument->getType()->isPointerTy()) {
        const bool shared = argument->getType()->getPointerAddressSpace() == kShared;
        argument = ir_.CreatePtrToInt(argument, shared ? ir_.getInt32Ty() : ir_.getInt64Ty());
      }
      operands.push_back(argument);
    }
    const std::size_t rank = operands.size() - 3;  // of the position in a map
    std::string text = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;";
    if (words_[1] == "release") text = "mbarrier.arrive.shared::cta.b64 _, [$0]; bar.warp.sync 1;";
    if (words_[1] == "expect_more")
      text = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;";
    if (words_[0] == "map") {
      text = fmt::format(
          "cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[$0], [$1, {}], [$2];",
          rank, places(3, rank));
    } else if (words_[1] == "wait") {
      text =
          "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; "
          "@!done bra again; }";
    }
    replace(text, operands, call_.arg_size());
  }

  // Shared memory has fewer than 2^18 bytes, so that an address fits into its field, and the sum
  // needs 32 bits only: the upper word is a constant.
  llvm::Value* descriptor(unsigned first) {
    llvm::Type *word = ir_.getInt32Ty(), *wide = ir_.getInt64Ty();
    llvm::Value* rest = call_.getArgOperand(first + 1);
    llvm::Value* address = ir_.CreatePtrToInt(call_.getArgOperand(first), word);
    llvm::Value* low = ir_.CreateAdd(ir_.CreateLShr(address, 4), ir_.CreateTrunc(rest, word));
    return ir_.CreateOr(ir_.CreateZExt(low, wide), ir_.CreateShl(ir_.CreateLShr(rest, 32), 32));
  }

  /// Operands: `inputs`, then the arguments from `first_tied` on, which are results too, and
  /// results alone unless they are read.
  void replace(const std::string& text, std::vector<llvm::Value*> inputs, unsigned first_tied,
               bool reads_tied = true) {
    const auto letter = [](llvm::Type* type) {
      return type->isFloatTy() ? "f" : type->isIntegerTy(64) ? "l" : "r";
    };
    std::vector<std::string> constraints;
    std::vector<llvm::Type*> types;
    for (unsigned i = first_tied; i < call_.arg_size(); ++i)
      constraints.push_back(fmt::format("={}", letter(call_.getArgOperand(i)->getType())));
    for (llvm::Value* input : inputs) constraints.push_back(letter(input->getType()));
    for (unsigned i = first_tied; reads_tied && i < call_.arg_size(); ++i) {
      constraints.push_back(std::to_string(i - first_tied));
      inputs.push_back(call_.getArgOperand(i));
    }
    constraints.push_back("~{memory}");
    for (llvm::Value* input : inputs) types.push_back(input->getType());
    auto* type = llvm::FunctionType::get(call_.getType(), types, false);
    auto* code =
        llvm::InlineAsm::get(type, text, fmt::format("{}", fmt::join(constraints, ",")), true);
    llvm::CallInst* made = ir_.CreateCall(type, code, inputs);
    made->setConvergent();
    call_.replaceAllUsesWith(made);
    call_.eraseFromParent();
  }

  llvm::CallInst& call_;
  llvm::IRBuilder<> ir_;
  std::vector<std::string> words_;
};

}  // namespace

std::uint64_t WgmmaDescriptor::bits() const {
  const auto field = [](std::int64_t bytes, int bit) {
    return (static_cast<std::uint64_t>(bytes) / 16 & kField) << bit;
  };
  const std::uint64_t swizzle = panel == 128 ? 1 : panel == 64 ? 2 : 3;
  return field(offset, 0) | field(leading, kLeadingBit) | field(stride, kStrideBit) |
         swizzle << kSwizzleBit;
}

WgmmaDescriptor WgmmaDescriptor::of(std::uint64_t bits) {
  const auto bytes = [&](int bit) {
    return static_cast<std::int64_t>((bits >> bit & kField) * 16);
  };
  return {.panel = 256 >> (bits >> kSwizzleBit),
          .leading = bytes(kLeadingBit),
          .stride = bytes(kStrideBit),
          .offset = bytes(0)};
}

void expand(llvm::Module& module) {
  std::vector<llvm::Function*> functions;
  for (llvm::Function& function : module)
    if (function.getName().starts_with(kSpecial)) functions.push_back(&function);
  for (llvm::Function* function : functions) {
    std::vector<llvm::CallInst*> calls;
    for (llvm::User* user : function->users()) calls.push_back(llvm::cast<llvm::CallInst>(user));
    for (llvm::CallInst* call : calls) Expansion(*call).run();
    function->eraseFromParent();
  }
}

}  // namespace tessera::codegen::ptx
