#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tessera/runtime/host/arguments.h"
#include "tessera/runtime/host/elements.h"
#include "tessera/runtime/host/functions.h"

namespace tessera::host {
namespace {

/// N-grams of one length, each with its index in the pool.
template <class Item>
using Grams = std::map<std::vector<Item>, std::size_t>;

struct Lengths {
  std::int64_t smallest, largest;
};

/// N-grams of the counted lengths, by length.
template <class Item>
Expected<std::map<std::int64_t, Grams<Item>>> gram_pool(const Arguments& in,
                                                        const std::vector<Item>& pool,
                                                        const Lengths& lengths) {
  const Ints& starts = in.attrs().ints("ngram_counts");
  const Ints& columns = in.attrs().ints("ngram_indexes");
  std::map<std::int64_t, Grams<Item>> grams;
  std::size_t number = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto length = static_cast<std::int64_t>(i) + 1;
    const std::int64_t end = i + 1 < starts.size() ? starts[i + 1] : std::ssize(pool);
    if (starts[i] < 0 || starts[i] > end || end > std::ssize(pool) ||
        (end - starts[i]) % length != 0)
      return in.fault(fmt::format("ngram_counts: {}-grams from {} to {} in a pool of {}", length,
                                  starts[i], end, pool.size()));
    for (auto item = pool.begin() + starts[i]; item != pool.begin() + end; item += length) {
      if (number == columns.size())
        return in.fault(
            fmt::format("ngram_indexes has {} entries, the pool more n-grams", columns.size()));
      if (length >= lengths.smallest && length <= lengths.largest)
        grams[length][std::vector<Item>(item, item + length)] = number;
      ++number;
    }
  }
  return grams;
}

/// Counts the n-grams of a row into `counts`, by their index in the pool.
template <class Item>
void count_grams(const std::map<std::int64_t, Grams<Item>>& pool, std::span<const Item> row,
                 std::int64_t max_skip, std::vector<double>& counts) {
  const std::int64_t size = std::ssize(row);
  for (const auto& [length, grams] : pool) {
    std::vector<Item> gram(static_cast<std::size_t>(length));
    // A 1-gram has nothing to skip, so it counts once.
    const std::int64_t skips = length == 1 ? 0 : std::min(max_skip, size);
    for (std::int64_t step = 1; step <= skips + 1; ++step) {
      const std::int64_t reach = step * (length - 1);
      for (std::int64_t start = 0; start + reach < size; ++start) {
        for (std::int64_t i = 0; i < length; ++i)
          gram[static_cast<std::size_t>(i)] = row[static_cast<std::size_t>(start + i * step)];
        if (const auto found = grams.find(gram); found != grams.end()) ++counts[found->second];
      }
    }
  }
}

template <class Item>
Results vectorized(const Arguments& in, const Tensor& x, const std::vector<Item>& items,
                   const std::vector<Item>& pool) {
  const Ints& columns = in.attrs().ints("ngram_indexes");
  const Floats weights = in.floats("weights");
  const std::string& mode = in.attrs().s("mode");
  const Lengths lengths{in.attrs().i("min_gram_length"), in.attrs().i("max_gram_length")};
  const std::int64_t max_skip = in.attrs().i("max_skip_count");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return in.fault(fmt::format("mode={}", mode), "TF, IDF or TFIDF");
  if (lengths.smallest < 1 || lengths.largest < lengths.smallest || max_skip < 0)
    return in.fault(fmt::format("min_gram_length={}, max_gram_length={}, max_skip_count={}",
                                lengths.smallest, lengths.largest, max_skip));
  if (columns.empty() || std::ranges::min(columns) < 0)
    return in.fault("ngram_indexes is empty or has a negative entry");
  if (!weights.empty() && weights.size() != columns.size())
    return in.fault(fmt::format("{} weights for {} n-grams", weights.size(), columns.size()));
  if (x.shape.empty() || x.shape.size() > 2)
    return in.fault(fmt::format("shape {}", shape_text(x.shape)), "[C] or [N, C] is expected");
  TESSERA_TRY(const auto grams, gram_pool(in, pool, lengths));

  const std::int64_t last = std::ranges::max(columns);
  TESSERA_TRY_DONE(in.fits(last, sizeof(float)));
  Shape shape = x.shape;
  shape.back() = last + 1;
  TESSERA_TRY(Draft out, in.allocate(DType::F32, shape));
  const std::int64_t rows = shape.size() == 2 ? shape[0] : 1;
  const auto width = static_cast<std::size_t>(x.shape.back());
  std::vector<double> row(static_cast<std::size_t>(rows == 0 ? 0 : last + 1));
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<double> counts(columns.size());
    count_grams<Item>(grams, std::span(items).subspan(static_cast<std::size_t>(r) * width, width),
                      max_skip, counts);
    std::ranges::fill(row, 0.0);
    for (std::size_t g = 0; g < columns.size(); ++g) {
      const double count = mode == "IDF" ? std::min(counts[g], 1.0) : counts[g];
      const double weight = mode == "TF" || weights.empty() ? 1.0 : weights[g];
      row[static_cast<std::size_t>(columns[g])] += count * weight;
    }
    for (std::size_t c = 0; c < row.size(); ++c)
      out.set_number(r * (last + 1) + static_cast<std::int64_t>(c), row[c]);
  }
  return in.results({std::move(out).finish()});
}

}  // namespace

Results tf_idf_vectorizer(const Call& call) {
  const Arguments in(call, "tf_idf_vectorizer");
  TESSERA_TRY(const Tensor x, in.tensor(0));
  const Ints integers = in.ints("pool_int64s");
  const Strings words = in.strings("pool_strings");
  if (integers.empty() == words.empty())
    return in.fault("both pools are given or none", "one of pool_int64s and pool_strings");
  if (!words.empty()) {
    TESSERA_TRY_DONE(in.text_tensor(0));
    return vectorized<std::string>(in, x, *x.strings, words);
  }
  TESSERA_TRY_DONE(in.integer_tensor(0));
  return vectorized<std::int64_t>(in, x, integers_of(x), integers);
}

}  // namespace tessera::host
