#include <cmath>
#include <vector>

#include "tessera/tile/interp_function.h"
#include "tessera/tile/interp_tile.h"

namespace tessera::tile::interp {
namespace {

/// A running fold: `start` with the first element, `add` the others, `value` at any time.
template <class C, class Combine>
struct Fold {
  Combine combine;
  C total = {};
  void start(C x) { total = x; }
  void add(C x) { total = combine(total, x); }
  C value() const { return total; }
};

/// Compensated sum (Neumaier 1974).
struct ExactSum {
  double total = 0, lost = 0;
  void start(double x) {
    total = x;
    lost = 0;
  }
  void add(double x) {
    const double sum = total + x;
    lost += std::fabs(total) >= std::fabs(x) ? (total - sum) + x : (x - sum) + total;
    total = sum;
  }
  double value() const {
    // Infinities make the errors NaN; adding no error would turn -0 into 0.
    return std::isfinite(total) && lost != 0 ? total + lost : total;
  }
};

/// Calls visit with the type of the elements and a fold over them.
template <class Visit>
void with_fold(Function function, DType dtype, const Visit& visit) {
  with_type(dtype, [&]<class T>(T element) {
    using C = std::conditional_t<is_real<T>, double, Computed<T>>;
    if constexpr (is_real<T>)
      if (function == Function::Add) return visit(element, ExactSum{});
    const bool known = with_monoid<C>(
        function, [&](const auto& f) { visit(element, Fold<C, std::decay_t<decltype(f)>>{f}); });
    TESSERA_CHECK(known, "a fold of {} by {}", to_string(dtype), to_string(function));
  });
}

/// Type in which products are exact, or wrap.
template <class Number>
std::vector<Number> widened(DType dtype, std::int64_t count, const std::byte* x) {
  std::vector<Number> wide(static_cast<std::size_t>(count));
  with_type(dtype, [&]<class T>(T) {
    const auto* from = reinterpret_cast<const T*>(x);
    for (std::int64_t i = 0; i < count; ++i)
      wide[static_cast<std::size_t>(i)] = static_cast<Number>(loaded(from[i]));
  });
  return wide;
}

template <class T, class Number>
void dot_in(const DotTypes& types, const DotSizes& sizes, std::array<const std::byte*, 3> in,
            std::byte* out) {
  const auto [m, n, k] = sizes;
  const std::vector<Number> a = widened<Number>(types.a, m * k, in[0]);
  const std::vector<Number> b = widened<Number>(types.b, k * n, in[1]);
  const T* c = reinterpret_cast<const T*>(in[2]);
  T* to = reinterpret_cast<T*>(out);
  std::vector<Number> row(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < m; ++i, c += n, to += n) {
    for (std::int64_t j = 0; j < n; ++j)
      row[static_cast<std::size_t>(j)] = static_cast<Number>(loaded(c[j]));
    const Number* b_row = b.data();
    for (std::int64_t p = 0; p < k; ++p, b_row += n) {
      const Number factor = a[static_cast<std::size_t>(i * k + p)];
      for (std::int64_t j = 0; j < n; ++j) row[static_cast<std::size_t>(j)] += factor * b_row[j];
    }
    for (std::int64_t j = 0; j < n; ++j) to[j] = stored<T>(row[static_cast<std::size_t>(j)]);
  }
}

}  // namespace

Along::Along(const Extents& shape, std::int64_t axis) {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto here = static_cast<std::int64_t>(i);
    (here < axis ? outer : here == axis ? extent : inner) *= shape[i];
  }
}

void reduce(Function function, DType dtype, const Along& along, const std::byte* x,
            std::byte* out) {
  with_fold(function, dtype, [&]<class T>(T, auto fold) {
    const auto* from = reinterpret_cast<const T*>(x);
    auto* to = reinterpret_cast<T*>(out);
    for (std::int64_t o = 0; o < along.outer; ++o, from += along.extent * along.inner) {
      for (std::int64_t i = 0; i < along.inner; ++i) {
        fold.start(loaded(from[i]));
        for (std::int64_t k = 1; k < along.extent; ++k) fold.add(loaded(from[k * along.inner + i]));
        *to++ = stored<T>(fold.value());
      }
    }
  });
}

void scan(Function function, DType dtype, const Along& along, bool reverse, const std::byte* x,
          std::byte* out) {
  const std::int64_t first = reverse ? (along.extent - 1) * along.inner : 0;
  const std::int64_t step = reverse ? -along.inner : along.inner;
  with_fold(function, dtype, [&]<class T>(T, auto fold) {
    for (std::int64_t o = 0; o < along.outer; ++o) {
      for (std::int64_t i = 0; i < along.inner; ++i) {
        const std::int64_t begin = o * along.extent * along.inner + i + first;
        const auto* from = reinterpret_cast<const T*>(x) + begin;
        auto* to = reinterpret_cast<T*>(out) + begin;
        for (std::int64_t k = 0; k < along.extent; ++k) {
          if (k == 0)
            fold.start(loaded(from[0]));
          else
            fold.add(loaded(from[k * step]));
          to[k * step] = stored<T>(fold.value());
        }
      }
    }
  });
}

std::optional<std::int64_t> gather(std::int64_t width, const Along& from, const std::byte* x,
                                   const Along& to, const std::int64_t* index, std::byte* out) {
  std::optional<std::int64_t> outside;
  with_width(width, [&]<class T>(T) {
    auto* result = reinterpret_cast<T*>(out);
    for (std::int64_t i = 0; i < to.outer * to.extent * to.inner && !outside; ++i) {
      const std::int64_t outer = i / to.inner / to.extent, inner = i % to.inner;
      if (index[i] < 0 || index[i] >= from.extent)
        outside = index[i];
      else
        result[i] =
            reinterpret_cast<const T*>(x)[(outer * from.extent + index[i]) * from.inner + inner];
    }
  });
  return outside;
}

void dot(const DotTypes& types, const DotSizes& sizes, std::array<const std::byte*, 3> in,
         std::byte* out) {
  with_type(types.c, [&]<class T>(T) {
    dot_in<T, std::conditional_t<is_real<T>, double, std::uint64_t>>(types, sizes, in, out);
  });
}

Extents dense(const Extents& shape) {
  return Type::view(DType::I8, shape).strides;
}

void move(std::int64_t width, const Extents& shape, const std::byte* from, const Lattice& source,
          std::byte* to, const Lattice& target) {
  const std::int64_t count = shape.empty() ? 1 : shape.back();
  const std::int64_t source_step = shape.empty() ? 0 : source.strides.back();
  const std::int64_t target_step = shape.empty() ? 0 : target.strides.back();
  with_width(width, [&]<class T>(T) {
    for_each_row(shape, source, target, [&](std::int64_t a, std::int64_t b) {
      const T* x = reinterpret_cast<const T*>(from) + a;
      T* y = reinterpret_cast<T*>(to) + b;
      for (std::int64_t i = 0; i < count; ++i) y[i * target_step] = x[i * source_step];
      return true;
    });
  });
}

}  // namespace tessera::tile::interp
