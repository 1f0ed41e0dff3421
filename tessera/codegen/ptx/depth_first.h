#pragma once

namespace llvm {
class Module;
}  // namespace llvm

namespace tessera::codegen::ptx {

/// Computes what is used once or close by just before it is used, so that few registers are needed:
///
///   a0 = x0 * c; a1 = x1 * c; store a0; store a1   =>   a0 = x0 * c; store a0; a1 = x1 * c; store
///   a1
///
/// Tiles are written operation by operation, each over all registers of a thread; the compiler of
/// PTX keeps much of that order. What neighbouring stores of up to 16 bytes to shared memory need
/// is interleaved, so that one chain goes on while another waits:
///
///   a0 = x0 * c; a1 = x1 * c; b0 = a0 + d; b1 = a1 + d; store b0; store b1
///
/// Keeps:  the meaning; the order of whatever reads or writes memory or involves other threads, but
///         for loads from shared memory that is not written again in their block.
/// Leaves: every other instruction after what it needs and close to its first use in its block.
void depth_first(llvm::Module& module);

}  // namespace tessera::codegen::ptx
