#include "tessera/ops/catalog.h"

#include <algorithm>

#include "tessera/ops/operators.h"
#include "tessera/support/check.h"

namespace tessera {

namespace define {
#define TESSERA_OPERATOR(id) OpDef id();
#include "tessera/ops/catalog.def"
}  // namespace define

const std::vector<OpDef>& catalog() {
  static const std::vector<OpDef> kAll = [] {
    std::vector<OpDef> all;
#define TESSERA_OPERATOR(id)   \
  all.push_back(define::id()); \
  TESSERA_CHECK(all.back().name == #id, "{} is listed as " #id, all.back().name);
#include "tessera/ops/catalog.def"
    TESSERA_CHECK(std::ranges::is_sorted(all, {}, &OpDef::name), "the catalog is not sorted");
    return all;
  }();
  return kAll;
}

const OpDef* find_op(std::string_view name) {
  const auto it = std::ranges::lower_bound(catalog(), name, {}, &OpDef::name);
  return it != catalog().end() && it->name == name ? &*it : nullptr;
}

const OpDef* CatalogOp::get() const {
  return &catalog()[index_];
}

}  // namespace tessera
