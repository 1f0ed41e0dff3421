#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "tessera/support/check.h"
#include "tessera/support/tensor.h"

namespace tessera {

/// Run-time value of a graph: a tensor, a sequence, an optional, or nothing (an optional input that
/// was omitted).
class Datum {
 public:
  enum class Kind { Nothing, Tensor, Sequence, Optional };

  Datum() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a tensor is a datum
  Datum(Tensor tensor) : kind_(Kind::Tensor), tensor_(std::move(tensor)) {}

  static Datum sequence(std::vector<Datum> elements) {
    return {Kind::Sequence, std::move(elements)};
  }
  /// Optional values: empty, or with content.
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
    TESSERA_CHECK(is_tensor(), "the value is not a tensor");
    return tensor_;
  }
  /// Elements of a sequence, or content of an optional (none or one element).
  const std::vector<Datum>& elements() const {
    TESSERA_CHECK(kind_ == Kind::Sequence || kind_ == Kind::Optional,
                  "the value is neither a sequence nor an optional");
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
