#pragma once

#include <optional>
#include <vector>

#include "tessera/expr/definition.h"
#include "tessera/expr/shape.h"

namespace tessera {

/// The elements of an output of at most 1024, computed over sizes: an integer is a Dim, and a
/// condition is decided where no symbol matters. `inputs` are those of the definition's operands,
/// in order; null or without value and content: unknown. Nothing if an element needs what is not
/// known, or too much work.
///
/// Elements that are truth values are 0 or 1. Elements of a float output are there if all are whole
/// numbers: sizes pass through float arithmetic on their way, and are taken to fit.
std::optional<std::vector<Dim>> symbolic_values(const Definition& definition, const Sizes& sizes,
                                                const std::vector<const Argument*>& inputs,
                                                std::size_t output = 0);

/// The same as a tensor, if all elements are numbers without symbols. Values are computed in double
/// and rounded to the dtype at the end.
std::optional<Tensor> known_content(const Definition& definition, const Sizes& sizes,
                                    const std::vector<const Argument*>& inputs,
                                    std::size_t output = 0);

}  // namespace tessera
