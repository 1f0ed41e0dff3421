#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/codegen/ptx/evaluator.h"
#include "tessera/codegen/ptx/reduction_writer.h"
#include "tessera/codegen/ptx/view_access.h"

namespace tessera::codegen::ptx {

/// Writer of programs of rows: in two versions, or in several passes over the parts of a row.
class RowWriter : public CodeWriter {
 public:
  RowWriter(const Context& context, Evaluator& evaluator, ViewAccess& views,
            ReductionWriter& reductions, BodyWriter& bodies)
      : CodeWriter(context),
        evaluator_(evaluator),
        views_(views),
        reductions_(reductions),
        bodies_(bodies) {}

  void write(const tile::gpu::Versions& versions);
  void write(const tile::gpu::RowProperties& properties);
  void write(const tile::gpu::CheckRow& check);
  void write(const tile::gpu::RowVersion& version);
  void write(const tile::gpu::PartLoop& loop);
  void write(const tile::gpu::ReducePart& reduce);
  void write(const tile::gpu::FinishParts& finish);

 private:
  /// Run-time properties of the rows. `before`: number of elements that a part starts before a
  /// shifted row. `is_simple`: all is in bounds, and stored memory does not overlap with what is
  /// loaded.
  struct Properties {
    llvm::Value *aligned = nullptr, *shifted = nullptr, *whole = nullptr, *before = nullptr;
    llvm::Value *overlaps = nullptr, *backwards = nullptr, *is_simple = nullptr;
  };
  /// Rows that have been checked.
  struct Rows {
    std::vector<Values::Row> loads = {};
    std::optional<Values::Row> store = {};
    /// Rows of this program alone, with the bytes of an access.
    std::vector<std::pair<Values::Row, int>> own = {};
  };
  void find_shift();
  void find_overlaps();
  llvm::Value* row_address(const Operation& op);
  llvm::Value* is_multiple_of(llvm::Value* number, int power);

  /// Iteration over the parts first, first + step, …
  struct PartRange {
    llvm::Value *first = nullptr, *step = nullptr, *count = nullptr;  // i32
    llvm::Value* before = nullptr;
  };
  void find_ranges(tile::gpu::RowAlignment alignment);

  Evaluator& evaluator_;
  ViewAccess& views_;
  ReductionWriter& reductions_;
  BodyWriter& bodies_;
  Properties properties_;
  Rows rows_;
  PartRange middle_, rest_;
  llvm::Value* parts_ = nullptr;          // number of them, i32
  std::map<OpId, llvm::Value*> partial_;  // by reduction: of this thread
};

}  // namespace tessera::codegen::ptx
