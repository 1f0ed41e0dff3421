#include "tessera/onnx/operator_table.h"

#include <algorithm>
#include <map>

#include "tessera/onnx/adapt.h"

namespace tessera::onnx {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr std::string_view kClassic = "ai.onnx.ml";
constexpr std::string_view kPreview = "ai.onnx.preview";
constexpr std::string_view kTraining = "ai.onnx.preview.training";

// clang-format off
constexpr OperatorRow kOperatorTable[] = {
    {"Abs", "abs"},
    {"Acos", "acos", 7},
    {"Acosh", "acosh", 9},
    {"Add", "add", 7},
    {"Add", "add", 1, adapt::legacy_broadcast},
    {"AffineGrid", "affine_grid", 20},
    {"And", "logical_and", 7},
    {"And", "logical_and", 1, adapt::legacy_broadcast},
    {"ArgMax", "arg_max"},
    {"ArgMin", "arg_min"},
    {"Asin", "asin", 7},
    {"Asinh", "asinh", 9},
    {"Atan", "atan", 7},
    {"Atanh", "atanh", 9},
    {"Attention", "attention", 23},
    {"AveragePool", "average_pool"},
    {"BatchNormalization", "batch_normalization", 14},
    {"BatchNormalization", "batch_normalization", 1, adapt::batch_norm_by_mode},
    {"Bernoulli", "bernoulli", 15},
    {"BitCast", "bit_cast", 26, adapt::bits_or_cast},
    {"BitShift", "bit_shift", 11},
    {"BitwiseAnd", "bitwise_and", 18},
    {"BitwiseNot", "bitwise_not", 18},
    {"BitwiseOr", "bitwise_or", 18},
    {"BitwiseXor", "bitwise_xor", 18},
    {"BlackmanWindow", "blackman_window", 17},
    {"Cast", "cast", 1, adapt::cast_or_text},
    {"CastLike", "cast_like", 15, adapt::cast_or_text},
    {"CausalConvWithState", "causal_conv_with_state", 27},
    {"Ceil", "ceil"},
    {"Celu", "celu", 12},
    {"CenterCropPad", "center_crop_pad", 18},
    {"Clip", "clip", 11},
    {"Clip", "clip", 1, adapt::limits_from_attributes},
    {"Col2Im", "col2im", 18},
    {"Compress", "compress", 9, adapt::axis_from_start},
    {"Concat", "concat", 4},
    {"Concat", "concat", 1, adapt::axis_is_one},
    {"ConcatFromSequence", "concat_from_sequence", 11},
    {"Constant", "", 1, adapt::constant},
    {"ConstantOfShape", "constant_of_shape", 9},
    {"Conv", "conv"},
    {"ConvInteger", "conv_integer", 10},
    {"ConvTranspose", "conv_transpose"},
    {"Cos", "cos", 7},
    {"Cosh", "cosh", 9},
    {"CumProd", "cum_prod", 26},
    {"CumSum", "cum_sum", 11},
    {"DFT", "dft", 20},
    {"DFT", "dft", 17, adapt::dft_axis_from_attribute},
    {"DeformConv", "deform_conv", 19},
    {"DepthToSpace", "depth_to_space"},
    {"DequantizeLinear", "dequantize_linear", 10},
    {"Det", "det", 11},
    {"Div", "div", 7},
    {"Div", "div", 1, adapt::legacy_broadcast},
    {"Dropout", "dropout", 12},
    {"Dropout", "dropout", 1, adapt::ratio_from_attribute},
    {"DynamicQuantizeLinear", "dynamic_quantize_linear", 11},
    {"Einsum", "einsum", 12},
    {"Elu", "elu"},
    {"Equal", "equal", 7},
    {"Equal", "equal", 1, adapt::legacy_broadcast},
    {"Erf", "erf", 9},
    {"Exp", "exp"},
    {"Expand", "expand", 8},
    {"EyeLike", "eye_like", 9},
    {"Flatten", "flatten"},
    {"Floor", "floor"},
    {"GRU", "gru", 7},
    {"GRU", "gru", 1, adapt::without_output_sequence},
    {"Gather", "gather"},
    {"GatherElements", "gather_elements", 11},
    {"GatherND", "gather_nd", 11},
    {"Gelu", "gelu", 20},
    {"Gemm", "gemm", 7},
    {"Gemm", "gemm", 1, adapt::without_broadcast},
    {"GlobalAveragePool", "global_average_pool"},
    {"GlobalLpPool", "global_lp_pool"},
    {"GlobalMaxPool", "global_max_pool"},
    {"Greater", "greater", 7},
    {"Greater", "greater", 1, adapt::legacy_broadcast},
    {"GreaterOrEqual", "greater_or_equal", 12},
    {"GridSample", "grid_sample", 20},
    {"GridSample", "grid_sample", 16, adapt::grid_modes},
    {"GroupNormalization", "group_normalization", 21},
    {"GroupNormalization", "group_normalization", 18, adapt::scale_per_group},
    {"HammingWindow", "hamming_window", 17},
    {"HannWindow", "hann_window", 17},
    {"HardSigmoid", "hard_sigmoid"},
    {"HardSwish", "hard_swish", 14},
    {"Hardmax", "hardmax", 13},
    {"Hardmax", "hardmax", 1, adapt::coerced_to_matrix},
    {"Identity", "identity", 1, adapt::identity},
    {"If", "if_else"},
    {"ImageDecoder", "image_decoder", 20},
    {"InstanceNormalization", "instance_normalization"},
    {"IsInf", "is_inf", 10},
    {"IsNaN", "is_nan", 9},
    {"LRN", "lrn"},
    {"LSTM", "lstm", 7},
    {"LSTM", "lstm", 1, adapt::without_output_sequence},
    {"LayerNormalization", "layer_normalization", 17},
    {"LeakyRelu", "leaky_relu"},
    {"Less", "less", 7},
    {"Less", "less", 1, adapt::legacy_broadcast},
    {"LessOrEqual", "less_or_equal", 12},
    {"LinearAttention", "linear_attention", 27},
    {"Log", "log"},
    {"LogSoftmax", "log_softmax", 13},
    {"LogSoftmax", "log_softmax", 1, adapt::coerced_to_matrix},
    {"Loop", "loop"},
    {"LpNormalization", "lp_normalization"},
    {"LpPool", "lp_pool"},
    {"MatMul", "matmul"},
    {"MatMulInteger", "matmul_integer", 10},
    {"Max", "max"},
    {"MaxPool", "max_pool"},
    {"MaxRoiPool", "max_roi_pool"},
    {"MaxUnpool", "max_unpool", 9},
    {"Mean", "mean"},
    {"MeanVarianceNormalization", "mean_variance_normalization", 9},
    {"MelWeightMatrix", "mel_weight_matrix", 17},
    {"Min", "min"},
    {"Mish", "mish", 18},
    {"Mod", "mod", 10},
    {"Mul", "mul", 7},
    {"Mul", "mul", 1, adapt::legacy_broadcast},
    {"Multinomial", "multinomial", 7},
    {"Neg", "neg"},
    {"NegativeLogLikelihoodLoss", "negative_log_likelihood_loss", 12},
    {"NonMaxSuppression", "non_max_suppression", 10},
    {"NonZero", "non_zero", 9},
    {"Not", "logical_not"},
    {"OneHot", "one_hot", 9},
    {"Optional", "optional", 15},
    {"OptionalGetElement", "optional_get_element", 15},
    {"OptionalHasElement", "optional_has_element", 15},
    {"Or", "logical_or", 7},
    {"Or", "logical_or", 1, adapt::legacy_broadcast},
    {"PRelu", "prelu", 7},
    {"PRelu", "prelu", 1, adapt::slope_per_channel},
    {"Pad", "pad", 11},
    {"Pad", "pad", 1, adapt::pads_from_attributes},
    {"Pow", "pow", 7},
    {"Pow", "pow", 1, adapt::legacy_broadcast},
    {"QLinearConv", "qlinear_conv", 10},
    {"QLinearMatMul", "qlinear_matmul", 10},
    {"QuantizeLinear", "quantize_linear", 10},
    {"RMSNormalization", "rms_normalization", 23},
    {"RNN", "rnn", 7},
    {"RNN", "rnn", 1, adapt::without_output_sequence},
    {"RandomNormal", "random_normal"},
    {"RandomNormalLike", "random_normal_like"},
    {"RandomUniform", "random_uniform"},
    {"RandomUniformLike", "random_uniform_like"},
    {"Range", "range", 11},
    {"Reciprocal", "reciprocal"},
    {"ReduceL1", "reduce_l1", 18},
    {"ReduceL1", "reduce_l1", 1, adapt::axes_from_attribute},
    {"ReduceL2", "reduce_l2", 18},
    {"ReduceL2", "reduce_l2", 1, adapt::axes_from_attribute},
    {"ReduceLogSum", "reduce_log_sum", 18},
    {"ReduceLogSum", "reduce_log_sum", 1, adapt::axes_from_attribute},
    {"ReduceLogSumExp", "reduce_log_sum_exp", 18},
    {"ReduceLogSumExp", "reduce_log_sum_exp", 1, adapt::axes_from_attribute},
    {"ReduceMax", "reduce_max", 18},
    {"ReduceMax", "reduce_max", 1, adapt::axes_from_attribute},
    {"ReduceMean", "reduce_mean", 18},
    {"ReduceMean", "reduce_mean", 1, adapt::axes_from_attribute},
    {"ReduceMin", "reduce_min", 18},
    {"ReduceMin", "reduce_min", 1, adapt::axes_from_attribute},
    {"ReduceProd", "reduce_prod", 18},
    {"ReduceProd", "reduce_prod", 1, adapt::axes_from_attribute},
    {"ReduceSum", "reduce_sum", 13},
    {"ReduceSum", "reduce_sum", 1, adapt::axes_from_attribute},
    {"ReduceSumSquare", "reduce_sum_square", 18},
    {"ReduceSumSquare", "reduce_sum_square", 1, adapt::axes_from_attribute},
    {"RegexFullMatch", "regex_full_match", 20},
    {"Relu", "relu"},
    {"Reshape", "reshape", 5},
    {"Reshape", "reshape", 1, adapt::shape_from_attribute},
    {"Resize", "resize", 11, adapt::empty_is_absent},
    {"Resize", "resize", 10, adapt::resize_by_scales},
    {"ReverseSequence", "reverse_sequence", 10},
    {"RoiAlign", "roi_align", 16},
    {"RoiAlign", "roi_align", 10, adapt::corner_pixels},
    {"RotaryEmbedding", "rotary_embedding", 23},
    {"Round", "round", 11},
    {"STFT", "stft", 17},
    {"Scan", "scan", 8},
    {"Scatter", "scatter_elements", 9, adapt::axis_from_start},
    {"ScatterElements", "scatter_elements", 11, adapt::axis_from_start},
    {"ScatterND", "scatter_nd", 11},
    {"Selu", "selu"},
    {"SequenceAt", "sequence_at", 11, adapt::element_of_pieces},
    {"SequenceConstruct", "sequence_construct", 11},
    {"SequenceEmpty", "sequence_empty", 11},
    {"SequenceErase", "sequence_erase", 11},
    {"SequenceInsert", "sequence_insert", 11},
    {"SequenceLength", "sequence_length", 11},
    {"SequenceMap", "", 17},
    {"Shape", "shape"},
    {"Shrink", "shrink", 9},
    {"Sigmoid", "sigmoid"},
    {"Sign", "sign", 9},
    {"Sin", "sin", 7},
    {"Sinh", "sinh", 9},
    {"Size", "size"},
    {"Slice", "slice", 10},
    {"Slice", "slice", 1, adapt::slice_from_attributes},
    {"Softmax", "softmax", 13},
    {"Softmax", "softmax", 1, adapt::coerced_to_matrix},
    {"SoftmaxCrossEntropyLoss", "softmax_cross_entropy_loss", 12},
    {"Softplus", "softplus"},
    {"Softsign", "softsign"},
    {"SpaceToDepth", "space_to_depth"},
    {"Split", "split", 13, adapt::split_evenly},
    {"Split", "split", 1, adapt::split_from_attribute},
    {"SplitToSequence", "split_to_sequence", 11, adapt::pieces},
    {"Sqrt", "sqrt"},
    {"Squeeze", "squeeze", 13},
    {"Squeeze", "squeeze", 1, adapt::axes_from_attribute},
    {"StringConcat", "string_concat", 20},
    {"StringNormalizer", "string_normalizer", 10},
    {"StringSplit", "string_split", 20},
    {"Sub", "sub", 7},
    {"Sub", "sub", 1, adapt::legacy_broadcast},
    {"Sum", "sum"},
    {"SwiGLU", "swiglu", 28},
    {"Swish", "swish", 24},
    {"Tan", "tan", 7},
    {"Tanh", "tanh"},
    {"TensorScatter", "tensor_scatter", 24, adapt::axis_from_start},
    {"TfIdfVectorizer", "tf_idf_vectorizer", 9},
    {"ThresholdedRelu", "thresholded_relu", 10},
    {"Tile", "tile", 6},
    {"Tile", "tile", 1, adapt::tiles_along_axis},
    {"TopK", "top_k", 10, adapt::axis_from_start},
    {"TopK", "top_k", 1, adapt::k_from_attribute},
    {"Transpose", "transpose"},
    {"Trilu", "trilu", 14},
    {"Unique", "unique", 11, adapt::axis_from_start},
    {"Unsqueeze", "unsqueeze", 13},
    {"Unsqueeze", "unsqueeze", 1, adapt::axes_from_attribute},
    {"Upsample", "resize", 1, adapt::resize_by_scales},
    {"Where", "where", 9},
    {"Xor", "logical_xor", 7},
    {"Xor", "logical_xor", 1, adapt::legacy_broadcast},
    // ONNX Runtime writes this one without a domain of its own.
    {"SimplifiedLayerNormalization", "ms_simplified_layer_normalization"},
    {"BiasGelu", "ms_bias_gelu", 1, nullptr, kMicrosoft},
    {"DynamicQuantizeMatMul", "ms_dynamic_quantize_matmul", 1, nullptr, kMicrosoft},
    {"FastGelu", "ms_fast_gelu", 1, nullptr, kMicrosoft},
    {"FusedConv", "ms_fused_conv", 1, nullptr, kMicrosoft},
    {"FusedGemm", "ms_fused_gemm", 1, nullptr, kMicrosoft},
    {"FusedMatMul", "ms_fused_matmul", 1, nullptr, kMicrosoft},
    {"Gelu", "ms_gelu", 1, nullptr, kMicrosoft},
    {"MatMulIntegerToFloat", "ms_matmul_integer_to_float", 1, nullptr, kMicrosoft},
    {"NhwcMaxPool", "ms_nhwc_max_pool", 1, nullptr, kMicrosoft},
    {"QGemm", "ms_qgemm", 1, nullptr, kMicrosoft},
    {"QLinearAdd", "ms_qlinear_add", 1, nullptr, kMicrosoft},
    {"QLinearAveragePool", "ms_qlinear_average_pool", 1, nullptr, kMicrosoft},
    {"QLinearConcat", "ms_qlinear_concat", 1, nullptr, kMicrosoft},
    {"QLinearConv", "ms_qlinear_conv", 1, nullptr, kMicrosoft},
    {"QLinearGlobalAveragePool", "ms_qlinear_global_average_pool", 1, nullptr, kMicrosoft},
    {"QLinearLeakyRelu", "ms_qlinear_leaky_relu", 1, nullptr, kMicrosoft},
    {"QLinearMul", "ms_qlinear_mul", 1, nullptr, kMicrosoft},
    {"QLinearSigmoid", "ms_qlinear_sigmoid", 1, nullptr, kMicrosoft},
    {"QLinearSoftmax", "ms_qlinear_softmax", 1, nullptr, kMicrosoft},
    {"QuickGelu", "ms_quick_gelu", 1, nullptr, kMicrosoft},
    {"SkipLayerNormalization", "ms_skip_layer_normalization", 1, nullptr, kMicrosoft},
    {"SkipSimplifiedLayerNormalization", "ms_skip_simplified_layer_normalization", 1, nullptr, kMicrosoft},
    {"ArrayFeatureExtractor", "ml_array_feature_extractor", 1, nullptr, kClassic},
    {"Binarizer", "ml_binarizer", 1, nullptr, kClassic},
    {"CategoryMapper", "ml_label_encoder", 1, adapt::categories_as_keys, kClassic},
    {"FeatureVectorizer", "ml_feature_vectorizer", 1, nullptr, kClassic},
    {"Imputer", "ml_imputer", 1, nullptr, kClassic},
    {"LabelEncoder", "ml_label_encoder", 2, nullptr, kClassic},
    {"LabelEncoder", "ml_label_encoder", 1, adapt::classes_as_keys, kClassic},
    {"LinearClassifier", "ml_linear_classifier", 1, nullptr, kClassic},
    {"LinearRegressor", "ml_linear_regressor", 1, nullptr, kClassic},
    {"Normalizer", "ml_normalizer", 1, nullptr, kClassic},
    {"OneHotEncoder", "ml_one_hot_encoder", 1, nullptr, kClassic},
    {"SVMClassifier", "ml_svm_classifier", 1, nullptr, kClassic},
    {"SVMRegressor", "ml_svm_regressor", 1, nullptr, kClassic},
    {"Scaler", "ml_scaler", 1, nullptr, kClassic},
    {"TreeEnsemble", "ml_tree_ensemble", 5, adapt::trees_transformed_by_number, kClassic},
    {"TreeEnsembleClassifier", "ml_tree_ensemble_classifier", 1, nullptr, kClassic},
    {"TreeEnsembleRegressor", "ml_tree_ensemble_regressor", 1, adapt::trees_from_base_values, kClassic},
    {"FlexAttention", "", 1, nullptr, kPreview},
    {"Adagrad", "adagrad", 1, nullptr, kTraining},
    {"Adam", "adam", 1, nullptr, kTraining},
    {"Momentum", "momentum", 1, nullptr, kTraining},
};
// clang-format on

constexpr LaterPart kLaterParts[] = {
    {"average_pool", "dilations", 19},
    {"attention", "left_window_size", 25},
    {"attention", "nonpad_kv_seqlen", 24},
    {"attention", "right_window_size", 25},
    {"cast", "round_mode", 24},
    {"cast", "saturate", 19},
    {"cast_like", "round_mode", 24},
    {"cast_like", "saturate", 19},
    {"cast_string", "round_mode", 24},
    {"cast_string", "saturate", 19},
    {"dequantize_linear", "block_size", 21},
    {"dequantize_linear", "output_dtype", 23},
    {"lp_pool", "ceil_mode", 18},
    {"lp_pool", "dilations", 18},
    {"ml_label_encoder", "default_tensor", 4},
    {"ml_label_encoder", "keys_tensor", 4},
    {"ml_label_encoder", "values_tensor", 4},
    {"ml_tree_ensemble_classifier", "base_values_as_tensor", 3},
    {"ml_tree_ensemble_classifier", "class_weights_as_tensor", 3},
    {"ml_tree_ensemble_classifier", "nodes_hitrates_as_tensor", 3},
    {"ml_tree_ensemble_classifier", "nodes_values_as_tensor", 3},
    {"ml_tree_ensemble_regressor", "nodes_hitrates_as_tensor", 3},
    {"ml_tree_ensemble_regressor", "nodes_values_as_tensor", 3},
    {"ml_tree_ensemble_regressor", "target_weights_as_tensor", 3},
    {"pad", "axes", 18},
    {"quantize_linear", "block_size", 21},
    {"quantize_linear", "output_dtype", 21},
    {"quantize_linear", "precision", 23},
    {"quantize_linear", "saturate", 19},
    {"resize", "antialias", 18},
    {"resize", "axes", 18},
    {"resize", "keep_aspect_ratio_policy", 18},
    {"scatter_elements", "reduction", 18},
    {"scatter_nd", "reduction", 18},
    {"space_to_depth", "mode", 28},
    {"split", "num_outputs", 18},
};

/// Operators, separated by spaces, that accept a dtype later than the version in their row.
struct LaterDType {
  DType dtype;
  std::int64_t since;
  std::string_view ops;
};
constexpr LaterDType kLaterDTypes[] = {
    {DType::BF16, 19, "dequantize_linear quantize_linear"},
    {DType::BF16, 20, "is_inf"},
    {DType::BF16, 21, "qlinear_matmul"},
    {DType::BF16, 22,
     "acos acosh asin asinh atan atanh average_pool bernoulli conv conv_transpose cos cosh "
     "deform_conv det dropout elu eye_like global_average_pool global_lp_pool global_max_pool "
     "grid_sample gru hard_sigmoid hard_swish instance_normalization lp_normalization lp_pool lstm "
     "max_pool max_roi_pool max_unpool mish multinomial negative_log_likelihood_loss "
     "random_normal_like random_uniform_like rnn roi_align round selu sin sinh softplus softsign "
     "tan thresholded_relu"},
    {DType::BF16, 24, "split_to_sequence top_k"},
    {DType::BF16, 27, "range"},
    {DType::BF16, 28,
     "celu compress einsum one_hot optional optional_get_element optional_has_element "
     "reverse_sequence unique"},
    {DType::Bool, 20, "reduce_max reduce_min"},
    {DType::F16, 19, "dequantize_linear quantize_linear"},
    {DType::F16, 20, "is_inf"},
    {DType::F16, 21, "qlinear_matmul"},
    {DType::F16, 27, "range"},
    {DType::F16, 28, "celu"},
    {DType::F64, 28, "celu"},
    {DType::I16, 21, "dequantize_linear quantize_linear"},
    {DType::I16, 28, "bit_shift"},
    {DType::I32, 28, "bit_shift"},
    {DType::I64, 28, "bit_shift"},
    {DType::I8, 28, "bit_shift"},
    {DType::String, 19, "equal_string"},
    {DType::U16, 21, "dequantize_linear quantize_linear"},
};

/// Operators of which ONNX requires more than one output.
struct RequiredOutputs {
  std::string_view op;
  int count = 1;
  std::string_view flag = {};  // an attribute that is not 0 where it does; empty: always
};
constexpr RequiredOutputs kRequiredOutputs[] = {
    {"batch_normalization", 3, "training_mode"},
    {"causal_conv_with_state", 2},
    {"dynamic_quantize_linear", 3},
    {"linear_attention", 2},
    {"ml_linear_classifier", 2},
    {"ml_svm_classifier", 2},
    {"ml_tree_ensemble_classifier", 2},
    {"string_split", 2},
    {"top_k", 2},
};

constexpr std::string_view kDTypeAttributes[] = {
    "dtype",      "output_datatype",   "output_dtype", "precision",
    "stash_type", "softmax_precision", "to",
};

/// Operators that share their ONNX name with another one.
constexpr std::pair<std::string_view, std::string_view> kSameName[] = {{"cast_string", "cast"},
                                                                       {"equal_string", "equal"}};

}  // namespace

