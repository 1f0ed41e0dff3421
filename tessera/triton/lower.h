#pragma once

#include "tessera/support/expected.h"
#include "tessera/tile/kernel.h"
#include "tessera/triton/module.h"

namespace tessera::triton {

/// Lowers the kernel of a TTIR module (its public function) to tile IR. Parameters keep their
/// order: pointers and numbers; bool pointers become pointers to i8, float8 is carried as its bits
/// in u8, and a pointer to pointers is one to i64. Calls are inlined, early returns become
/// branches.
///
/// Diagnostics: `ttir-unsupported` names an operation or type without a counterpart,
/// `ttir-structure` text that no compiler prints (an undefined value, missing operands); both with
/// the line of the Python source where the text has it.
Expected<tile::Kernel> lower(const Module& module);

/// Whether a matrix product of the module may round its f32 factors to tf32.
bool allows_tf32(const Module& module);

/// Divisors of the parameters of the kernel (`tt.divisibility`): powers of two, 1 where the module
/// says nothing.
std::vector<std::int64_t> parameter_divisors(const Module& module);

/// Parses and lowers.
Expected<tile::Kernel> kernel_of(std::string_view text, const std::string& file = "ttir");

}  // namespace tessera::triton
