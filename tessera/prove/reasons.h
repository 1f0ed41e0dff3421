#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tessera/certify/certificate.h"

namespace tessera::prove {

/// What may be used: each is >= 0, as every symbol is.
struct Premises {
  const std::vector<Dim>& list;
  std::optional<std::size_t> without = {};  // one that may not be used
  const Dim* avoiding = nullptr;            // an operation that those used may not speak of
};

/// Looks for reasons why sizes are not negative. Keeps sizes as vectors of numbers, for one proof
/// asks thousands of times about a few of them.
class Arithmetic {
 public:
  std::optional<certify::Reason> reason_for(const Dim& e, const Premises& premises);

 private:
  std::optional<certify::Reason> looked_for(const Dim& e, const Premises& premises);
  friend class Search;
  using Product = std::uint32_t;  // of atoms, by number; 0 is the empty one
  using Linear = std::vector<std::pair<Product, std::int64_t>>;

  const Linear& linear(const Dim& dim);
  Product product_of(std::vector<std::uint32_t> atoms);
  std::optional<Product> quotient(Product whole, Product part);
  Product times(Product a, Product b);

  std::map<Dim, std::uint32_t> atoms_;
  std::map<std::vector<std::uint32_t>, Product> products_;
  struct Info {
    std::vector<std::uint32_t> atoms;
    Dim dim;
    bool natural;            // not negative
    std::uint64_t mask = 0;  // a bit for each atom, by its number modulo 64
  };
  std::vector<Info> infos_ = {{{}, 1, true}};
  std::unordered_map<std::uint64_t, std::optional<Product>> quotients_;
  std::unordered_map<std::uint64_t, Product> multiples_;
  std::set<Linear> linears_;  // each once: equal ones have equal addresses
  std::unordered_map<const void*, std::pair<Dim, const Linear*>> known_;
  std::unordered_map<std::uint64_t, std::optional<certify::Reason>>
      found_;  // or looked for in vain
};

}  // namespace tessera::prove
