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
        const Size row = (run.first + i) / run.block_cols;
        const Size col = (run.first + i) % run.block_cols;
        const Size flat =
            (run.block.row_offset + row) * run.block.global_cols + run.block.col_offset + col;
        local(i) = static_cast<T>(draw(key, static_cast<std::uint64_t>(flat)));
      });
}

template <class T>
Vector<T> flat(const Matrix<T>& m) {
  return Vector<T>(m.data(), m.extent(0) * m.extent(1));
}

template <class T>
BlockRun whole(const Matrix<T>& local, GlobalBlock block) {
  const Size cols = static_cast<Size>(local.extent(1));
  if (block.global_cols < 0) block.global_cols = cols;
  return {block, cols, 0};
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
void fill_normal(const Matrix<T>& local, Key key, GlobalBlock block) {
  fill("tessera::fill_normal", flat(local), key, whole(local, block), Normal{});
}

template <class T>
void initialize(const Matrix<T>& local, Initializer initializer, Key key, GlobalBlock block,
                Size fan_in, Size fan_out) {
  initialize_run(flat(local), initializer, key, whole(local, block), fan_in, fan_out);
}

template <class T>
void initialize_run(const Vector<T>& local, Initializer initializer, Key key, const BlockRun& run,
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
void fill_uniform_run(const Vector<T>& local, float limit, Key key, const BlockRun& run) {
  fill("tessera::fill_uniform", local, key, run, UniformFromZero{limit});
}

#define TESSERA_INSTANTIATE(T)                                                               \
  template void fill_normal<T>(const Matrix<T>&, Key, GlobalBlock);                          \
  template void initialize<T>(const Matrix<T>&, Initializer, Key, GlobalBlock, Size, Size);  \
  template void initialize_run<T>(const Vector<T>&, Initializer, Key, const BlockRun&, Size, \
                                  Size);                                                     \
  template void fill_uniform_run<T>(const Vector<T>&, float, Key, const BlockRun&);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
