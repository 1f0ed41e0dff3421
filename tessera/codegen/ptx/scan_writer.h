#pragma once

#include <map>

#include "tessera/codegen/ptx/reduction_writer.h"

namespace tessera::codegen::ptx {

/// Writer of scans.
class ScanWriter : public CodeWriter {
 public:
  ScanWriter(const Context& context, ReductionWriter& reductions)
      : CodeWriter(context), reductions_(reductions) {}
  void write(const tile::gpu::ScanTile& scan);

 private:
  using Elements = ReductionWriter::Elements;
  struct Scan;
  void exchange_lanes(std::map<int, Elements>& parts, int bit);
  void exchange_warps(std::map<int, Elements>& parts, const tile::gpu::ScanTile::Exchange& exchange,
                      int bit);

  ReductionWriter& reductions_;
};

}  // namespace tessera::codegen::ptx
