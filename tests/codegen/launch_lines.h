#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "tessera/codegen/compile.h"
#include "tessera/support/rng.h"
#include "tessera/support/tensor.h"
#include "tessera/tile/interp.h"
#include "tessera/tile/text.h"

/// Kernels as text with the launches to try them on, in paragraphs:
///
///   // launch f32[5, 7]; i32[5] below 7; *f32 35; n 5; grid 5
///   kernel pick(x: view f32[?, ?], at: view i32[?], out: *f32, n: i64) {
///     …
///   }
///
/// An argument is a view, `f32[5, 7] by [1, 5]` with strides; a pointer to so many elements,
/// `*f32 35`; or a number with a name for the reader. Behind it: `below 7`, integers from 0 to 6;
/// `edge`, the values at the ends of the type; `zero`; `at 0 + 3`, in the memory of argument 0,
/// from its element 3 on. `within 1e-4` is how far floats may be from the interpreter's, in
/// relation to their size; a few units of the last place unless said. A line `// for $T in f32 f64`
/// makes the paragraph stand for several, with `$T` replaced; `// not on a GPU: why` keeps it to
/// this computer.
namespace tessera::codegen {

struct LaunchLine {
  std::vector<tile::Argument> arguments;    // on memory of the buffer, once `place` was called
  std::vector<std::size_t> buffer, offset;  // of each argument
  std::vector<std::vector<std::byte>> memory;
  std::vector<DType> dtypes;  // of each buffer
  std::vector<std::size_t> bytes;
  tile::Grid grid = {1, 1, 1};
  double tolerance = 0;

  std::vector<tile::Argument> place(std::vector<std::vector<std::byte>>& on) const {
    on = memory;
    std::vector<tile::Argument> placed = arguments;
    for (std::size_t i = 0; i < placed.size(); ++i) {
      if (!placed[i].type.is_number()) placed[i].data = on[buffer[i]].data() + offset[i];
    }
    return placed;
  }
};

namespace launch_line {

inline std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t at; (at = text.find(by, from)) != std::string::npos; from = at + by.size())
    parts.push_back(text.substr(from, at - from));
  parts.push_back(text.substr(from));
  return parts;
}

inline tile::Extents numbers(const std::string& text) {
  tile::Extents result;
  std::istringstream in(text);
  for (std::string number; std::getline(in, number, ',');) result.push_back(std::stoll(number));
  return result;
}

/// Numbers where arithmetic has its edges, then others.
inline void fill(DType dtype, std::byte* data, std::int64_t count, const std::string& how,
                 Rng& rng) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kFloats[] = {
      0.0,     -0.0,   1.0,          -1.0,         kInf,   -kInf,   NAN,    0.5,    -2.5,   3.5,
      1e-40,   -1e-42, 65504.0,      1e30,         -1e38,  1e-310,  127.5,  -128.5, 255.49, 256.0,
      32767.9, -1e9,   2147483647.0, 4294967295.5, 9.3e18, -9.3e18, 1.9e19, 6e-8};
  constexpr std::int64_t kIntegers[] = {0,
                                        1,
                                        -1,
                                        2,
                                        -2,
                                        7,
                                        31,
                                        32,
                                        63,
                                        64,
                                        127,
                                        -128,
                                        128,
                                        255,
                                        32767,
                                        -32768,
                                        65535,
                                        2147483647,
                                        -2147483648ll,
                                        4294967295ll,
                                        std::numeric_limits<std::int64_t>::max(),
                                        std::numeric_limits<std::int64_t>::min(),
                                        -64,
                                        8,
                                        16,
                                        15};
  const bool edge = how.find("edge") != std::string::npos;
  const std::size_t below = how.find("below");
  const std::uint64_t limit = below == std::string::npos ? 0 : std::stoull(how.substr(below + 6));
  for (std::int64_t i = 0; i < count; ++i) {
    if (how.find("zero") != std::string::npos) {
      store_integer(dtype, data, i, 0);
    } else if (is_float(dtype)) {
      const double drawn = static_cast<double>(rng.below(2000)) / 500.0 - 2.0;
      store_number(dtype, data, i,
                   edge && rng.below(4) > 0 ? kFloats[rng.below(std::size(kFloats))] : drawn);
    } else if (limit > 0) {
      store_integer(dtype, data, i, static_cast<std::int64_t>(rng.below(limit)));
    } else if (dtype == DType::Bool) {
      store_integer(dtype, data, i, static_cast<std::int64_t>(rng.below(2)));
    } else if (edge) {
      store_integer(dtype, data, i, kIntegers[rng.below(std::size(kIntegers))]);
    } else {
      store_integer(dtype, data, i, static_cast<std::int64_t>(rng.below(200)) - 100);
    }
  }
}

