#pragma once

#include <cfenv>

namespace tessera {

/// Rounding mode of this thread's floating-point operations, as <cfenv> has it, until the end of
/// the scope.
class RoundingMode {
 public:
  explicit RoundingMode(int mode) : before_(std::fegetround()) { std::fesetround(mode); }
  ~RoundingMode() { std::fesetround(before_); }
  RoundingMode(const RoundingMode&) = delete;
  RoundingMode& operator=(const RoundingMode&) = delete;

 private:
  int before_;
};

}  // namespace tessera
