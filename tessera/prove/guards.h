#pragma once

#include "tessera/prove/spot.h"

/// Proof steps that simplify the iteration domain of a term: its bound variables and their guards.
/// Each function takes one step, or is false where none fits.
namespace tessera::prove {

/// A term whose guards contradict each other is nothing.
bool remove_void(const Spot& spot);
/// A bound variable that guards pin down.
bool solve(const Spot& spot);
/// A bound variable whose least value is e and not 0 is counted from there.
bool shift(const Spot& spot);
/// A bound variable with which the position in the tensor first in the alphabet falls is counted
/// down from its largest value.
bool reverse(const Spot& spot);
/// In a proof by induction, the last of k + 1 terms is taken off.
bool peel(const Spot& spot);
/// A guard that follows from the others.
bool drop(const Spot& spot);
/// A bound variable that nothing but its limit speaks of.
bool count(const Spot& spot);
/// A group of a maximum that does not hang on what it runs over.
bool attain(const Spot& spot);
/// A position that the guards leave one value.
bool pin(const Spot& spot);
/// A guard that says the same as a shorter one is replaced by it: 3*a + b >= 3 is a >= 1 where b
/// is less than 3.
bool tighten(const Spot& spot);

}  // namespace tessera::prove
