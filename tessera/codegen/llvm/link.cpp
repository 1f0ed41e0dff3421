#include "tessera/codegen/llvm/link.h"

#include <fmt/format.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/Endian.h>

#include <algorithm>
#include <map>

#include "tessera/codegen/llvm/emit.h"
#include "tessera/codegen/llvm/relocate.h"

namespace tessera::codegen {
namespace {

namespace elf = llvm::ELF;
using llvm::object::ELFSectionRef;
using llvm::object::ELFSymbolRef;
using llvm::object::SectionRef;

/// Alignment of kernels: a cache line, so that the speed of a kernel does not depend on those
/// before it.
constexpr std::uint64_t kLeastAlignment = 64;
constexpr std::uint64_t kPage = 4096;

Diagnostic cannot_link(std::string why) {
  return {.id = "object-unlinkable",
          .message = std::move(why),
          .note = "an image has code and constants, and needs nothing from outside"};
}

/// A symbol that no object defines: LLVM calls a library where a CPU has no instruction.
Diagnostic undefined(const std::string& symbol) {
  Diagnostic why = cannot_link(fmt::format("{} is not defined", symbol));
  why.help =
      "compile for a CPU that has such an instruction: on x86-64, one with SSE4.1, FMA and "
      "F16C (x86-64-v3); `--engine reference` runs a model without machine code";
  return why;
}

Diagnostic cannot_link(llvm::Error error) {
  return cannot_link(llvm::toString(std::move(error)));
}

/// One object, and the image offsets of its sections.
class Placed {
 public:
  explicit Placed(std::unique_ptr<llvm::object::ObjectFile> file) : file_(std::move(file)) {}

  static Expected<Placed> read(std::span<const std::byte> object,
                               machine::Architecture architecture) {
    const llvm::MemoryBufferRef buffer(
        {reinterpret_cast<const char*>(object.data()), object.size()}, "kernel");
    auto file = llvm::object::ObjectFile::createELFObjectFile(buffer);
    if (!file) return cannot_link(file.takeError());
    const auto expected = architecture == machine::Architecture::AArch64 ? llvm::Triple::aarch64
                                                                         : llvm::Triple::x86_64;
    if ((*file)->getArch() != expected || !(*file)->isRelocatableObject())
      return cannot_link(fmt::format("this is no object for {}", to_string(architecture)));
    return Placed(std::move(*file));
  }

  /// Appends code and constants to the image.
  Expected<Done> append_to(std::vector<std::byte>& image) {
    for (const ELFSectionRef section : file_->sections()) {
      if ((section.getFlags() & elf::SHF_ALLOC) == 0 || section.getSize() == 0) continue;
      auto name = section.getName();
      if (!name) return cannot_link(name.takeError());
      // Tables for debuggers and exceptions, which kernels do not throw.
      if (*name == ".eh_frame" || section.getType() == elf::SHT_NOTE) continue;
      const std::uint64_t alignment = std::max(section.getAlignment().value(), kLeastAlignment);
      if (section.getType() != elf::SHT_PROGBITS || (section.getFlags() & elf::SHF_WRITE) != 0 ||
          alignment > kPage)
        return cannot_link(
            fmt::format("the section {} is neither code nor constants", name->str()));
      auto content = section.getContents();
      if (!content) return cannot_link(content.takeError());
      image.resize((image.size() + alignment - 1) / alignment * alignment);
      offsets_[section.getIndex()] = static_cast<std::int64_t>(image.size());
      const auto* first = reinterpret_cast<const std::byte*>(content->data());
      image.insert(image.end(), first, first + content->size());
    }
    return Done{};
  }

  /// Image offset of a symbol of this object.
  Expected<std::int64_t> offset_of(const ELFSymbolRef& symbol) const {
    auto name = symbol.getName();
    auto section = symbol.getSection();
    auto value = symbol.getValue();
    if (!name || !section || !value) {
      return cannot_link(llvm::joinErrors(llvm::joinErrors(name.takeError(), section.takeError()),
                                          value.takeError()));
    }
    if (*section == file_->section_end()) return undefined(name->str());
    const auto found = offsets_.find((*section)->getIndex());
    if (found == offsets_.end())
      return cannot_link(fmt::format("{} is not in the image", name->str()));
    return found->second + static_cast<std::int64_t>(*value);
  }

  Expected<std::int64_t> offset_of(llvm::StringRef symbol) const {
    for (const ELFSymbolRef candidate : file_->symbols()) {
      auto name = candidate.getName();
      if (!name) return cannot_link(name.takeError());
      if (*name == symbol) return offset_of(candidate);
    }
    return cannot_link(fmt::format("the object has no {}", symbol.str()));
  }

  /// Applies the relocations of the sections.
  Expected<Done> relocate(std::vector<std::byte>& image) const {
    for (const SectionRef& table : file_->sections()) {
      auto of = table.getRelocatedSection();
      if (!of) return cannot_link(of.takeError());
      if (*of == file_->section_end()) continue;
      const auto section = offsets_.find((*of)->getIndex());
      if (section == offsets_.end()) continue;
      for (const llvm::object::ELFRelocationRef relocation : table.relocations()) {
        if (relocation.getSymbol() == file_->symbol_end())
          return cannot_link("a relocation without a symbol");
        TESSERA_TRY(const std::int64_t symbol, offset_of(ELFSymbolRef(*relocation.getSymbol())));
        auto addend = relocation.getAddend();
        if (!addend) return cannot_link(addend.takeError());
        const std::int64_t place =
            section->second + static_cast<std::int64_t>(relocation.getOffset());
        if (!codegen::relocate(image, {.architecture = file_->getArch(),
                                       .type = static_cast<std::uint32_t>(relocation.getType()),
                                       .place = place,
                                       .target = symbol + *addend})) {
          llvm::SmallString<32> type;
          relocation.getTypeName(type);
          return cannot_link(fmt::format("{} cannot be resolved in the image", type.str().str()));
        }
      }
    }
    return Done{};
  }

 private:
  std::unique_ptr<llvm::object::ObjectFile> file_;
  std::map<std::uint64_t, std::int64_t> offsets_;  // in the image, by section number
};

}  // namespace

Expected<Image> link(std::span<const ObjectBytes> objects, machine::Architecture architecture) {
  Image image;
  std::vector<std::byte> code;
  for (const ObjectBytes& object : objects) {
    TESSERA_TRY(Placed placed, Placed::read(object, architecture));
    TESSERA_TRY_DONE(placed.append_to(code));
    TESSERA_TRY_DONE(placed.relocate(code));
    TESSERA_TRY(const std::int64_t entry, placed.offset_of(kEntrySymbol));
    TESSERA_TRY(const std::int64_t scratch, placed.offset_of(kScratchSymbol));
    if (scratch < 0 || scratch + 8 > static_cast<std::int64_t>(code.size()))
      return cannot_link(fmt::format("{} is outside of the object", kScratchSymbol));
    const auto bytes =
        static_cast<std::int64_t>(llvm::support::endian::read64le(code.data() + scratch));
    image.entries.push_back({.offset = entry, .scratch_bytes = bytes});
  }
  image.code = Bytes::copy(code);
  return image;
}

}  // namespace tessera::codegen
