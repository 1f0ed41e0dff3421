#pragma once

#include "tessera/onnx/call.h"

/// What operators looked like in older opsets, brought to the form of the catalog; one function for
/// each change of form. `rows.cpp` says where they apply.
namespace tessera::onnx::adapt {

// Attributes that became inputs.
Expected<Vals> axes_from_attribute(Call& call);
Expected<Vals> dft_axis_from_attribute(Call& call);
Expected<Vals> k_from_attribute(Call& call);
Expected<Vals> limits_from_attributes(Call& call);
Expected<Vals> pads_from_attributes(Call& call);
Expected<Vals> ratio_from_attribute(Call& call);
Expected<Vals> shape_from_attribute(Call& call);
Expected<Vals> slice_from_attributes(Call& call);
Expected<Vals> split_from_attribute(Call& call);

// Other meanings of the same inputs.
Expected<Vals> batch_norm_by_mode(Call& call);
/// Softmax and its kin once took all axes from `axis` on as one.
Expected<Vals> coerced_to_matrix(Call& call);
/// `broadcast` and `axis` once said where the second operand is put against the first.
Expected<Vals> legacy_broadcast(Call& call);
/// An interpolation that only knew scales, and pixels by their corners.
Expected<Vals> resize_by_scales(Call& call);
Expected<Vals> scale_per_group(Call& call);
Expected<Vals> slope_per_channel(Call& call);
Expected<Vals> tiles_along_axis(Call& call);

// Other defaults and words.
Expected<Vals> axis_is_one(Call& call);
Expected<Vals> corner_pixels(Call& call);
Expected<Vals> grid_modes(Call& call);
Expected<Vals> without_broadcast(Call& call);
Expected<Vals> without_output_sequence(Call& call);

// Forms that ONNX still has.
/// Two lists of categories, of which the default says which one is the keys.
Expected<Vals> categories_as_keys(Call& call);
/// Classes whose numbers are their positions.
Expected<Vals> classes_as_keys(Call& call);
/// What is done with the sums of votes of trees is a node of its own.
Expected<Vals> trees_from_base_values(Call& call);
Expected<Vals> trees_transformed_by_number(Call& call);
/// Integers of one width convert by wrapping, which keeps the bits.
Expected<Vals> bits_or_cast(Call& call);
Expected<Vals> cast_or_text(Call& call);
Expected<Vals> constant(Call& call);
/// A sequence of pieces of one shape, and its elements, have that shape, which inference cannot
/// tell.
Expected<Vals> pieces(Call& call);
Expected<Vals> element_of_pieces(Call& call);
/// Empty tensors once stood for inputs that are left out.
Expected<Vals> empty_is_absent(Call& call);
/// Of what is no tensor of numbers, the value itself.
Expected<Vals> identity(Call& call);
/// As many pieces as there are outputs, unless their sizes are given.
Expected<Vals> split_evenly(Call& call);

}  // namespace tessera::onnx::adapt
