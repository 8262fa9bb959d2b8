# SPDX-License-Identifier: Apache-2.0
# Makes tessera::kokkos, the one target for Kokkos and Kokkos Kernels, after both packages were found. The file is
# installed with the package config.
if(TARGET tessera::kokkos)
  return()
endif()

if(Kokkos_VERSION VERSION_LESS 4.5)
  message(FATAL_ERROR "Tessera needs Kokkos 4.5 or newer, but found ${Kokkos_VERSION} in ${Kokkos_DIR}. "
    "scripts/kokkos.sh builds one; its last line is what to add to CMAKE_PREFIX_PATH.")
endif()

add_library(tessera::kokkos INTERFACE IMPORTED GLOBAL)
target_link_libraries(tessera::kokkos INTERFACE Kokkos::kokkoskernels Kokkos::kokkos)

# Device lambdas are an option of Kokkos before version 5, and off by default in Spack's recipe.
if("CUDA" IN_LIST Kokkos_DEVICES AND Kokkos_VERSION VERSION_LESS 5
   AND NOT "CUDA_LAMBDA" IN_LIST Kokkos_OPTIONS)
  message(FATAL_ERROR "The Kokkos in ${Kokkos_DIR} was built for CUDA without lambdas "
    "(CMake: -DKokkos_ENABLE_CUDA_LAMBDA=ON; Spack: kokkos +cuda_lambda)")
endif()

if("CUDA" IN_LIST Kokkos_DEVICES)
  # With nvcc, fmt before 10 removes constexpr from functions that its own constexpr functions call.
  target_compile_definitions(tessera::kokkos INTERFACE FMT_USE_CONSTEXPR=1)
  # Does not link the driver, which the library loads itself (process/gpu_facts.cpp).
  target_link_options(tessera::kokkos INTERFACE LINKER:--as-needed)
endif()
