#include "tessera/codegen/llvm/object.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <cstring>
#include <utility>

#include "tessera/codegen/llvm/generate.h"
#include "tessera/codegen/llvm/optimize.h"
#include "tessera/codegen/llvm/target.h"
#include "tessera/support/hash.h"

namespace tessera::codegen {
namespace {

void check_valid(const llvm::Module& module) {
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  const bool broken = llvm::verifyModule(module, &stream);
  TESSERA_CHECK(!broken, "the module {} is not valid: {}", module.getModuleIdentifier(), problem);
}

/// Object code or assembly of a module.
Expected<llvm::SmallVector<char, 0>> code_of(llvm::Module& module, const machine::Machine& machine,
                                             llvm::CodeGenFileType type) {
  TESSERA_TRY_DONE(set_target(module, machine));
  check_valid(module);
  llvm::TargetMachine& target = target_of(machine);
  optimize(module, target);
  return generate(module, target, type);
}

/// Build id of an ELF file, in hex; empty if it has none.
std::string build_id(const dl_phdr_info& file, const ElfW(Phdr) & notes) {
  const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
  const auto* note = reinterpret_cast<const char*>(file.dlpi_addr + notes.p_vaddr);
  const char* end = note + notes.p_memsz;
  ElfW(Nhdr) head;
  while (end - note >= static_cast<std::ptrdiff_t>(sizeof head)) {
    std::memcpy(&head, note, sizeof head);
    const char* content = note + sizeof head + padded(head.n_namesz);
    if (head.n_type == NT_GNU_BUILD_ID && content + head.n_descsz <= end)
      return llvm::toHex(llvm::StringRef(content, head.n_descsz), /*LowerCase=*/true);
    note = content + padded(head.n_descsz);
  }
  return "";
}

/// Identity of the program or library that contains this code: the build id, or else a hash of the
/// code.
std::string identity() {
  std::string found;
  dl_iterate_phdr(
      [](dl_phdr_info* file, std::size_t, void* result) {
        std::string id;
        std::span<const std::byte> code;
        for (const auto& segment : std::span(file->dlpi_phdr, file->dlpi_phnum)) {
          const auto* begin = reinterpret_cast<const std::byte*>(file->dlpi_addr + segment.p_vaddr);
          const auto* here = reinterpret_cast<const std::byte*>(&identity);
          if (segment.p_type == PT_NOTE && id.empty()) id = build_id(*file, segment);
          if (segment.p_type == PT_LOAD && here >= begin && here < begin + segment.p_filesz)
            code = {begin, segment.p_filesz};
        }
        if (code.empty()) return 0;
        Hasher hasher;
        if (id.empty()) hasher.add_bytes(code);
        *static_cast<std::string*>(result) =
            id.empty() ? fmt::format("{:016x}", hasher.value()) : id;
        return 1;
      },
      &found);
  return found;
}

}  // namespace

Expected<ObjectBytes> object_of(llvm::Module& module, const machine::Machine& machine) {
  TESSERA_TRY(const auto code, code_of(module, machine, llvm::CodeGenFileType::ObjectFile));
  const auto* bytes = reinterpret_cast<const std::byte*>(code.data());
  return ObjectBytes(bytes, bytes + code.size());
}

Expected<std::string> assembly_of(llvm::Module& module, const machine::Machine& machine) {
  TESSERA_TRY(const auto code, code_of(module, machine, llvm::CodeGenFileType::AssemblyFile));
  return std::string(code.data(), code.size());
}

std::string release_version() {
  return fmt::format("tessera {} llvm {}", TESSERA_VERSION, LLVM_VERSION_STRING);
}

std::string generator_version() {
  // The exact build, not only its release: a changed compiler does not reuse old code.
  static const std::string version = fmt::format("{} {}", release_version(), identity());
  return version;
}

}  // namespace tessera::codegen
