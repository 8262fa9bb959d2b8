// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/element_hash.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/base/half_float.hpp>
#include <tessera/engine/digest.hpp>

namespace tessera {

template <class T>
void digest(const Vector<const T>& values, const GlobalIndex& place, Size first,
            const Vector<std::int64_t>& sums, Size number, LeftOut left_out) {
  const T* const data = values.data();
  const Size n = static_cast<Size>(values.extent(0));
  // Places that are consecutive need no division per element.
  const Size begin = n > 0 ? place(first) : 0;
  const bool is_run = n > 0 && place(first + n - 1) - begin == n - 1;
  const bool skips_zeros = left_out == LeftOut::zeros;
  sum_each(
      "tessera::digest"_label, n,
      KOKKOS_LAMBDA(Size i, std::uint64_t & sum) {
        if (!skips_zeros || data[i] != T(0))
          sum += element_hash(data + i, is_run ? begin + i : place(first + i));
      },
      Kokkos::View<std::uint64_t, Kokkos::LayoutRight, MemSpace>(
          reinterpret_cast<std::uint64_t*>(sums.data() + number)));
}

template void digest(const Vector<const float>&, const GlobalIndex&, Size,
                     const Vector<std::int64_t>&, Size, LeftOut);
template void digest(const Vector<const BFloat16>&, const GlobalIndex&, Size,
                     const Vector<std::int64_t>&, Size, LeftOut);
template void digest(const Vector<const double>&, const GlobalIndex&, Size,
                     const Vector<std::int64_t>&, Size, LeftOut);

}  // namespace tessera
