#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "tessera/support/check.h"
#include "tessera/support/tensor.h"

namespace tessera {

/// What a value of a graph is while it runs: a tensor, a sequence, an optional, or nothing (an
/// optional input that was left out).
class Datum {
 public:
  enum class Kind { Nothing, Tensor, Sequence, Optional };

  Datum() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a tensor is a datum
  Datum(Tensor tensor) : kind_(Kind::Tensor), tensor_(std::move(tensor)) {}

  static Datum sequence(std::vector<Datum> elements) {
    return {Kind::Sequence, std::move(elements)};
  }
  /// An optional with or without content.
  static Datum optional() { return {Kind::Optional, {}}; }
  static Datum optional(Datum content) {
    std::vector<Datum> one;
    one.push_back(std::move(content));
    return {Kind::Optional, std::move(one)};
  }

  Kind kind() const { return kind_; }
  bool present() const { return kind_ != Kind::Nothing; }
  bool is_tensor() const { return kind_ == Kind::Tensor; }

  const Tensor& tensor() const {
    TESSERA_CHECK(is_tensor(), "a tensor is asked of something else");
    return tensor_;
  }
  /// The elements of a sequence; the content of an optional (none or one).
  const std::vector<Datum>& elements() const {
    TESSERA_CHECK(kind_ == Kind::Sequence || kind_ == Kind::Optional, "elements of no sequence");
    return *elements_;
  }

 private:
  Datum(Kind kind, std::vector<Datum> elements)
      : kind_(kind), elements_(std::make_shared<const std::vector<Datum>>(std::move(elements))) {}

  Kind kind_ = Kind::Nothing;
  Tensor tensor_;
  std::shared_ptr<const std::vector<Datum>> elements_;
};

}  // namespace tessera
