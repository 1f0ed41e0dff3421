#include "tessera/runtime/host/host.h"

#include <algorithm>
#include <array>

#include "tessera/runtime/host/functions.h"

namespace tessera::host {
namespace {

constexpr auto kTable = std::to_array<Entry>({
    {"bernoulli", bernoulli},
    {"bit_cast", bit_cast},
    {"cast_string", cast_string},
    {"compress", compress},
    {"concat_from_sequence", concat_from_sequence},
    {"det", det},
    {"image_decoder", image_decoder},
    {"max_unpool", max_unpool},
    {"ml_label_encoder", ml_label_encoder},
    {"ml_one_hot_encoder", ml_one_hot_encoder},
    {"ml_tree_ensemble", ml_tree_ensemble},
    {"ml_tree_ensemble_regressor", ml_tree_ensemble_regressor},
    {"multinomial", multinomial},
    {"non_max_suppression", non_max_suppression},
    {"non_zero", non_zero},
    {"optional", optional},
    {"optional_get_element", optional_get_element},
    {"optional_has_element", optional_has_element},
    {"random_normal", random_normal},
    {"random_normal_like", random_normal_like},
    {"random_uniform", random_uniform},
    {"random_uniform_like", random_uniform_like},
    {"regex_full_match", regex_full_match},
    {"sequence_at", sequence_at},
    {"sequence_construct", sequence_construct},
    {"sequence_empty", sequence_empty},
    {"sequence_erase", sequence_erase},
    {"sequence_insert", sequence_insert},
    {"sequence_length", sequence_length},
    {"split_to_sequence", split_to_sequence},
    {"string_concat", string_concat},
    {"string_normalizer", string_normalizer},
    {"string_split", string_split},
    {"tf_idf_vectorizer", tf_idf_vectorizer},
    {"top_k", top_k},
    {"unique", unique},
});
static_assert(std::ranges::is_sorted(kTable, {}, &Entry::name));

}  // namespace

Function find(std::string_view name) {
  const auto it = std::ranges::lower_bound(kTable, name, {}, &Entry::name);
  return it != kTable.end() && it->name == name ? it->function : nullptr;
}

std::span<const Entry> all() {
  return kTable;
}

}  // namespace tessera::host
