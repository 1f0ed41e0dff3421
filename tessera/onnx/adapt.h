#pragma once

#include "tessera/onnx/call.h"

/// Adapters from older opset versions of ONNX operators to the form of the catalog, one function
/// for each change of form. `operator_table.cpp` says which operators and opsets use them.
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
/// Flattened softmax of opsets below 13: all axes from `axis` on count as one.
Expected<Vals> coerced_to_matrix(Call& call);
/// Broadcasting by the attributes `broadcast` and `axis`, which aligned the second operand with the
/// first.
Expected<Vals> legacy_broadcast(Call& call);
/// Upsample and early Resize: scales only, asymmetric pixel coordinates.
Expected<Vals> resize_by_scales(Call& call);
Expected<Vals> scale_per_group(Call& call);
Expected<Vals> slope_per_channel(Call& call);
Expected<Vals> tiles_along_axis(Call& call);

// Other defaults and words.
/// An axis of the first operand that is counted from the end is counted from the start: operators
/// that no definition tells equal are so where their attributes are.
Expected<Vals> axis_from_start(Call& call);
Expected<Vals> axis_is_one(Call& call);
Expected<Vals> corner_pixels(Call& call);
Expected<Vals> grid_modes(Call& call);
Expected<Vals> without_broadcast(Call& call);
Expected<Vals> without_output_sequence(Call& call);

// Forms that ONNX still has.
/// CategoryMapper: two lists of categories, of which the default says which one is the keys.
Expected<Vals> categories_as_keys(Call& call);
/// LabelEncoder of a list of classes whose keys are their positions.
Expected<Vals> classes_as_keys(Call& call);
/// Tree ensembles: base values and post transform become nodes of their own.
Expected<Vals> trees_from_base_values(Call& call);
Expected<Vals> trees_transformed_by_number(Call& call);
/// BitCast: integers of equal width convert by wrapping, which keeps the bits.
Expected<Vals> bits_or_cast(Call& call);
Expected<Vals> cast_or_text(Call& call);
Expected<Vals> constant(Call& call);
/// SplitToSequence and SequenceAt: the shape of pieces that all have one shape, which inference
/// cannot know.
Expected<Vals> pieces(Call& call);
Expected<Vals> element_of_pieces(Call& call);
/// Empty tensors that denote omitted inputs.
Expected<Vals> empty_is_absent(Call& call);
/// Identity of strings, sequences and optionals: the value itself.
Expected<Vals> identity(Call& call);
/// Split into as many pieces as there are outputs, unless their sizes are given.
Expected<Vals> split_evenly(Call& call);

}  // namespace tessera::onnx::adapt
