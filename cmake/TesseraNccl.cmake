# SPDX-License-Identifier: Apache-2.0
# Decides whether the library has the NCCL transport, which moves Views on CUDA devices. After this file TESSERA_ENABLE_NCCL
# is ON or OFF. Without CUDA in Kokkos it is OFF; if NCCL is found, TESSERA_TEST_NCCL is ON, and tests alone compile and
# link the transport.
tessera_auto_option(TESSERA_ENABLE_NCCL "NCCL transport" "Kokkos has CUDA and NCCL is found")

set(tessera_nccl_wanted ${TESSERA_ENABLE_NCCL})
set(TESSERA_ENABLE_NCCL OFF)
set(TESSERA_TEST_NCCL OFF)
if(NOT tessera_nccl_wanted STREQUAL OFF)
  if(tessera_nccl_wanted STREQUAL ON AND NOT "CUDA" IN_LIST Kokkos_DEVICES)
    message(FATAL_ERROR "TESSERA_ENABLE_NCCL = ON, but NCCL moves Views on CUDA devices, and Kokkos in ${Kokkos_DIR} has "
      "only ${Kokkos_DEVICES}. Use a Kokkos with CUDA, or TESSERA_ENABLE_NCCL=AUTO.")
  endif()
  find_package(NCCL QUIET)
  set_package_properties(NCCL PROPERTIES TYPE OPTIONAL PURPOSE "messages between CUDA devices")
  if(NCCL_FOUND AND "CUDA" IN_LIST Kokkos_DEVICES)
    set(TESSERA_ENABLE_NCCL ON)
  elseif(NCCL_FOUND)
    set(TESSERA_TEST_NCCL ${TESSERA_BUILD_TESTS})
  elseif(tessera_nccl_wanted STREQUAL ON)
    message(FATAL_ERROR "TESSERA_ENABLE_NCCL = ON, but nccl.h, libnccl, cuda_runtime_api.h or libcudart was "
      "not found. Set NCCL_ROOT and CUDAToolkit_ROOT (Spack: nccl, cuda), or TESSERA_ENABLE_NCCL=AUTO.")
  endif()
endif()
