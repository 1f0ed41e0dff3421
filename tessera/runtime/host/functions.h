#pragma once

#include "tessera/runtime/host/host.h"

/// Host functions of the table in host.cpp. Semantics are those of the ONNX operator of the same
/// name; comments specify only what ONNX leaves open.
namespace tessera::host {

// select.cpp. NaN counts as larger than every number and equal to itself, as in NumPy.
Results compress(const Call& call);
Results non_zero(const Call& call);
Results top_k(const Call& call);
Results unique(const Call& call);

// boxes.cpp. A box is a candidate if its score exceeds the threshold; equal scores go by index.
Results non_max_suppression(const Call& call);

// sequences.cpp
Results concat_from_sequence(const Call& call);
Results optional(const Call& call);
Results optional_get_element(const Call& call);
Results optional_has_element(const Call& call);
Results sequence_at(const Call& call);
Results sequence_construct(const Call& call);
Results sequence_empty(const Call& call);
Results sequence_erase(const Call& call);
Results sequence_insert(const Call& call);
Results sequence_length(const Call& call);
Results split_to_sequence(const Call& call);

// text.cpp. Case conversion covers the common Latin, Greek, Cyrillic and Armenian letters; other
// characters, and bytes that are not UTF-8, stay.
Results regex_full_match(const Call& call);
Results string_concat(const Call& call);
Results string_normalizer(const Call& call);
Results string_split(const Call& call);

// bits.cpp
Results bit_cast(const Call& call);

// cast_string.cpp. Numbers print as in NumPy: the fewest digits that read back to the same number.
Results cast_string(const Call& call);

// image_decoder.cpp. A damaged image is a diagnostic, not an empty one.
Results image_decoder(const Call& call);

// labels.cpp. NaN keys are equal to each other; the last of equal keys counts.
Results ml_label_encoder(const Call& call);
Results ml_one_hot_encoder(const Call& call);

// trees.cpp. Votes are summed in f32; in f64 where x is f64.
Results ml_tree_ensemble(const Call& call);
Results ml_tree_ensemble_regressor(const Call& call);

// tf_idf.cpp
Results tf_idf_vectorizer(const Call& call);

// random.cpp. Without a seed, the seed is 0.
Results bernoulli(const Call& call);
Results multinomial(const Call& call);
Results random_normal(const Call& call);
Results random_normal_like(const Call& call);
Results random_uniform(const Call& call);
Results random_uniform_like(const Call& call);

// matrix.cpp. Computes in double.
Results det(const Call& call);

// unpool.cpp. Indices refer to the shape without output_shape, whose positions are then kept.
Results max_unpool(const Call& call);

}  // namespace tessera::host
