#pragma once

#include "tessera/codegen/ptx/code_writer.h"

namespace tessera::codegen::ptx {

/// Writer of data movement between threads through shared memory: layout conversions, gather,
/// concat, slice and reshape.
class MoveWriter : public CodeWriter {
 public:
  using CodeWriter::CodeWriter;
  void write(const tile::gpu::Convert& convert);
  void write(const tile::gpu::Move& move);

 private:
  void gather(const Operation& op, const tile::gpu::Move& move);
  void concat(const Operation& op, const tile::gpu::Move& move);
  void slice(const Operation& op, const tile::gpu::Move& move);
  void reshape(const Operation& op, const tile::gpu::Move& move);
};

}  // namespace tessera::codegen::ptx
