#pragma once

#include <cstdint>
#include <string>

namespace llvm {
class Module;
}  // namespace llvm

namespace tessera::codegen::ptx {

/// NVPTX's numbers of address spaces.
constexpr unsigned kGlobal = 1, kShared = 3;

/// Instructions that NVVM has no intrinsic for are calls of functions with this prefix, until
/// `expand` makes inline PTX of them; so that what stands for them can be emulated.
///
///   fence.proxy.async()          what this thread wrote to shared memory, wgmma and TMA may read
///   wgmma.fence()                before products: registers and shared memory are as written
///   wgmma.mma.N.TYPE.XY(a, b, sums…) -> sums
///                                d[64, N] += a[64, 16] · b[16, N] by the four warps of a
///                                warpgroup; X, Y: 1 where neighbours of a, b along k lie in
///                                different rows. An operand in shared memory is an address and the
///                                upper bits of its descriptor (Matrix64); four words: a in
///                                registers
///   wgmma.commit()               what came since the last one is a group
///   wgmma.wait.N.COUNT…(x…) -> x until all but the last N groups are done; the kinds of x follow
///   mbarrier.wait(at, parity)    until the phase of this parity, 0 at first, is over
///   mbarrier.expect(at, bytes)   arrives; and the phase is over when so many bytes have come too
///   map.copy(to, map, at, place…)
///                                the box of a map (PtxKernel::maps) at a place, innermost axis
///                                first, to shared memory: its bytes count at a barrier
constexpr const char* kSpecial = "tessera.";

/// How a matrix in shared memory is described to wgmma, but for its address: all in bytes. Rows of
/// `panel` bytes (32, 64 or 128) are exchanged in chunks of 16 by the number of the row.
struct Matrix64 {
  std::int64_t panel = 128;
  std::int64_t leading = 0;  // from a panel to the next, where rows run along k
  std::int64_t stride = 0;   // from eight rows to the next eight

  std::uint64_t bits() const;
  static Matrix64 of(std::uint64_t bits);
};

/// Needs:  calls of the functions above alone.
/// Leaves: no function with the prefix.
void expand(llvm::Module& module);

}  // namespace tessera::codegen::ptx
