// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/data/diffusion.hpp>
#include <tessera/random/distributions.hpp>

namespace tessera {
namespace {

// Samples made at a time. The scratch memory does not grow with the number of samples.
constexpr Size darcy_samples = 32;
// Waves of the random field in each dimension. They do not depend on the grid, so a sample is the
// same function on any grid.
constexpr Size darcy_waves = 32;
// y = 100 u is of order 1.
constexpr double darcy_unit = 100;

void check_darcy(const DataConfig& data, const ModelSpec& model) {
  const Size n = side_of_square(model.input_positions);
  if (model.targets != Targets::values || model.classes > 0 || model.input_width != 3 || n < 2 ||
      n * n != model.input_positions || model.output_positions() != model.input_positions ||
      model.output_width() != 1)
    reject_data_kind(data, "a model of fields on a square grid, such as model.kind = \"fno\"");
}

/// Scratch memory for the samples made at a time.
struct DarcyMemory {
  explicit DarcyMemory(double* at, Size n) {
    constexpr Size s = darcy_samples, k = darcy_waves;
    cosines = at;
    weights = cosines + k * n;
    half = weights + s * k * k;
    a = half + s * k * n;
    u = a + s * n * n;
    solver = u + s * n * n;
  }
  static Size elements(Size n) {
    constexpr Size s = darcy_samples, k = darcy_waves;
    return k * n + s * (k * k + k * n + 2 * n * n) + diffusion_scratch(s, n);
  }
  double* cosines;  ///< (waves, n)
  double* weights;  ///< (samples, waves, waves): weights of the random field
  double* half;     ///< (samples, waves, n): sums over waves along the second dimension
  double *a, *u;    ///< (samples, n, n)
  double* solver;
};

/// Fills the orthonormal basis: sqrt(2) cos(pi k x), or 1 for k = 0, at the centres of the cells.
void make_cosines(double* cosines, Size n) {
  for_each(
      "tessera::darcy_cosines", darcy_waves * n, KOKKOS_LAMBDA(Size i) {
        using std::cos;
        constexpr double pi = 3.14159265358979323846, root = 1.41421356237309504880;
        const Size k = i / n, place = i % n;
        // 4 n of the angle's steps are a full turn.
        const double turns = static_cast<double>(k * (2 * place + 1) % (4 * n)) / (4.0 * n);
        cosines[i] = k == 0 ? 1 : root * cos(2 * pi * turns);
      });
}

/// Sets a = 12 where the random field is not negative, and 3 elsewhere. The field has the
/// covariance
/// (-Laplace + 9)^-2 with zero Neumann conditions: its waves have weights N(0, 1) / (pi^2 |k|^2 +
/// 9). The order of sums does not depend on the other samples.
void make_coefficients(const DarcyMemory& memory, Key key, Range samples, Size n) {
  constexpr Size waves = darcy_waves;
  const Size begin = samples.begin;
  double *const weights = memory.weights, *const half = memory.half, *const a = memory.a;
  const double* const cosines = memory.cosines;
  for_each(
      "tessera::darcy_weights", samples.count * waves * waves, KOKKOS_LAMBDA(Size i) {
        constexpr double pi_squared = 9.86960440108935861883;
        const Size k1 = i / waves % waves, k2 = i % waves;
        const auto index = static_cast<std::uint64_t>(begin * waves * waves + i);
        weights[i] =
            random_normal(key, index) / (pi_squared * static_cast<double>(k1 * k1 + k2 * k2) + 9);
      });
  for_each(
      "tessera::darcy_sum_along_second", samples.count * waves * n,
      KOKKOS_LAMBDA(Size i) {
        const Size row = i / n, x2 = i % n;
        double sum = 0;
        for (Size k = 0; k < waves; ++k) sum += weights[row * waves + k] * cosines[k * n + x2];
        half[i] = sum;
      },
      samples.count * waves * n * waves);
  for_each(
      "tessera::darcy_sum_along_first", samples.count * n * n,
      KOKKOS_LAMBDA(Size i) {
        const Size sample = i / (n * n), x1 = i / n % n, x2 = i % n;
        double sum = 0;
        for (Size k = 0; k < waves; ++k)
          sum += half[(sample * waves + k) * n + x2] * cosines[k * n + x1];
        a[i] = sum >= 0 ? 12 : 3;
      },
      samples.count * n * n * waves);
}

template <class T>
void write_darcy(const DarcyMemory& memory, Size n, const Matrix<T>& x, const Matrix<T>& y) {
  const double *const a = memory.a, *const u = memory.u;
  T *const to_x = x.data(), *const to_y = y.data();
  for_each(
      "tessera::darcy_write", y.extent(0), KOKKOS_LAMBDA(Size i) {
        to_x[3 * i] = static_cast<T>(a[i]);
        to_x[3 * i + 1] = static_cast<T>((static_cast<double>(i / n % n) + 0.5) / n);
        to_x[3 * i + 2] = static_cast<T>((static_cast<double>(i % n) + 0.5) / n);
        to_y[i] = static_cast<T>(darcy_unit * u[i]);
      });
}

/// Flow through a porous medium, -div(a grad u) = 1, u = 0 on the boundary of the unit square (Li
/// et al. 2021, section 5.2): x = (a, x1, x2) and y = 100 u at the centres of n x n cells. There
/// the solver has both, and no point is spent on the boundary, where u is known.
template <class T>
void fill_darcy(const DataConfig& data, const ModelSpec& model, const DataBlock<T>& block) {
  const Size n = side_of_square(model.input_positions), cells = n * n,
             elements = DarcyMemory::elements(n);
  const Vector<double> all = allocate_vector<double>("tessera::darcy_scratch", elements);
  const DarcyMemory memory(all.data(), n);
  make_cosines(memory.cosines, n);
  for (Size done = 0; done < block.samples.count; done += darcy_samples) {
    const Size count = std::min(darcy_samples, block.samples.count - done);
    make_coefficients(memory, key(data.seed), {block.samples.begin + done, count}, n);
    solve_diffusion(alias_matrix<const double>(memory.a, count, cells),
                    alias_matrix(memory.u, count, cells),
                    alias_vector(memory.solver, diffusion_scratch(count, n)));
    const Range rows{done * cells, count * cells};
    write_darcy(memory, n, rows_of(block.x, rows), rows_of(block.y, rows));
  }
  ExecSpace().fence();  // before the scratch memory is freed
}

}  // namespace

const DataRow darcy_data{.check = check_darcy,
                         .fill = [](const auto&... block) { fill_darcy(block...); },
                         .scratch_bytes =
                             [](const ModelSpec& model) {
                               return DarcyMemory::elements(side_of_square(model.input_positions)) *
                                      static_cast<Size>(sizeof(double));
                             }};

}  // namespace tessera
