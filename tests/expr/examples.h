#pragma once

#include "tessera/expr/dim.h"

namespace tessera {

inline const Dim kI = Dim::symbol("i"), kJ = Dim::symbol("j");
inline const Dim kN = Dim::symbol("n"), kM = Dim::symbol("m"), kH = Dim::symbol("h");

inline constexpr const char* kMatmul =
    "define(a: f32[#i, #k], b: f32[#k, #j]) { out: f32[i, j] = sum(k) a[i, k] * b[k, j] }";

}  // namespace tessera
