#include "tessera/ops/catalog.h"

#include <algorithm>

namespace tessera {

/// The one list of operators: a function of that name in tessera::op defines each. Sorted.
// clang-format off
#define TESSERA_OPERATORS(op)                \
  op(abs)                                    \
  op(acos)                                   \
  op(acosh)                                  \
  op(adagrad)                                \
  op(adam)                                   \
  op(add)                                    \
  op(affine_grid)                            \
  op(arg_max)                                \
  op(arg_min)                                \
  op(asin)                                   \
  op(asinh)                                  \
  op(atan)                                   \
  op(atanh)                                  \
  op(attention)                              \
  op(average_pool)                           \
  op(batch_normalization)                    \
  op(bernoulli)                              \
  op(bit_cast)                               \
  op(bit_shift)                              \
  op(bitwise_and)                            \
  op(bitwise_not)                            \
  op(bitwise_or)                             \
  op(bitwise_xor)                            \
  op(blackman_window)                        \
  op(cast)                                   \
  op(cast_like)                              \
  op(cast_string)                            \
  op(causal_conv_with_state)                 \
  op(ceil)                                   \
  op(celu)                                   \
  op(center_crop_pad)                        \
  op(clip)                                   \
  op(col2im)                                 \
  op(compress)                               \
  op(concat)                                 \
  op(concat_from_sequence)                   \
  op(constant_of_shape)                      \
  op(conv)                                   \
  op(conv_integer)                           \
  op(conv_transpose)                         \
  op(cos)                                    \
  op(cosh)                                   \
  op(cum_prod)                               \
  op(cum_sum)                                \
  op(deform_conv)                            \
  op(depth_to_space)                         \
  op(dequantize_linear)                      \
  op(det)                                    \
  op(dft)                                    \
  op(div)                                    \
  op(dropout)                                \
  op(dynamic_quantize_linear)                \
  op(einsum)                                 \
  op(elu)                                    \
  op(equal)                                  \
  op(erf)                                    \
  op(exp)                                    \
  op(expand)                                 \
  op(eye_like)                               \
  op(flatten)                                \
  op(floor)                                  \
  op(gather)                                 \
  op(gather_elements)                        \
  op(gather_nd)                              \
  op(gelu)                                   \
  op(gemm)                                   \
  op(global_average_pool)                    \
  op(global_lp_pool)                         \
  op(global_max_pool)                        \
  op(greater)                                \
  op(greater_or_equal)                       \
  op(grid_sample)                            \
  op(group_normalization)                    \
  op(gru)                                    \
  op(hamming_window)                         \
  op(hann_window)                            \
  op(hard_sigmoid)                           \
  op(hard_swish)                             \
  op(hardmax)                                \
  op(identity)                               \
  op(if_else)                                \
  op(image_decoder)                          \
  op(instance_normalization)                 \
  op(is_inf)                                 \
  op(is_nan)                                 \
  op(layer_normalization)                    \
  op(leaky_relu)                             \
  op(less)                                   \
  op(less_or_equal)                          \
  op(linear_attention)                       \
  op(log)                                    \
  op(log_softmax)                            \
  op(logical_and)                            \
  op(logical_not)                            \
  op(logical_or)                             \
  op(logical_xor)                            \
  op(loop)                                   \
  op(lp_normalization)                       \
  op(lp_pool)                                \
  op(lrn)                                    \
  op(lstm)                                   \
  op(matmul)                                 \
  op(matmul_integer)                         \
  op(max)                                    \
  op(max_pool)                               \
  op(max_roi_pool)                           \
  op(max_unpool)                             \
  op(mean)                                   \
  op(mean_variance_normalization)            \
  op(mel_weight_matrix)                      \
  op(min)                                    \
  op(mish)                                   \
  op(ml_array_feature_extractor)             \
  op(ml_binarizer)                           \
  op(ml_feature_vectorizer)                  \
  op(ml_imputer)                             \
  op(ml_label_encoder)                       \
  op(ml_linear_classifier)                   \
  op(ml_linear_regressor)                    \
  op(ml_normalizer)                          \
  op(ml_one_hot_encoder)                     \
  op(ml_post_transform)                      \
  op(ml_scaler)                              \
  op(ml_svm_classifier)                      \
  op(ml_svm_regressor)                       \
  op(ml_tree_ensemble)                       \
  op(ml_tree_ensemble_classifier)            \
  op(ml_tree_ensemble_regressor)             \
  op(mod)                                    \
  op(momentum)                               \
  op(ms_bias_gelu)                           \
  op(ms_fast_gelu)                           \
  op(ms_fused_conv)                          \
  op(ms_fused_gemm)                          \
  op(ms_fused_matmul)                        \
  op(ms_gelu)                                \
  op(ms_qgemm)                               \
  op(ms_qlinear_add)                         \
  op(ms_qlinear_average_pool)                \
  op(ms_qlinear_concat)                      \
  op(ms_qlinear_global_average_pool)         \
  op(ms_qlinear_leaky_relu)                  \
  op(ms_qlinear_mul)                         \
  op(ms_qlinear_sigmoid)                     \
  op(ms_qlinear_softmax)                     \
  op(ms_quick_gelu)                          \
  op(ms_simplified_layer_normalization)      \
  op(ms_skip_layer_normalization)            \
  op(ms_skip_simplified_layer_normalization) \
  op(mul)                                    \
  op(multinomial)                            \
  op(neg)                                    \
  op(negative_log_likelihood_loss)           \
  op(non_max_suppression)                    \
  op(non_zero)                               \
  op(one_hot)                                \
  op(optional)                               \
  op(optional_get_element)                   \
  op(optional_has_element)                   \
  op(pad)                                    \
  op(pow)                                    \
  op(prelu)                                  \
  op(qlinear_conv)                           \
  op(qlinear_matmul)                         \
  op(quantize_linear)                        \
  op(random_normal)                          \
  op(random_normal_like)                     \
  op(random_uniform)                         \
  op(random_uniform_like)                    \
  op(range)                                  \
  op(reciprocal)                             \
  op(reduce_l1)                              \
  op(reduce_l2)                              \
  op(reduce_log_sum)                         \
  op(reduce_log_sum_exp)                     \
  op(reduce_max)                             \
  op(reduce_mean)                            \
  op(reduce_min)                             \
  op(reduce_prod)                            \
  op(reduce_sum)                             \
  op(reduce_sum_square)                      \
  op(regex_full_match)                       \
  op(relu)                                   \
  op(reshape)                                \
  op(resize)                                 \
  op(reverse_sequence)                       \
  op(rms_normalization)                      \
  op(rnn)                                    \
  op(roi_align)                              \
  op(rotary_embedding)                       \
  op(round)                                  \
  op(scan)                                   \
  op(scatter_elements)                       \
  op(scatter_nd)                             \
  op(selu)                                   \
  op(sequence_at)                            \
  op(sequence_construct)                     \
  op(sequence_empty)                         \
  op(sequence_erase)                         \
  op(sequence_insert)                        \
  op(sequence_length)                        \
  op(shape)                                  \
  op(shrink)                                 \
  op(sigmoid)                                \
  op(sign)                                   \
  op(sin)                                    \
  op(sinh)                                   \
  op(size)                                   \
  op(slice)                                  \
  op(softmax)                                \
  op(softmax_cross_entropy_loss)             \
  op(softplus)                               \
  op(softsign)                               \
  op(space_to_depth)                         \
  op(split)                                  \
  op(split_to_sequence)                      \
  op(sqrt)                                   \
  op(squeeze)                                \
  op(stft)                                   \
  op(string_concat)                          \
  op(string_normalizer)                      \
  op(string_split)                           \
  op(sub)                                    \
  op(sum)                                    \
  op(swiglu)                                 \
  op(swish)                                  \
  op(tan)                                    \
  op(tanh)                                   \
  op(tensor_scatter)                         \
  op(tf_idf_vectorizer)                      \
  op(thresholded_relu)                       \
  op(tile)                                   \
  op(top_k)                                  \
  op(transpose)                              \
  op(trilu)                                  \
  op(unique)                                 \
  op(unsqueeze)                              \
  op(where)
// clang-format on

namespace op {
#define TESSERA_DECLARE(name) OpDef name();
TESSERA_OPERATORS(TESSERA_DECLARE)
#undef TESSERA_DECLARE
}  // namespace op

const std::vector<OpDef>& catalog() {
  static const std::vector<OpDef> kAll = [] {
    std::vector<OpDef> all;
#define TESSERA_LIST(name) all.push_back(op::name());
    TESSERA_OPERATORS(TESSERA_LIST)
#undef TESSERA_LIST
    std::ranges::sort(all, {}, &OpDef::name);
    return all;
  }();
  return kAll;
}

const OpDef* find_op(std::string_view name) {
  const auto it = std::ranges::lower_bound(catalog(), name, {}, &OpDef::name);
  return it != catalog().end() && it->name == name ? &*it : nullptr;
}

}  // namespace tessera
