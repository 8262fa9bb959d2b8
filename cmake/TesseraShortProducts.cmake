# SPDX-License-Identifier: Apache-2.0
# Decides what multiplies 16-bit operands: after this file TESSERA_SHORT_PRODUCTS is cublas, onednn or emulated.
tessera_auto_option(TESSERA_ENABLE_ONEDNN "bf16, fp16 and large float32 products on CPUs" "oneDNN is found")

set(TESSERA_SHORT_PRODUCTS emulated)
if("CUDA" IN_LIST Kokkos_DEVICES)
  if(TESSERA_ENABLE_ONEDNN STREQUAL ON)
    message(FATAL_ERROR "TESSERA_ENABLE_ONEDNN = ON, but Kokkos is built for CUDA, where cuBLAS multiplies")
  endif()
  find_package(CUDAToolkit REQUIRED)
  set(TESSERA_SHORT_PRODUCTS cublas)
elseif(NOT TESSERA_ENABLE_ONEDNN STREQUAL OFF AND NOT Kokkos_DEVICES MATCHES "HIP|SYCL")
  find_package(dnnl 2.6 QUIET)
  if(NOT dnnl_FOUND)
    find_package(dnnl 3 QUIET)  # a version is compatible with its own major only
  endif()
  set_package_properties(dnnl PROPERTIES TYPE OPTIONAL PURPOSE "bf16, fp16 and large float32 products on CPUs")
  if(dnnl_FOUND)
    set(TESSERA_SHORT_PRODUCTS onednn)
  elseif(TESSERA_ENABLE_ONEDNN STREQUAL ON)
    message(FATAL_ERROR "TESSERA_ENABLE_ONEDNN = ON, but oneDNN was not found. Install it (Debian: libdnnl-dev; "
      "Spack: onednn), name where it is in CMAKE_PREFIX_PATH, or set TESSERA_ENABLE_ONEDNN=AUTO.")
  endif()
endif()
