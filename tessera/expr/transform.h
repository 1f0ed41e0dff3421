#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "tessera/expr/scalar.h"

namespace tessera {

/// Rewriter of scalar expressions. Shared subexpressions stay shared, also between several
/// expressions that one Transform is applied to.
class Transform {
 public:
  /// Replacement of a position along an axis; nothing keeps it.
  std::function<std::optional<Scalar>(const std::string& axis)> index = {};
  /// Replacement of a size.
  std::function<Dim(const Dim& size)> size = {};
  /// Replacement of a read, whose indices have been transformed; nothing keeps it.
  std::function<std::optional<Scalar>(const node::Read& read)> read = {};
  /// Replacement of a component of a fold; nothing transforms the fold's parts.
  std::function<std::optional<Scalar>(const node::Component& component)> component = {};
  /// Replacement of a cast, whose argument has been transformed; nothing keeps it.
  std::function<std::optional<Scalar>(DType to, const Scalar& arg)> cast = {};
  /// New name of a fold's axis.
  std::function<std::string(const std::string& axis)> bound = {};

  Scalar operator()(const Scalar& scalar);

 private:
  std::shared_ptr<const Fold> transformed(const std::shared_ptr<const Fold>& fold);
  std::vector<Scalar> all(const std::vector<Scalar>& scalars);

  std::unordered_map<const void*, Scalar> made_;
  std::unordered_map<const void*, std::shared_ptr<const Fold>> folds_;
  std::vector<Scalar> keep_;  // keeps keys of the memo tables alive, so that ids stay unique
};

}  // namespace tessera