inline LaunchLine parse(const std::string& text, const tile::Kernel& kernel) {
  constexpr std::size_t kMargin = 64;
  LaunchLine line;
  Rng rng(17);
  for (std::string part : split(text, ";")) {
    part.erase(0, part.find_first_not_of(' '));
    if (part.rfind("grid ", 0) == 0) {
      const tile::Extents grid = numbers(part.substr(5));
      std::copy(grid.begin(), grid.end(), line.grid.begin());
      continue;
    }
    if (part.rfind("within ", 0) == 0) {
      line.tolerance = std::stod(part.substr(7));
      continue;
    }
    const std::size_t open = part.find('['), space = part.find(' ');
    const bool is_pointer = part[0] == '*', is_view = !is_pointer && open != std::string::npos;
    line.buffer.push_back(0);
    line.offset.push_back(0);
    if (!is_pointer && !is_view) {
      const DType dtype = kernel.type(kernel.params()[line.arguments.size()]).dtype;
      const std::string number = part.substr(space + 1);
      line.arguments.push_back(is_float(dtype)
                                   ? tile::Argument::number(dtype, std::stod(number))
                                   : tile::Argument::integer(dtype, std::stoll(number)));
      continue;
    }
    const DType dtype =
        *parse_dtype(part.substr(is_pointer, (is_pointer ? space : open) - is_pointer));
    tile::Argument argument;
    if (is_pointer) {
      argument = tile::Argument::pointer(dtype, nullptr,
                                         std::stoll(part.substr(space + 1)) * byte_width(dtype));
    } else {
      const tile::Extents shape = numbers(part.substr(open + 1, part.find(']') - open - 1));
      const std::size_t by = part.find("by [");
      argument = by == std::string::npos
                     ? tile::Argument::view(dtype, nullptr, shape)
                     : tile::Argument::view(dtype, nullptr, shape,
                                            numbers(part.substr(by + 4, part.rfind(']') - by - 4)));
    }
    const std::size_t at = part.find(" at ");
    if (at != std::string::npos) {
      line.buffer.back() = line.buffer[static_cast<std::size_t>(std::stoi(part.substr(at + 4)))];
      const std::size_t plus = part.find('+', at);
      if (plus != std::string::npos)
        line.offset.back() =
            std::stoull(part.substr(plus + 1)) * static_cast<std::size_t>(byte_width(dtype));
    } else {
      const auto bytes = static_cast<std::size_t>(argument.bytes);
      line.buffer.back() = line.memory.size();
      line.memory.emplace_back(bytes + kMargin, std::byte{0xA5});
      fill(dtype, line.memory.back().data(), argument.bytes / byte_width(dtype), part, rng);
      line.dtypes.push_back(dtype);
      line.bytes.push_back(bytes);
    }
    line.arguments.push_back(argument);
  }
  return line;
}

inline double few_ulps(DType dtype) {
  switch (dtype) {
    case DType::F16: return 2e-3;
    case DType::BF16: return 1.6e-2;
    case DType::F32: return 1e-6;
    default: return 1e-14;
  }
}

