#pragma once

#include <memory>

#include "tessera/ir/infer.h"

namespace tessera {

/// Memo table of type inference and of definitions for one thread: while one lives, `infer` and
/// `defined` compute each distinct call once. Both are pure functions of the operator, its
/// attributes and what is known of its operands, and calls are compared in full, so that results
/// are the same with and without it. An inner memo uses the table of the outer one.
///
/// A proof of a rule infers the types of the same few calls dozens of times: for every relation
/// between sizes, substitution of sizes and instance that is evaluated.
class InferenceMemo {
 public:
  InferenceMemo();
  ~InferenceMemo();
  InferenceMemo(const InferenceMemo&) = delete;
  InferenceMemo& operator=(const InferenceMemo&) = delete;

 private:
  class Table;
  friend Expected<std::vector<ValueInfo>> infer(const OpDef&, const Attrs&,
                                                const std::vector<ValueInfo>&);
  friend Expected<std::shared_ptr<const Definition>> defined(const OpDef&, const Attrs&,
                                                             const Signature&);
  static thread_local Table* current_;
  std::unique_ptr<Table> own_;
};

}  // namespace tessera
