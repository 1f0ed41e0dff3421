#include "tests/runtime/host/call.h"

namespace tessera::host {
namespace {

struct Grams {
  std::int64_t smallest = 1, largest = 2, skip = 0;
  std::string mode = "TF";
  Ints starts = {0, 4};
  Ints columns = {0, 1, 2, 3, 4, 5, 6};
  Floats weights = {};

  Attrs attrs() const {
    Attrs all{{"min_gram_length", smallest},
              {"max_gram_length", largest},
              {"max_skip_count", skip},
              {"mode", mode},
              {"ngram_counts", starts},
              {"ngram_indexes", columns},
              {"pool_int64s", Ints{2, 3, 5, 4, /**/ 5, 6, 7, 8, 6, 7}}};
    if (!weights.empty()) all.set("weights", weights);
    return all;
  }
};

Tensor row() {
  return integers({12}, {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8});
}
Tensor rows() {
  return numbers(DType::I32, {2, 6}, {1, 1, 3, 3, 3, 7, /**/ 8, 6, 7, 5, 6, 8});
}

TEST(TfIdfVectorizer, CountsBigrams) {
  expect_result({"tf_idf_vectorizer", {row()}, Grams{.smallest = 2}.attrs()},
                floats({7}, {0, 0, 0, 0, 1, 1, 1}));
  expect_result({"tf_idf_vectorizer", {rows()}, Grams{.smallest = 2}.attrs()},
                floats({2, 7}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1}));
}

TEST(TfIdfVectorizer, SkipsItems) {
  expect_result({"tf_idf_vectorizer", {row()}, Grams{.smallest = 2, .skip = 5}.attrs()},
                floats({7}, {0, 0, 0, 0, 1, 3, 1}));
  expect_result({"tf_idf_vectorizer", {rows()}, Grams{.smallest = 2, .skip = 5}.attrs()},
                floats({2, 7}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}));
}

TEST(TfIdfVectorizer, CountsUnigramsOnceWhateverTheSkips) {
  expect_result({"tf_idf_vectorizer", {row()}, Grams{.skip = 5}.attrs()},
                floats({7}, {0, 3, 1, 0, 1, 3, 1}));
}

TEST(TfIdfVectorizer, TakesALevelWithoutGrams) {
  Attrs attrs = Grams{.smallest = 2, .starts = {0, 0}, .columns = {0, 1, 2}}.attrs();
  attrs.set("pool_int64s", Ints{5, 6, 7, 8, 6, 7});
  expect_result({"tf_idf_vectorizer", {row()}, attrs}, floats({3}, {1, 1, 1}));
}

TEST(TfIdfVectorizer, WeighsByThePlaceInThePool) {
  Attrs attrs = Grams{.largest = 1,
                      .mode = "TFIDF",
                      .starts = {0},
                      .columns = {2, 0, 1},
                      .weights = {10, 20, 30}}
                    .attrs();
  attrs.set("pool_int64s", Ints{5, 6, 7});
  const Tensor x = integers({6}, {5, 6, 6, 7, 7, 7});
  expect_result({"tf_idf_vectorizer", {x}, attrs}, floats({3}, {40, 90, 10}));
  attrs.set("mode", std::string("IDF"));
  expect_result({"tf_idf_vectorizer", {x}, attrs}, floats({3}, {20, 30, 10}));
}

TEST(TfIdfVectorizer, TakesWords) {
  Attrs attrs = Grams{.starts = {0, 1}, .columns = {0, 1}}.attrs();
  attrs.erase("pool_int64s");
  attrs.set("pool_strings", Strings{"a", "a", "b"});
  expect_result({"tf_idf_vectorizer", {texts({4}, {"a", "b", "a", "a"})}, attrs},
                floats({2}, {3, 1}));
}

TEST(TfIdfVectorizer, RefusesBadInput) {
  const auto refused = [](const Grams& grams, std::string_view message) {
    expect_refused({"tf_idf_vectorizer", {row()}, grams.attrs()}, message);
  };
  refused({.mode = "FT"}, "mode=FT");
  refused({.smallest = 0}, "min_gram_length=0, max_gram_length=2, max_skip_count=0");
  refused({.skip = -1}, "min_gram_length=1, max_gram_length=2, max_skip_count=-1");
  refused({.starts = {0, 11}}, "ngram_counts: 1-grams from 0 to 11 in a pool of 10");
  refused({.starts = {0, -1}}, "ngram_counts: 1-grams from 0 to -1 in a pool of 10");
  refused({.starts = {0, 5}}, "ngram_counts: 2-grams from 5 to 10 in a pool of 10");
  refused({.columns = {0}}, "ngram_indexes has 1 entries, the pool more n-grams");
  refused({.columns = {}}, "ngram_indexes is empty or has a negative entry");
  refused({.columns = {0, -1}}, "ngram_indexes is empty or has a negative entry");
  expect_too_large({"tf_idf_vectorizer",
                    {row()},
                    Grams{.columns = {0, 1, 2, 3, 4, 5, 9223372036854775807}}.attrs()},
                   "9223372036854775807 elements of 4 bytes");
  refused({.weights = {1}}, "1 weights for 7 n-grams");
  expect_refused({"tf_idf_vectorizer", {texts({1}, {"a"})}, Grams{}.attrs()},
                 "input 0 has dtype string");
  expect_refused({"tf_idf_vectorizer", {scalar(1)}, Grams{}.attrs()}, "shape []");
  Attrs both = Grams{}.attrs();
  both.set("pool_strings", Strings{"a"});
  expect_refused({"tf_idf_vectorizer", {row()}, both}, "both pools are given or none");
}

}  // namespace
}  // namespace tessera::host
