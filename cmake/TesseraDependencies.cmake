# SPDX-License-Identifier: Apache-2.0
find_package(MPI 3.0 REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Threads REQUIRED)

find_package(KokkosKernels REQUIRED)
find_package(Kokkos REQUIRED)
add_library(tessera_kokkos INTERFACE)
find_path(TESSERA_KOKKOS_INCLUDE Kokkos_Core.hpp PATH_SUFFIXES trilinos REQUIRED)
target_include_directories(tessera_kokkos SYSTEM INTERFACE ${TESSERA_KOKKOS_INCLUDE})
target_link_libraries(tessera_kokkos INTERFACE trilinos_kokkoskernels trilinos_kokkoscore lapack blas)

add_library(tessera_warnings INTERFACE)
target_compile_options(tessera_warnings INTERFACE -Wall -Wextra -Wpedantic -Werror)
