#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::codegen {

/// Machine code as assembly text, one instruction per line after its offset; bytes that are no
/// instruction are `.byte`. `architecture` and `features` are those of a runtime::Program. Empty
/// for an architecture that LLVM does not know.
std::string disassemble(std::span<const std::byte> code, std::string_view architecture,
                        const std::vector<std::string>& features);

}  // namespace tessera::codegen
