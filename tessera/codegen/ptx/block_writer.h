#pragma once

#include <llvm/IR/Function.h>

#include "tessera/codegen/ptx/async_copy.h"
#include "tessera/codegen/ptx/loop_writer.h"
#include "tessera/codegen/ptx/matmul_writer.h"
#include "tessera/codegen/ptx/move_writer.h"
#include "tessera/codegen/ptx/persistent_writer.h"
#include "tessera/codegen/ptx/pointer_access.h"
#include "tessera/codegen/ptx/row_writer.h"
#include "tessera/codegen/ptx/scan_writer.h"
#include "tessera/codegen/ptx/specialized_writer.h"
#include "tessera/codegen/ptx/store_writer.h"
#include "tessera/codegen/ptx/tile_pipeline_writer.h"

namespace tessera::codegen::ptx {

/// Writer of the program of a block (form S) as LLVM IR: the code of each thread. It decides
/// nothing: each instruction has one writer, and says all that it needs.
class BlockWriter : public BodyWriter {
 public:
  BlockWriter(const tile::gpu::ScheduledKernel& scheduled, const PtxOptions& options,
              llvm::Function& function);

  void write();
  Pieces write(const tile::gpu::Body& body) override;

 private:
  /// Ends warps whose program is beyond the end of the grid.
  void check_program();

  const tile::gpu::ScheduledKernel& scheduled_;
  Block block_;
  Values values_;
  const CodeWriter::Context context_;
  PointerFacts facts_;
  Evaluator evaluator_;
  MoveWriter moves_;
  ReductionWriter reductions_;
  ScanWriter scans_;
  ViewAccess views_;
  PointerAccess pointers_;
  StoreWriter stores_;
  MatmulWriter matmuls_;
  LoopBounds bounds_;
  AsyncCopy copies_;
  LoopWriter loops_;
  RowWriter rows_;
  PersistentWriter persistent_;
  SpecializedWriter specialized_;
  TilePipelineWriter pipelines_;
  Pieces yielded_;
};

}  // namespace tessera::codegen::ptx
