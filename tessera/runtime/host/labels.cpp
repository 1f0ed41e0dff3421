#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "tessera/runtime/host/arguments.h"
#include "tessera/runtime/host/elements.h"
#include "tessera/runtime/host/functions.h"

namespace tessera::host {
namespace {

Tensor text_list(const Strings& list) {
  return Tensor::of_strings({std::ssize(list)}, list);
}
Tensor float_list(const Floats& list) {
  const std::vector<float> elements(list.begin(), list.end());
  return Tensor::of<float>(DType::F32, {std::ssize(list)}, elements);
}

/// The one of four lists that is given: keys or values.
Expected<Tensor> given_list(const Arguments& in, const std::string& kind) {
  std::vector<Tensor> lists;
  if (in.attrs().has(kind + "_tensor")) lists.push_back(in.attrs().tensor(kind + "_tensor"));
  if (const Strings list = in.strings(kind + "_strings"); !list.empty())
    lists.push_back(text_list(list));
  if (const Ints list = in.ints(kind + "_int64s"); !list.empty())
    lists.push_back(index_tensor(list));
  if (const Floats list = in.floats(kind + "_floats"); !list.empty())
    lists.push_back(float_list(list));
  if (lists.size() != 1)
    return in.fault(fmt::format("{} lists of {} are given", lists.size(), kind),
                    "there must be one");
  return lists[0];
}

/// Default value of elements that are not found.
Expected<Tensor> default_of(const Arguments& in, DType dtype) {
  if (in.attrs().has("default_tensor")) {
    const Tensor& tensor = in.attrs().tensor("default_tensor");
    if (tensor.count() != 1 || tensor.dtype != dtype)
      return in.fault(
          fmt::format("default_tensor is {}{}", to_string(tensor.dtype), shape_text(tensor.shape)),
          fmt::format("it must be one element of {}", to_string(dtype)));
    return tensor;
  }
  if (dtype == DType::String) return text_list({in.attrs().s("default_string")});
  Draft one(dtype, {1});
  if (is_float(dtype))
    one.set_number(0, in.attrs().f("default_float"));
  else
    one.set_integer(0, in.attrs().i("default_int64"));
  return std::move(one).finish();
}

/// Canonical key: floats by value, with all NaN equal.
template <class Key>
Key canonical(Key key) {
  if constexpr (std::is_floating_point_v<Key>)
    if (std::isnan(key)) return std::numeric_limits<Key>::quiet_NaN();
  return key;
}

struct Same {
  template <class Key>
  bool operator()(const Key& a, const Key& b) const {
    if constexpr (std::is_floating_point_v<Key>)
      if (std::isnan(a) && std::isnan(b)) return true;
    return a == b;
  }
};

}  // namespace

Results ml_label_encoder(const Call& call) {
  const Arguments in(call, "ml_label_encoder");
  TESSERA_TRY(const Tensor x, in.tensor(0));
  TESSERA_TRY(const Tensor keys, given_list(in, "keys"));
  TESSERA_TRY(const Tensor values, given_list(in, "values"));
  TESSERA_TRY(const Tensor otherwise, default_of(in, values.dtype));
  if (keys.count() != values.count())
    return in.fault(fmt::format("{} keys have {} values", keys.count(), values.count()));
  if (keys.dtype != x.dtype)
    return in.fault(fmt::format("keys are {}", to_string(keys.dtype)),
                    fmt::format("x is {}", to_string(x.dtype)));

  std::vector<std::int64_t> found(static_cast<std::size_t>(x.count()), -1);
  visit_elements(keys, [&]<class Elements>(const Elements& known) {
    using Key = typename Elements::Key;
    std::unordered_map<Key, std::int64_t, std::hash<Key>, Same> places;
    for (std::int64_t i = 0; i < keys.count(); ++i)
      places.insert_or_assign(canonical<Key>(known[i]), i);  // the last of equal keys counts
    const Elements elements(x);
    for (std::int64_t i = 0; i < x.count(); ++i)
      if (const auto place = places.find(canonical<Key>(elements[i])); place != places.end())
        found[static_cast<std::size_t>(i)] = place->second;
  });
  std::int64_t text = 0;
  if (values.dtype == DType::String)
    for (const std::int64_t place : found) {
      const Tensor& source = place < 0 ? otherwise : values;
      text +=
          std::ssize((*source.strings)[static_cast<std::size_t>(std::max<std::int64_t>(place, 0))]);
    }
  TESSERA_TRY(Draft out, in.allocate(values.dtype, x.shape, text));
  for (std::int64_t i = 0; i < x.count(); ++i) {
    const std::int64_t place = found[static_cast<std::size_t>(i)];
    out.copy(i, place < 0 ? otherwise : values, std::max<std::int64_t>(place, 0), 1);
  }
  return in.results({std::move(out).finish()});
}

Results ml_one_hot_encoder(const Call& call) {
  const Arguments in(call, "ml_one_hot_encoder");
  TESSERA_TRY(const Tensor x, in.tensor(0));
  const Ints ints = in.ints("cats_int64s");
  const Strings strings = in.strings("cats_strings");
  if ((x.dtype == DType::String) != ints.empty())
    return in.fault(fmt::format("x is {}", to_string(x.dtype)),
                    "text is looked up in cats_strings, numbers in cats_int64s");
  const auto categories = static_cast<std::int64_t>(ints.size() + strings.size());
  Shape shape = x.shape;
  shape.push_back(categories);
  TESSERA_TRY(Draft out, in.allocate(DType::F32, std::move(shape)));
  std::unordered_map<std::int64_t, std::int64_t> by_number;
  std::unordered_map<std::string, std::int64_t> by_text;
  for (std::size_t i = 0; i < ints.size(); ++i)
    by_number.insert_or_assign(ints[i], static_cast<std::int64_t>(i));
  for (std::size_t i = 0; i < strings.size(); ++i)
    by_text.insert_or_assign(strings[i], static_cast<std::int64_t>(i));

  const bool must_be_known = in.attrs().i("zeros") == 0;
  return visit_elements(x, [&]<class Elements>(const Elements& elements) -> Results {
    for (std::int64_t i = 0; i < x.count(); ++i) {
      std::optional<std::int64_t> place;
      if constexpr (std::is_same_v<typename Elements::Key, std::string>) {
        if (const auto found = by_text.find(elements[i]); found != by_text.end())
          place = found->second;
      } else {
        // Numbers are truncated to integers; NaN and infinities have no category.
        const double number = static_cast<double>(elements[i]);
        if (std::is_floating_point_v<typename Elements::Key> && !(std::abs(number) < 0x1p63)) {
          place.reset();
        } else if (const auto found = by_number.find(static_cast<std::int64_t>(elements[i]));
                   found != by_number.end()) {
          place = found->second;
        }
      }
      if (place)
        out.set_number(i * categories + *place, 1);
      else if (must_be_known)
        return in.fault(fmt::format("element {} is of no category", i),
                        "zeros=0 asks for one of each");
    }
    return in.results({std::move(out).finish()});
  });
}

}  // namespace tessera::host
