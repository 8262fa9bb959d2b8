# SPDX-License-Identifier: Apache-2.0
# Makes tessera::kokkos, the one target for Kokkos and Kokkos Kernels, after both packages were found.
# It is installed with the package config, because users of the library face the same two kinds:
#   - Kokkos' own packages (Spack, hand-built): Kokkos::kokkos and Kokkos::kokkoskernels just work;
#   - Debian's Trilinos packages: Kokkos::kokkos names an include directory that does not exist, the
#     headers are under the suffix `trilinos`, and Kokkos Kernels is only called trilinos_kokkoskernels.
if(TARGET tessera::kokkos)
  return()
endif()

if(Kokkos_VERSION VERSION_LESS 3.4)
  message(FATAL_ERROR "Tessera needs Kokkos 3.4 or newer, but found ${Kokkos_VERSION} in ${Kokkos_DIR}")
endif()

# Two installations mixed would compile against the headers of one and link the other.
if(TARGET trilinos_kokkoskernels)
  file(REAL_PATH ${Kokkos_DIR}/.. tessera_kokkos_home)
  file(REAL_PATH ${KokkosKernels_DIR}/.. tessera_kernels_home)
  if(NOT tessera_kokkos_home STREQUAL tessera_kernels_home)
    message(FATAL_ERROR "Kokkos (${Kokkos_DIR}) and Kokkos Kernels (${KokkosKernels_DIR}) come from "
      "different installations. Add the Kokkos Kernels built with that Kokkos to CMAKE_PREFIX_PATH "
      "(Spack: kokkos-kernels), and delete the build directory.")
  endif()
endif()

add_library(tessera::kokkos INTERFACE IMPORTED GLOBAL)
if(TARGET Kokkos::kokkoskernels)
  target_link_libraries(tessera::kokkos INTERFACE Kokkos::kokkoskernels Kokkos::kokkos)
elseif(TARGET trilinos_kokkoskernels)
  find_path(TESSERA_KOKKOS_INCLUDE_DIR Kokkos_Core.hpp
    HINTS ${Kokkos_INCLUDE_DIRS} PATH_SUFFIXES trilinos NO_CACHE)
  if(NOT TESSERA_KOKKOS_INCLUDE_DIR)
    message(FATAL_ERROR "Kokkos_Core.hpp was not found for the Kokkos in ${Kokkos_DIR} "
      "(Debian: libtrilinos-kokkos-dev)")
  endif()
  target_include_directories(tessera::kokkos INTERFACE ${TESSERA_KOKKOS_INCLUDE_DIR})
  target_link_libraries(tessera::kokkos INTERFACE trilinos_kokkoskernels)
  # The package names BLAS and LAPACK by absolute path, but does not depend on what installs them.
  get_target_property(tessera_kernels_links trilinos_kokkoskernels INTERFACE_LINK_LIBRARIES)
  foreach(library IN LISTS tessera_kernels_links)
    if(IS_ABSOLUTE "${library}" AND NOT EXISTS "${library}")
      message(FATAL_ERROR "Kokkos Kernels of Debian needs ${library}, which does not exist "
        "(Debian: libopenblas-dev liblapack-dev libblas-dev)")
    endif()
  endforeach()
else()
  message(FATAL_ERROR "The Kokkos Kernels in ${KokkosKernels_DIR} defines neither Kokkos::kokkoskernels "
    "nor trilinos_kokkoskernels")
endif()

# Device lambdas are an option of Kokkos before version 5, and off by default in Spack's recipe.
if("CUDA" IN_LIST Kokkos_DEVICES AND Kokkos_VERSION VERSION_LESS 5
   AND NOT "CUDA_LAMBDA" IN_LIST Kokkos_OPTIONS)
  message(FATAL_ERROR "The Kokkos in ${Kokkos_DIR} was built for CUDA without lambdas "
    "(CMake: -DKokkos_ENABLE_CUDA_LAMBDA=ON; Spack: kokkos +cuda_lambda)")
endif()

# fmt before 10 takes constexpr from half of its functions where it meets nvcc, which the other half needs.
if("CUDA" IN_LIST Kokkos_DEVICES)
  target_compile_definitions(tessera::kokkos INTERFACE FMT_USE_CONSTEXPR=1)
endif()
