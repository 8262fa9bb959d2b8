// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include <tessera/base/for_each.hpp>
#include <tessera/random/distributions.hpp>
#include <tessera/random/fill.hpp>

namespace tessera {
namespace {

struct Uniform {
  float limit;
  KOKKOS_INLINE_FUNCTION float operator()(Key key, std::uint64_t i) const {
    return random_uniform(key, i, -1, 1) * limit;
  }
};

struct UniformFromZero {
  float limit;
  KOKKOS_INLINE_FUNCTION float operator()(Key key, std::uint64_t i) const {
    return random_uniform(key, i) * limit;
  }
};

struct Normal {
  KOKKOS_INLINE_FUNCTION float operator()(Key key, std::uint64_t i) const {
    return random_normal(key, i);
  }
};

struct TruncatedNormal {
  float scale;
  KOKKOS_INLINE_FUNCTION float operator()(Key key, std::uint64_t i) const {
    return random_truncated_normal(key, i) * scale;
  }
};

template <class T, class Draw>
void fill(const std::string& label, const Vector<T>& local, Key key, const BlockRun& run,
          const Draw& draw) {
  for_each(
      label, local.extent(0), KOKKOS_LAMBDA(Size i) {
        local(i) = static_cast<T>(draw(key, static_cast<std::uint64_t>(run(i))));
      });
}

/// Variance of a kernel: scale / fan_in, or scale / (fan_in + fan_out).
struct VarianceScaling {
  double scale;
  bool uniform = false;
  bool both_fans = false;
};

/// In the order of the enumerators.
constexpr std::array<VarianceScaling, names_of<Initializer>.size()> scalings{{
    {0},  // zeros
    {1},  // lecun
    {1, true},
    {2},  // he
    {2, true},
    {2, false, true},  // glorot
    {2, true, true},
}};

}  // namespace

template <class T>
void fill_normal(const Matrix<T>& local, Key key, Size first_row) {
  const Size cols = static_cast<Size>(local.extent(1));
  fill("tessera::fill_normal", Vector<T>(local.data(), local.span()), key,
       {.row = first_row, .cols = cols, .block_cols = cols}, Normal{});
}

template <class T>
void initialize(const Vector<T>& local, Initializer initializer, Key key, const BlockRun& run,
                Size fan_in, Size fan_out) {
  const VarianceScaling& scaling = scalings[static_cast<std::size_t>(initializer)];
  if (scaling.scale == 0) return Kokkos::deep_copy(ExecSpace(), local, T(0));
  const Size fan = scaling.both_fans ? fan_in + fan_out : fan_in;
  const float variance = static_cast<float>(scaling.scale / static_cast<double>(fan));
  if (scaling.uniform)
    return fill("tessera::initialize_uniform", local, key, run, Uniform{std::sqrt(3 * variance)});
  // Truncation at two standard deviations leaves 0.8796 of the deviation.
  const float deviation = std::sqrt(variance) / 0.87962566103423978f;
  fill("tessera::initialize_normal", local, key, run, TruncatedNormal{deviation});
}

template <class T>
void fill_uniform(const Vector<T>& local, float limit, Key key, const BlockRun& run) {
  fill("tessera::fill_uniform", local, key, run, UniformFromZero{limit});
}

#define TESSERA_INSTANTIATE(T)                                                                  \
  template void fill_normal<T>(const Matrix<T>&, Key, Size);                                    \
  template void initialize<T>(const Vector<T>&, Initializer, Key, const BlockRun&, Size, Size); \
  template void fill_uniform<T>(const Vector<T>&, float, Key, const BlockRun&);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
