#include "tessera/ops/standard.h"

#include "tessera/ops/catalog.h"
#include "tessera/support/check.h"

namespace tessera {
namespace {

const OpDef& standard_op(std::string_view name) {
  const OpDef* op = find_op(name);
  TESSERA_CHECK(op != nullptr, "the catalog has no operator {}", name);
  return *op;
}

}  // namespace

const OpDef& identity_op() {
  static const OpDef& op = standard_op("identity");
  return op;
}

const OpDef& scan_op() {
  static const OpDef& op = standard_op("scan");
  return op;
}

}  // namespace tessera
