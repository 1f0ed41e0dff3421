#include "tessera/support/attrs.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tessera/support/check.h"
#include "tessera/support/hash.h"

namespace tessera {
namespace {

template <class T>
const T& get(const Attrs& attrs, std::string_view name) {
  const Attr* attr = attrs.find(name);
  TESSERA_CHECK(attr != nullptr, "attribute {} is missing", name);
  TESSERA_CHECK(std::holds_alternative<T>(*attr), "attribute {} is of kind {}", name,
                kind_of(*attr));
  return std::get<T>(*attr);
}

bool equal_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool equal_tensors(const Tensor& a, const Tensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape || a.bytes.size() != b.bytes.size()) return false;
  if (a.dtype == DType::String) return *a.strings == *b.strings;
  return a.bytes.size() == 0 || std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}

}  // namespace

std::string_view kind_of(const Attr& attr) {
  constexpr std::string_view kNames[] = {"int",    "float",   "string", "ints",
                                         "floats", "strings", "tensor", "symbol"};
  return kNames[attr.index()];
}

bool equal(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<double>(&a)) return equal_bits(*x, std::get<double>(b));
  if (const auto* x = std::get_if<Floats>(&a))
    return std::ranges::equal(*x, std::get<Floats>(b), equal_bits);
  if (const auto* x = std::get_if<Tensor>(&a)) return equal_tensors(*x, std::get<Tensor>(b));
  if (const auto* x = std::get_if<std::int64_t>(&a)) return *x == std::get<std::int64_t>(b);
  if (const auto* x = std::get_if<std::string>(&a)) return *x == std::get<std::string>(b);
  if (const auto* x = std::get_if<Ints>(&a)) return *x == std::get<Ints>(b);
  if (const auto* x = std::get_if<Symbol>(&a)) return *x == std::get<Symbol>(b);
  return std::get<Strings>(a) == std::get<Strings>(b);
}

std::size_t hash_of(const Attr& attr) {
  Hasher hasher;
  hasher.add(attr.index());
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Tensor>) {
          hasher.add(static_cast<std::uint64_t>(value.dtype));
          for (const std::int64_t extent : value.shape)
            hasher.add(static_cast<std::uint64_t>(extent));
          hasher.add_bytes(value.bytes.view());
          if (value.strings)
            for (const std::string& s : *value.strings) hasher.add_text(s);
        } else if constexpr (std::is_same_v<T, std::string>) {
          hasher.add_text(value);
        } else if constexpr (std::is_same_v<T, Symbol>) {
          hasher.add_text(value.name);
        } else if constexpr (std::is_same_v<T, Strings>) {
          for (const std::string& s : value) hasher.add_text(s);
        } else if constexpr (std::is_same_v<T, Ints> || std::is_same_v<T, Floats>) {
          for (const auto v : value) hasher.add(std::bit_cast<std::uint64_t>(v));
        } else {
          hasher.add(std::bit_cast<std::uint64_t>(value));
        }
      },
      attr);
  return hasher.value();
}

Attrs::Attrs(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.first, entry.second);
}

void Attrs::set(std::string_view name, Attr value) {
  const auto it = std::ranges::lower_bound(entries_, name, {}, &Entry::first);
  if (it != entries_.end() && it->first == name)
    it->second = std::move(value);
  else
    entries_.emplace(it, std::string(name), std::move(value));
}

void Attrs::erase(std::string_view name) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.first == name; });
}

const Attr* Attrs::find(std::string_view name) const {
  const auto it = std::ranges::lower_bound(entries_, name, {}, &Entry::first);
  return it != entries_.end() && it->first == name ? &it->second : nullptr;
}

const Attrs::Entry* Attrs::symbolic() const {
  const auto it = std::ranges::find_if(
      entries_, [](const Entry& entry) { return std::holds_alternative<Symbol>(entry.second); });
  return it == entries_.end() ? nullptr : &*it;
}

std::int64_t Attrs::i(std::string_view name) const {
  return get<std::int64_t>(*this, name);
}
double Attrs::f(std::string_view name) const {
  return get<double>(*this, name);
}
const std::string& Attrs::s(std::string_view name) const {
  return get<std::string>(*this, name);
}
const Ints& Attrs::ints(std::string_view name) const {
  return get<Ints>(*this, name);
}
const Floats& Attrs::floats(std::string_view name) const {
  return get<Floats>(*this, name);
}
const Strings& Attrs::strings(std::string_view name) const {
  return get<Strings>(*this, name);
}
const Tensor& Attrs::tensor(std::string_view name) const {
  return get<Tensor>(*this, name);
}

bool Attrs::operator==(const Attrs& other) const {
  return std::ranges::equal(entries_, other.entries_, [](const Entry& a, const Entry& b) {
    return a.first == b.first && equal(a.second, b.second);
  });
}

std::size_t Attrs::hash() const {
  Hasher hasher;
  for (const Entry& entry : entries_) {
    hasher.add_text(entry.first);
    hasher.add(hash_of(entry.second));
  }
  return hasher.value();
}

}  // namespace tessera
