#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "tessera/runtime/host/arguments.h"
#include "tessera/runtime/host/functions.h"
#include "tessera/runtime/host/regex.h"
#include "tessera/runtime/host/utf8.h"

namespace tessera::host {
namespace {

struct Splitting {
  std::string delimiter;              // empty: blanks
  std::optional<std::int64_t> limit;  // how often at most
};

std::vector<std::string_view> parts_of(std::string_view text, const Splitting& splitting) {
  const bool by_blanks = splitting.delimiter.empty();
  const auto skip_blanks = [&] {
    if (by_blanks) text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  };
  std::vector<std::string_view> parts;
  skip_blanks();
  if (by_blanks && text.empty()) return parts;
  while (!splitting.limit || static_cast<std::int64_t>(parts.size()) < *splitting.limit) {
    const std::size_t end =
        by_blanks ? text.find_first_of(kBlanks) : text.find(splitting.delimiter);
    if (end == std::string_view::npos) break;
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + splitting.delimiter.size());
    skip_blanks();
    if (by_blanks && text.empty()) return parts;
  }
  parts.push_back(text);
  return parts;
}

/// Broadcast shape of two shapes.
Expected<Shape> broadcast(const Arguments& in, const Shape& a, const Shape& b) {
  Shape shape(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 1; i <= shape.size(); ++i) {
    const std::int64_t x = i <= a.size() ? a[a.size() - i] : 1;
    const std::int64_t y = i <= b.size() ? b[b.size() - i] : 1;
    if (x != y && x != 1 && y != 1)
      return in.fault(
          fmt::format("shapes {} and {} do not broadcast", shape_text(a), shape_text(b)));
    shape[shape.size() - i] = x == 1 ? y : x;
  }
  return shape;
}

/// Text at a position of the broadcast shape.
const std::string& broadcast_text(const Tensor& tensor, const Shape& shape, std::int64_t position) {
  std::int64_t at = 0, stride = 1;
  for (std::size_t i = 1; i <= tensor.shape.size(); ++i) {
    const std::int64_t extent = tensor.shape[tensor.shape.size() - i];
    const std::int64_t target = shape[shape.size() - i];
    if (extent != 1) at += position % target * stride;
    position /= target;
    stride *= extent;
  }
  return (*tensor.strings)[static_cast<std::size_t>(at)];
}

}  // namespace

Results string_concat(const Call& call) {
  const Arguments in(call, "string_concat");
  TESSERA_TRY(const Tensor x, in.text_tensor(0));
  TESSERA_TRY(const Tensor y, in.text_tensor(1));
  TESSERA_TRY(const Shape shape, broadcast(in, x.shape, y.shape));
  TESSERA_TRY(Draft out, in.allocate(DType::String, shape));
  std::int64_t text = 0;
  for (std::int64_t i = 0; i < out.count(); ++i) {
    const std::string& head = broadcast_text(x, shape, i);
    const std::string& tail = broadcast_text(y, shape, i);
    text += static_cast<std::int64_t>(head.size() + tail.size());
    TESSERA_TRY_DONE(in.fits(text, 1));
    out.text(i) = head + tail;
  }
  return in.results({std::move(out).finish()});
}

Results string_split(const Call& call) {
  const Arguments in(call, "string_split");
  TESSERA_TRY(const Tensor x, in.text_tensor(0));
  Splitting splitting;
  if (in.attrs().has("delimiter")) splitting.delimiter = in.attrs().s("delimiter");
  if (in.attrs().has("maxsplit") && in.attrs().i("maxsplit") >= 0)
    splitting.limit = in.attrs().i("maxsplit");

  std::vector<std::vector<std::string_view>> parts;
  std::size_t most = 0;
  TESSERA_TRY(Draft counts, in.allocate(DType::I64, x.shape));
  for (const std::string& text : *x.strings) {
    const std::int64_t at = std::ssize(parts);
    parts.push_back(parts_of(text, splitting));
    counts.set_integer(at, std::ssize(parts.back()));
    most = std::max(most, parts.back().size());
  }
  Shape shape = x.shape;
  shape.push_back(static_cast<std::int64_t>(most));
  TESSERA_TRY(Draft out, in.allocate(DType::String, std::move(shape), text_bytes(x)));
  for (std::size_t i = 0; i < parts.size(); ++i)
    for (std::size_t j = 0; j < parts[i].size(); ++j)
      out.text(static_cast<std::int64_t>(i * most + j)) = parts[i][j];
  return in.results({std::move(out).finish(), std::move(counts).finish()});
}

Results string_normalizer(const Call& call) {
  const Arguments in(call, "string_normalizer");
  TESSERA_TRY(const Tensor x, in.text_tensor(0));
  const bool fitting = x.shape.size() == 1 || (x.shape.size() == 2 && x.shape[0] == 1);
  if (!fitting) return in.fault(fmt::format("shape {}", shape_text(x.shape)), "[C] or [1, C]");
  const std::string& action = in.attrs().s("case_change_action");
  if (action != "LOWER" && action != "UPPER" && action != "NONE")
    return in.fault(fmt::format("case_change_action={}", action), "LOWER, UPPER or NONE");

  const bool sensitive = in.attrs().i("is_case_sensitive") != 0;
  const auto key = [&](const std::string& word) {
    return sensitive ? word : changed_case(word, lower_case);
  };
  std::set<std::string> stopwords;
  for (const std::string& word : in.strings("stopwords")) stopwords.insert(key(word));

  std::vector<std::string> kept;
  for (const std::string& word : *x.strings)
    if (stopwords.empty() || !stopwords.contains(key(word)))
      kept.push_back(action == "NONE"
                         ? word
                         : changed_case(word, action == "LOWER" ? lower_case : upper_case));
  if (kept.empty()) kept.emplace_back();
  Shape shape = with_extent(x.shape, x.shape.size() - 1, std::ssize(kept));
  return in.results({Tensor::of_strings(std::move(shape), std::move(kept))});
}

Results regex_full_match(const Call& call) {
  const Arguments in(call, "regex_full_match");
  TESSERA_TRY(const Tensor x, in.text_tensor(0));
  TESSERA_TRY(const Regex regex, Regex::parse(in.attrs().s("pattern")));
  TESSERA_TRY(Draft out, in.allocate(DType::Bool, x.shape));
  for (std::int64_t i = 0; i < out.count(); ++i)
    out.set_integer(i, regex.matches((*x.strings)[static_cast<std::size_t>(i)]) ? 1 : 0);
  return in.results({std::move(out).finish()});
}

}  // namespace tessera::host
