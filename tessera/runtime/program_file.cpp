#include "tessera/runtime/program_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tessera/runtime/plan.h"
#include "tessera/runtime/session.h"
#include "tessera/support/file.h"
#include "tessera/support/hash.h"

namespace tessera::runtime {
namespace {

// File layout, little-endian: Header, then the sections at the offsets it states, with zeros
// between them. docs/program.md describes it.

constexpr std::array<char, 8> kMagic = {'\x89', 'T', 'S', 'R', '\r', '\n', '\x1a', '\n'};

struct Section {
  std::uint64_t offset = 0, size = 0, checksum = 0;
};

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kPlanVersion;
  std::uint32_t sections = 3;
  Section plan = {}, code = {}, weights = {};
  std::uint64_t checksum = 0;  // of the fields above
};
static_assert(sizeof(Header) == 96 && std::is_trivially_copyable_v<Header>);

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  Hasher hasher;
  hasher.add_bytes(bytes);
  return hasher.value();
}

std::uint64_t checksum_of(const Header& header) {
  return checksum_of(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, checksum)));
}

Diagnostic malformed(std::string message, std::string help) {
  return {.id = "program-malformed", .message = std::move(message), .help = std::move(help)};
}
Diagnostic damaged(const char* what) {
  return malformed(fmt::format("damaged {}", what), "copy the file again");
}

/// A file with its sections, whose content is not validated yet.
Expected<Header> header_of(const Bytes& file) {
  Header header;
  if (file.size() < sizeof header || std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0)
    return malformed("this is no saved program", "make one with tessera compile");
  std::memcpy(&header, file.data(), sizeof header);
  if (header.version < kOldestPlanVersion || header.version > kPlanVersion)
    return malformed(fmt::format("version {} of the format is not read", header.version),
                     "compile the model with this version of tessera");
  if (header.checksum != checksum_of(header)) return damaged("header");
  for (const Section& section : {header.plan, header.code, header.weights})
    if (section.offset > file.size() || section.size > file.size() - section.offset ||
        section.offset % kAlignment != 0)
      return malformed(fmt::format("the file has {} bytes, which is not all of it", file.size()),
                       "copy the file again");
  return header;
}

Bytes part(const Bytes& file, const Section& section) {
  return file.slice(section.offset, section.size);
}

bool is_intact(const Bytes& file, const Section& section) {
  return checksum_of(part(file, section).view()) == section.checksum;
}

Expected<Program> parse(const Bytes& file) {
  TESSERA_TRY(const Header header, header_of(file));
  if (!is_intact(file, header.plan)) return damaged("plan");
  if (!is_intact(file, header.code)) return damaged("code");
  TESSERA_TRY(Program program, decode_plan(part(file, header.plan).view(), header.version));
  program.image = part(file, header.code);
  program.weights = part(file, header.weights);
  TESSERA_TRY_DONE(check(program));
  return program;
}

/// Alignment of sections: large ones to pages of any size; the rest is packed.
std::uint64_t aligned(std::uint64_t offset, std::uint64_t size) {
  constexpr std::uint64_t kPage = 64 << 10;
  const std::uint64_t unit = size < kPage ? static_cast<std::uint64_t>(kAlignment) : kPage;
  return (offset + unit - 1) / unit * unit;
}

/// File of a program, as the sections that it refers to.
struct EncodedProgram {
  Header header = {};
  std::string plan = {};
  Bytes code = {}, weights = {};
  std::uint64_t bytes = 0;  // of the file

  /// Calls write(bytes) for consecutive parts of the file.
  void for_each_part(auto&& write) const {
    write(std::as_bytes(std::span(&header, 1)));
    std::uint64_t at = sizeof header;
    const auto section = [&](const Section& place, std::span<const std::byte> content) {
      write(std::span<const std::byte>(std::vector<std::byte>(place.offset - at)));
      write(content);
      at = place.offset + place.size;
    };
    section(header.plan, std::as_bytes(std::span(plan)));
    section(header.code, code.view());
    section(header.weights, weights.view());
  }
};

Expected<EncodedProgram> encode(const Program& program) {
  TESSERA_TRY_DONE(check(program));
  EncodedProgram file{
      .plan = encode_plan(program), .code = program.image, .weights = program.weights};
  file.bytes = sizeof file.header;
  const auto place = [&](Section& section, std::span<const std::byte> content) {
    section = {.offset = aligned(file.bytes, content.size()),
               .size = content.size(),
               .checksum = checksum_of(content)};
    file.bytes = section.offset + section.size;
  };
  place(file.header.plan, std::as_bytes(std::span(file.plan)));
  place(file.header.code, file.code.view());
  place(file.header.weights, file.weights.view());
  file.header.checksum = checksum_of(file.header);
  return file;
}

}  // namespace

Expected<Done> save(const Program& program, const std::filesystem::path& path) {
  TESSERA_TRY(const EncodedProgram file, encode(program));
  return write_file(path, [&](std::ostream& out) {
    file.for_each_part([&](std::span<const std::byte> bytes) {
      out.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
    });
  });
}

Expected<Bytes> file_bytes(const Program& program) {
  TESSERA_TRY(const EncodedProgram file, encode(program));
  Buffer buffer(file.bytes);
  std::byte* end = buffer.data();
  file.for_each_part(
      [&](std::span<const std::byte> bytes) { end = std::ranges::copy(bytes, end).out; });
  return std::move(buffer).freeze();
}

Expected<Program> parse_program(const Bytes& file, const std::string& name) {
  auto program = parse(file);
  if (!program) return located(std::move(program).error(), {.file = name});
  return program;
}

Expected<Program> load(const std::filesystem::path& file) {
  TESSERA_TRY(const Bytes bytes, map_file(file));
  return parse_program(bytes, file.string());
}

Expected<Done> verify(const std::filesystem::path& file) {
  TESSERA_TRY(const Bytes bytes, map_file(file));
  TESSERA_TRY_DONE(parse_program(bytes, file.string()));
  TESSERA_TRY(const Header header, header_of(bytes));
  if (!is_intact(bytes, header.weights))
    return located(damaged("weights"), {.file = file.string()});
  return Done{};
}

}  // namespace tessera::runtime
