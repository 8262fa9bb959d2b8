// SPDX-License-Identifier: Apache-2.0
#include <tessera/nn/products/convert.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera {

template <class From, class To>
void convert(const Vector<const From>& from, const Vector<To>& to) {
  const From* const in = from.data();
  To* const out = to.data();
  for_each(
      "tessera::convert"_label, to.extent(0),
      KOKKOS_LAMBDA(Size i) { out[i] = static_cast<To>(in[i]); });
}

template void convert(const Vector<const float>&, const Vector<BFloat16>&);
template void convert(const Vector<const BFloat16>&, const Vector<float>&);
template void convert(const Vector<const float>&, const Vector<Float16>&);
template void convert(const Vector<const Float16>&, const Vector<float>&);

}  // namespace tessera
