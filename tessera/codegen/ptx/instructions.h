#pragma once

#include <cstdint>
#include <string>

namespace llvm {
class Module;
}  // namespace llvm

namespace tessera::codegen::ptx {

/// NVPTX address spaces.
constexpr unsigned kGlobal = 1, kShared = 3;

/// Prefix of calls that stand for instructions without NVVM intrinsic, until `expand` replaces them
/// by inline PTX. Tests emulate the calls.
///
///   fence.proxy.async()          makes this thread's writes to shared memory visible to wgmma, TMA
///   wgmma.fence()                orders register and shared memory accesses before wgmma
///   wgmma.mma.N.TYPE.XY(a, b, sums…) -> sums
///                                d[64, N] += a[64, 16] · b[16, N] by the four warps of a
///                                warpgroup; X, Y: 1 where a, b are transposed: neighbours along k
///                                lie in different rows. An operand in shared memory is an address
///                                and the rest of its descriptor (WgmmaDescriptor); four words: a
///                                in registers
///   wgmma.commit()               ends a group of asynchronous wgmma
///   wgmma.wait.N.COUNT…(x…) -> x waits until at most N groups are pending; the kinds of x follow
///   mbarrier.wait(at, parity)    waits for the end of the phase of this parity, 0 at first
///   mbarrier.release(at)         arrives, by the first lane of a warp alone: as its own branch,
///   which
///                                ptxas does not move behind the computation that follows
///   mbarrier.expect(at, bytes)   arrives; the phase also waits for so many bytes
///   mbarrier.expect_more(at, bytes)
///                                the phase also waits for so many bytes
///   map.copy(to, map, at, place…)
///                                TMA copy of the box of a tensor map (PtxKernel::maps) at a
///                                position, innermost axis first, to shared memory; completes its
///                                bytes at an mbarrier
///   grid.await()                 waits until the grids that this one depends on are complete
///   grid.launch_dependents()     lets the blocks of the next grid be scheduled
///   thread.pin(thread) -> thread the same number, which is not known to be
///   div.full(x, y) -> x / y      of f32, within 2 ulp over the whole range
constexpr const char* kSpecial = "tessera.";

/// Matrix descriptor of wgmma, to which its address is added; all in bytes. Rows of `panel` bytes
/// (32, 64 or 128) are swizzled in chunks of 16 by the row number.
struct WgmmaDescriptor {
  std::int64_t panel = 128;
  std::int64_t leading = 0;  // from a panel to the next, where rows run along k
  std::int64_t stride = 0;   // from eight rows to the next eight
  std::int64_t offset = 0;   // of the matrix, from the address

  std::uint64_t bits() const;
  static WgmmaDescriptor of(std::uint64_t bits);
};

/// Replaces the calls above by inline PTX.
///
/// Needs:  no other functions with the prefix.
/// Leaves: no function with the prefix.
void expand(llvm::Module& module);

}  // namespace tessera::codegen::ptx