/// Where two memories differ, in words; empty where they agree.
inline std::string difference(const LaunchLine& line, const std::vector<std::vector<std::byte>>& e,
                              const std::vector<std::vector<std::byte>>& f) {
  for (std::size_t b = 0; b < e.size(); ++b) {
    const DType dtype = line.dtypes[b];
    const std::int64_t count = static_cast<std::int64_t>(line.bytes[b]) / byte_width(dtype);
    if (std::memcmp(e[b].data() + line.bytes[b], f[b].data() + line.bytes[b],
                    e[b].size() - line.bytes[b]) != 0)
      return fmt::format("wrote behind buffer {}", b);
    const Tensor want{dtype, {count}, Bytes::copy({e[b].data(), line.bytes[b]})};
    const Tensor got{dtype, {count}, Bytes::copy({f[b].data(), line.bytes[b]})};
    const double tolerance = line.tolerance > 0 ? line.tolerance : few_ulps(dtype);
    for (std::int64_t i = 0; i < count; ++i) {
      if (!is_float(dtype)) {
        const std::int64_t x = integer_at(want, i), y = integer_at(got, i);
        if (x != y)
          return fmt::format("buffer {} at {}: {} by the interpreter, {} as code", b, i, x, y);
        continue;
      }
      const double x = number_at(want, i), y = number_at(got, i);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      const double scale = line.tolerance > 0 ? std::max(1.0, std::fabs(x)) : std::fabs(x) + 1e-30;
      if (!(std::fabs(x - y) <= tolerance * scale))
        return fmt::format("buffer {} at {}: {} by the interpreter, {} as code", b, i, x, y);
    }
  }
  return {};
}

/// Tries a paragraph; what went wrong, or nothing.
inline std::string try_kernel(const std::string& paragraph) {
  const auto kernel = tile::parse_kernel(paragraph);
  if (!kernel) return to_string(kernel.error());
  for (const bool checked : {false, true}) {
    const auto compiled = compile(*kernel, {.checked = checked});
    if (!compiled) return to_string(compiled.error());
    for (const std::string& text : split(paragraph, "\n")) {
      const std::string mark = "// launch ";
      if (text.rfind(mark, 0) != 0) continue;
      const LaunchLine line = parse(text.substr(mark.size()), *kernel);
      std::vector<std::vector<std::byte>> expected, found;
      const auto interpreted = tile::interpret(*kernel, line.place(expected), line.grid);
      if (!interpreted) return text + ": interpreted: " + to_string(interpreted.error());
      for (const int threads : {1, 2}) {
        const auto launched = (*compiled)->launch(line.place(found), line.grid, threads);
        if (!launched) return text + (checked ? ": checked: " : ": ") + to_string(launched.error());
        const std::string differs = difference(line, expected, found);
        if (!differs.empty())
          return fmt::format("{}: {} threads{}: {}", text, threads, checked ? ", checked" : "",
                             differs);
      }
    }
  }
  return {};
}

inline std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at; (at = text.find(what)) != std::string::npos;)
    text.replace(at, what.size(), by);
  return text;
}

inline void expand(const std::string& paragraph, std::vector<std::string>& into) {
  const std::size_t at = paragraph.find("// for $");
  if (at == std::string::npos) {
    into.push_back(paragraph);
    return;
  }
  const std::size_t end = paragraph.find('\n', at);
  std::istringstream words(paragraph.substr(at + 7, end - at - 7));
  std::string name, in;
  words >> name >> in;
  for (std::string word; words >> word;) {
    expand(replaced(paragraph.substr(0, at) + paragraph.substr(end + 1), name, word), into);
  }
}

inline std::vector<std::string> paragraphs(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  std::vector<std::string> found;
  for (const std::string& part : split(text.str(), "\n\n")) {
    if (part.find("kernel ") != std::string::npos) expand(part, found);
  }
  return found;
}

}  // namespace launch_line
}  // namespace tessera::codegen
