#include "tessera/codegen/disassemble.h"

#include <fmt/format.h>
#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>

#include <memory>
#include <type_traits>

#include "tessera/codegen/llvm/targets.h"

namespace tessera::codegen {
namespace {

void register_disassemblers() {
  register_targets();
  [[maybe_unused]] static const bool once = [] {
    LLVMInitializeAArch64Disassembler();
    LLVMInitializeX86Disassembler();
    return true;
  }();
}

struct Dispose {
  void operator()(void* disassembler) const { LLVMDisasmDispose(disassembler); }
};

}  // namespace

std::string disassemble(std::span<const std::byte> code, std::string_view architecture,
                        const std::vector<std::string>& features) {
  register_disassemblers();
  const std::string triple = fmt::format("{}-unknown-linux-gnu", architecture);
  std::string enabled;
  for (const std::string& feature : features) enabled += (enabled.empty() ? "+" : ",+") + feature;
  const std::unique_ptr<std::remove_pointer_t<LLVMDisasmContextRef>, Dispose> disassembler(
      LLVMCreateDisasmCPUFeatures(triple.c_str(), "", enabled.c_str(), nullptr, 0, nullptr,
                                  nullptr));
  if (!disassembler) return {};
  std::string text;
  auto* bytes = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(code.data()));
  for (std::size_t at = 0; at < code.size();) {
    char line[256];
    std::size_t size = LLVMDisasmInstruction(disassembler.get(), bytes + at, code.size() - at, at,
                                             line, sizeof line);
    if (size == 0) {
      fmt::format_to(std::back_inserter(text), "{:6x}  .byte 0x{:02x}\n", at, bytes[at]);
      size = 1;
    } else {
      const std::string_view instruction = line[0] == '\t' ? line + 1 : line;
      fmt::format_to(std::back_inserter(text), "{:6x}  {}\n", at, instruction);
    }
    at += size;
  }
  return text;
}

}  // namespace tessera::codegen
