// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <tessera/app/npy_file.hpp>
#include <tessera/app/result_file.hpp>
#include <tessera/io/npy.hpp>

namespace tessera {
template <class T>
void write_npy(const std::filesystem::path& path, const Vector<T>& values, const Shape& shape) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), values);
  std::string bytes = npy_header(dtype_of<T>(), shape);
  bytes.append(reinterpret_cast<const char*>(host.data()), host.span() * sizeof(T));
  write_text(path, bytes);
}

template void write_npy(const std::filesystem::path&, const Vector<float>&, const Shape&);
template void write_npy(const std::filesystem::path&, const Vector<double>&, const Shape&);

}  // namespace tessera
