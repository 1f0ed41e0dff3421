#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "tessera/expr/scalar.h"

namespace tessera {

/// Makes an expression anew with some of its parts replaced. What is shared stays shared, also
/// between several expressions that one Transform is applied to.
class Transform {
 public:
  /// What a position along an axis becomes; nothing: it stays.
  std::function<std::optional<Scalar>(const std::string& axis)> index = {};
  /// What a size becomes.
  std::function<Dim(const Dim& size)> size = {};
  /// What a read, whose indices have been transformed, becomes; nothing: it stays.
  std::function<std::optional<Scalar>(const node::Read& read)> read = {};
  /// What a component of a fold becomes; nothing: that of the fold with its parts replaced.
  std::function<std::optional<Scalar>(const node::Component& component)> component = {};
  /// What the axis of a fold is called.
  std::function<std::string(const std::string& axis)> bound = {};

  Scalar operator()(const Scalar& scalar);

 private:
  std::shared_ptr<const Fold> transformed(const std::shared_ptr<const Fold>& fold);
  std::vector<Scalar> all(const std::vector<Scalar>& scalars);

  std::unordered_map<const void*, Scalar> made_;
  std::unordered_map<const void*, std::shared_ptr<const Fold>> folds_;
  std::vector<Scalar> keep_;  // ids stay their own while the memo lives
};

}  // namespace tessera
