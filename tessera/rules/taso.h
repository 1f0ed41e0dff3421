#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/rules/rule.h"

namespace tessera::rules {

/// Rules in the text form of TASO's rule files, named `taso_0`, `taso_1`, … by their numbers.
///
///   rule 7: 2 -> 3 ops, 2 output(s); inputs t7:4D, t10:4D, t11:4D
///      src s0 = conv3x3[s=1,1 pad=SAME act=none](t7, t10)
///      src s1 = conv3x3[s=1,1 pad=SAME act=relu](t7, t11)
///      dst d0 = concat[axis=0 ndim=4](t10, t11)
///      …
///      map s0 == d2.0 :  in words
///
/// Axis 1 of t7 has size `t7.1`; a window is odd, `2*t10.2r + 1`. The window that a conv is written
/// with counts only in rules that speak of pools, constants or enlarged windows; else it is any.
/// Each conv has a group of its own, `$s0.group`. The sizes of a constant are those of an input
/// `like0`, whose content is never read. A comment may fix an axis (`# t7.1 == 1`) or a shape
/// (`# t7:(4,1,3,3)`); lines after the maps are notes.
Expected<std::vector<Rule>> parse_taso(std::string_view text, const std::string& file = {});

}  // namespace tessera::rules
