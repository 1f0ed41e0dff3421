#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/support/attrs.h"
#include "tessera/support/expected.h"

/// The lines of TASO's rule files, before anything is made of them.
namespace tessera::rules::taso {

inline constexpr int kHighestRank = 8;

struct Input {
  std::string name;
  std::optional<int> rank = {};                    // nothing: any
  std::map<std::size_t, std::int64_t> fixed = {};  // axes whose size a comment fixes
};

/// A result of a call, or an input.
struct Reference {
  int line = 0;
  std::string name = {};
  std::size_t result = 0;
};

/// `name = op5x5[axis=1 s=1,1](a, b.1)`
struct Call {
  int line = 0;
  std::string name = {};
  std::string op = {};                       // without its window
  Ints window = {};                          // two sizes, where it is written with one
  std::map<std::string, Ints> numbers = {};  // options, by name
  std::map<std::string, std::string> words = {};
  std::vector<Reference> args = {};
};

struct Equation {
  Reference source, target;
};

struct Record {
  int line = 0;
  std::int64_t number = 0;
  std::vector<Input> inputs = {};
  std::vector<Call> source = {}, target = {};
  std::vector<Equation> maps = {};
  std::string about = {};  // the first equation in words
};

/// A diagnostic about a line.
Diagnostic malformed(int line, std::string message, std::string note = {});

Expected<std::vector<Record>> parse_records(std::string_view text);

}  // namespace tessera::rules::taso
