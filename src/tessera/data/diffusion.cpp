// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <tessera/base/for_each.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/data/diffusion.hpp>

namespace tessera {
namespace {

constexpr double relative_residual = 1e-8;

/// Fields of one sample. Each has a row of zeros before and after it, because stencils read beyond
/// the grid.
struct DiffusionFields {
  double *across, *along;  ///< coefficients between a cell and the next one in its row, its column
  double* sum;             ///< sum of a cell's four coefficients
  double* direction;
  double *residual, *product;

  static constexpr Size fields = 6;
  KOKKOS_INLINE_FUNCTION static constexpr Size extent(Size n) { return n * n + 2 * n; }

  KOKKOS_INLINE_FUNCTION DiffusionFields(double* scratch, Size sample, Size n) {
    double* const begin = scratch + sample * fields * extent(n) + n;
    across = begin;
    along = begin + extent(n);
    sum = begin + 2 * extent(n);
    direction = begin + 3 * extent(n);
    residual = begin + 4 * extent(n);
    product = begin + 5 * extent(n);
  }
};

/// Solves one sample with a team of threads. Every thread calls every function.
template <class Team>
class DiffusionTeam {
 public:
  KOKKOS_INLINE_FUNCTION DiffusionTeam(const Team& team, const DiffusionFields& fields, Size n)
      : team_(team), of_(fields), n_(n) {}

  KOKKOS_INLINE_FUNCTION void set_coefficients(const double* a) const {
    const DiffusionFields of = of_;
    const Size n = n_;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team_, DiffusionFields::extent(n)), [=](Size i) {
      of.across[i - n] = of.along[i - n] = of.direction[i - n] = 0;
    });
    team_.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team_, n * n), [=](Size i) {
      const auto between = [=](Size j) { return 2 * a[i] * a[j] / (a[i] + a[j]); };
      const Size row = i / n, column = i % n;
      if (column + 1 < n) of.across[i] = between(i + 1);
      if (row + 1 < n) of.along[i] = between(i + n);
    });
    team_.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team_, n * n), [=](Size i) {
      const Size row = i / n, column = i % n;
      const int outer_sides = (column == 0) + (column == n - 1) + (row == 0) + (row == n - 1);
      of.sum[i] =
          of.across[i] + of.across[i - 1] + of.along[i] + of.along[i - n] + outer_sides * 2 * a[i];
    });
    team_.team_barrier();
  }

  /// Sets product = operator * direction.
  KOKKOS_INLINE_FUNCTION void apply() const {
    const DiffusionFields of = of_;
    const Size n = n_;
    const double* const p = of.direction;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team_, n * n), [=](Size i) {
      of.product[i] = of.sum[i] * p[i] - of.across[i] * p[i + 1] - of.across[i - 1] * p[i - 1] -
                      of.along[i] * p[i + n] - of.along[i - n] * p[i - n];
    });
    team_.team_barrier();
  }

  /// Solves by conjugate gradients (Hestenes and Stiefel 1952) with the right-hand side h^2.
  KOKKOS_INLINE_FUNCTION void solve(double* u) const {
    using std::sqrt;
    const DiffusionFields of = of_;
    const Size cells = n_ * n_;
    const double right = 1 / static_cast<double>(cells);
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team_, cells), [=](Size i) {
      u[i] = 0;
      of.residual[i] = of.direction[i] = right;
    });
    team_.team_barrier();
    double squares = right * right * static_cast<double>(cells);
    const double enough = relative_residual * relative_residual * squares;
    Size left = 100 * (n_ + 1);  // about 10 n are needed
    for (; squares > enough && left > 0; --left) {
      apply();
      const double step = squares / dot(of.direction, of.product);
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team_, cells), [=](Size i) {
        u[i] += step * of.direction[i];
        of.residual[i] -= step * of.product[i];
      });
      team_.team_barrier();
      const double before = squares;
      squares = dot(of.residual, of.residual);
      const double turn = squares / before;
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team_, cells), [=](Size i) {
        of.direction[i] = of.residual[i] + turn * of.direction[i];
      });
      team_.team_barrier();
    }
    if (!(squares <= enough))
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team_, cells),
                           [=](Size i) { u[i] = Kokkos::Experimental::quiet_NaN_v<double>; });
  }

 private:
  KOKKOS_INLINE_FUNCTION double dot(const double* a, const double* b) const {
    double sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team_, n_ * n_), [=](Size i, double& part) { part += a[i] * b[i]; },
        sum);
    return sum;
  }

  const Team& team_;
  DiffusionFields of_;
  Size n_;
};

struct SolveDiffusion {
  const double* a;
  double *u, *scratch;
  Size n;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size first = team.league_rank() * n * n;
    const DiffusionTeam<Team> work(team, {scratch, team.league_rank(), n}, n);
    work.set_coefficients(a + first);
    work.solve(u + first);
  }
};

}  // namespace

void solve_diffusion(const Matrix<const double>& a, const Matrix<double>& u,
                     const Vector<double>& scratch) {
  const Size cells = static_cast<Size>(a.extent(1));
  const Size n = side_of_square(cells);
  for_each_row("tessera::solve_diffusion", a.extent(0), 10 * n * cells,
               SolveDiffusion{a.data(), u.data(), scratch.data(), n});
}

Size diffusion_scratch(Size samples, Size n) {
  return samples * DiffusionFields::fields * DiffusionFields::extent(n);
}

}  // namespace tessera
