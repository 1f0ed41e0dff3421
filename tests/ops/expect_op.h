#pragma once

#include <gtest/gtest.h>

#include "tests/support/evaluate.h"

namespace tessera::testing {

/// An operator and what it has to give; a result that is nullopt is not looked at.
struct OpCase {
  std::string_view op;
  Attrs attrs = {};
  std::vector<std::optional<Tensor>> inputs;
  std::vector<std::optional<Tensor>> outputs;
  double tolerance = 1e-5;
};

inline void expect_op(const OpCase& c) {
  SCOPED_TRACE(c.op);
  const std::vector<Tensor> out = evaluate(c.op, c.attrs, c.inputs);
  ASSERT_GE(out.size(), c.outputs.size());
  for (std::size_t i = 0; i < c.outputs.size(); ++i) {
    SCOPED_TRACE(i);
    if (c.outputs[i]) expect_near(out[i], *c.outputs[i], c.tolerance);
  }
}

}  // namespace tessera::testing
