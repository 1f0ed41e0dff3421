#pragma once

#include <cstddef>

#include "tessera/ops/catalog.h"

namespace tessera {

/// Pointer to an operator of the catalog that is named in the source: `node.op == op::conv`,
/// `{.op = op::identity, …}`, `op::conv->name`. A misspelled name does not compile.
class CatalogOp {
 public:
  explicit constexpr CatalogOp(std::size_t index) : index_(index) {}

  const OpDef* get() const;
  operator const OpDef*() const { return get(); }  // NOLINT(google-explicit-constructor): a pointer
  const OpDef& operator*() const { return *get(); }
  const OpDef* operator->() const { return get(); }

 private:
  std::size_t index_;  // in the catalog
};

namespace op {

/// Position of each operator in the catalog.
enum class Position : std::size_t {
#define TESSERA_OPERATOR(id) id,
#include "tessera/ops/catalog.def"
};

#define TESSERA_OPERATOR(id) inline constexpr CatalogOp id{static_cast<std::size_t>(Position::id)};
#include "tessera/ops/catalog.def"

}  // namespace op

}  // namespace tessera