std::span<const OperatorRow> operator_table() {
  return kOperatorTable;
}
std::span<const LaterPart> later_parts() {
  return kLaterParts;
}

std::int64_t first_opset(std::string_view op, DType dtype) {
  for (const LaterDType& later : kLaterDTypes)
    if (later.dtype == dtype &&
        fmt::format(" {} ", later.ops).find(fmt::format(" {} ", op)) != std::string::npos)
      return later.since;
  return 1;
}

int required_outputs(std::string_view op, const Attrs& attrs) {
  for (const auto& [name, count, flag] : kRequiredOutputs)
    if (name == op && (flag.empty() || attrs.i(flag) != 0)) return count;
  return 1;
}

const OperatorRow* import_row(std::string_view domain, std::string_view name, std::int64_t opset) {
  using Key = std::pair<std::string_view, std::string_view>;
  static const std::map<Key, const OperatorRow*> kNewest = [] {
    std::map<Key, const OperatorRow*> newest;
    for (const OperatorRow& row : kOperatorTable) newest.try_emplace({row.domain, row.name}, &row);
    return newest;
  }();
  const auto found = kNewest.find({domain, name});
  if (found == kNewest.end()) return nullptr;
  for (const OperatorRow* row = found->second;
       row != std::end(kOperatorTable) && row->name == name && row->domain == domain; ++row)
    if (row->since <= opset) return row;
  return nullptr;
}

const OperatorRow* export_row(std::string_view op) {
  for (const auto& [other, same] : kSameName)
    if (op == other) op = same;
  const OperatorRow* newest = nullptr;
  for (const OperatorRow& row : kOperatorTable)
    if (row.op == op && (newest == nullptr || row.since > newest->since)) newest = &row;
  return newest;
}

bool is_dtype_attribute(std::string_view name) {
  return std::ranges::find(kDTypeAttributes, name) != std::end(kDTypeAttributes);
}

}  // namespace tessera::onnx
