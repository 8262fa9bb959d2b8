# SPDX-License-Identifier: Apache-2.0
# Decides whether the NCCL transport is compiled. After this file TESSERA_ENABLE_NCCL is ON or OFF.
tessera_auto_option(TESSERA_ENABLE_NCCL "NCCL transport" "CUDA and NCCL are found")

set(tessera_nccl_wanted ${TESSERA_ENABLE_NCCL})
set(TESSERA_ENABLE_NCCL OFF)
if(NOT tessera_nccl_wanted STREQUAL OFF)
  find_package(NCCL QUIET)
  set_package_properties(NCCL PROPERTIES TYPE OPTIONAL PURPOSE "messages between CUDA devices")
  if(NCCL_FOUND)
    set(TESSERA_ENABLE_NCCL ON)
  elseif(tessera_nccl_wanted STREQUAL ON)
    message(FATAL_ERROR "TESSERA_ENABLE_NCCL = ON, but nccl.h, libnccl, cuda_runtime_api.h or libcudart was "
      "not found. Set NCCL_ROOT and CUDAToolkit_ROOT (Spack: nccl, cuda), or TESSERA_ENABLE_NCCL=AUTO.")
  endif()
endif()
