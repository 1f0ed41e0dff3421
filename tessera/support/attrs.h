#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/support/tensor.h"

namespace tessera {

/// Attributes of graph nodes: typed values by name, as in ONNX.
using Ints = std::vector<std::int64_t>;
using Floats = std::vector<double>;
using Strings = std::vector<std::string>;

/// Symbolic attribute value in a rewrite rule: stands for any value. An integer is a size of this
/// name, the entries of a list `s` are `s0`, `s1`, …, and a float is the input of this name, of
/// rank 0.
struct Symbol {
  std::string name;
  bool operator==(const Symbol&) const = default;
};

/// Value of one attribute of a node.
using Attr = std::variant<std::int64_t, double, std::string, Ints, Floats, Strings, Tensor, Symbol>;

/// Name of the kind of an attribute value: `int`, `floats`, …
std::string_view kind_of(const Attr& attr);

/// Equality and hash by content; tensors are compared byte by byte.
bool equal(const Attr& a, const Attr& b);
std::size_t hash_of(const Attr& attr);

/// Attributes of a node, sorted by name.
class Attrs {
 public:
  using Entry = std::pair<std::string, Attr>;

  Attrs() = default;
  Attrs(std::initializer_list<Entry> entries);

  void set(std::string_view name, Attr value);
  void erase(std::string_view name);
  const Attr* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

  /// Typed access to an attribute that exists and has this kind (the catalog has checked it).
  std::int64_t i(std::string_view name) const;
  double f(std::string_view name) const;
  const std::string& s(std::string_view name) const;
  const Ints& ints(std::string_view name) const;
  const Floats& floats(std::string_view name) const;
  const Strings& strings(std::string_view name) const;
  const Tensor& tensor(std::string_view name) const;

  const std::vector<Entry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  /// First attribute whose value is a Symbol, or null; a node with one cannot be executed.
  const Entry* symbolic() const;
  bool operator==(const Attrs& other) const;
  std::size_t hash() const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace tessera
