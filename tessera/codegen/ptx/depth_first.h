#pragma once

namespace llvm {
class Module;
}  // namespace llvm

namespace tessera::codegen::ptx {

/// Instruction scheduling pass that reduces register pressure: moves instructions with one or
/// nearby uses just before the use:
///
///   a0 = x0 * c; a1 = x1 * c; store a0; store a1   =>   a0 = x0 * c; store a0; a1 = x1 * c; store
///   a1
///
/// Tiles are emitted operation by operation, each over all registers of a thread, and ptxas keeps
/// much of that order. The operands of neighbouring stores of up to 16 bytes to shared memory are
/// interleaved, to hide latency:
///
///   a0 = x0 * c; a1 = x1 * c; b0 = a0 + d; b1 = a1 + d; store b0; store b1
///
/// Keeps:  the meaning; the order of instructions that access memory or involve other threads, but
///         for loads from shared memory that is not written again in their block.
/// Leaves: every other instruction after its operands and close to its first use in its block.
void depth_first(llvm::Module& module);

}  // namespace tessera::codegen::ptx
