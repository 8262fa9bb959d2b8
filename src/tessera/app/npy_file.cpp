// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/app/npy_file.hpp>
#include <tessera/app/result_file.hpp>

namespace tessera {
namespace {

/// Magic string, version, length of the rest, and a dictionary padded to a multiple of 64 bytes.
std::string npy_header(std::size_t element_bytes, const Shape& shape) {
  const char order = std::endian::native == std::endian::little ? '<' : '>';
  std::string text = fmt::format("{{'descr': '{}f{}', 'fortran_order': False, 'shape': ({},)}}",
                                 order, element_bytes, fmt::join(shape, ", "));
  constexpr std::size_t before = 10, unit = 64;
  text.append((unit - (before + text.size() + 1) % unit) % unit, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace

template <class T>
void write_npy(const std::filesystem::path& path, const Vector<T>& values, const Shape& shape) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), values);
  std::string bytes = npy_header(sizeof(T), shape);
  bytes.append(reinterpret_cast<const char*>(host.data()), host.span() * sizeof(T));
  write_text(path, bytes);
}

template void write_npy(const std::filesystem::path&, const Vector<float>&, const Shape&);
template void write_npy(const std::filesystem::path&, const Vector<double>&, const Shape&);

}  // namespace tessera
