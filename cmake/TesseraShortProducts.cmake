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
  # Its packages accept a request for their own major version only. The first one in the search order is taken.
  find_package(dnnl QUIET)
  if(dnnl_FOUND AND dnnl_VERSION VERSION_LESS 2.6)
    message(STATUS "oneDNN ${dnnl_VERSION} in ${dnnl_DIR} is not used: it is older than 2.6")
    set(dnnl_FOUND OFF)
  endif()
  set_package_properties(dnnl PROPERTIES TYPE OPTIONAL PURPOSE "bf16, fp16 and large float32 products on CPUs")
  if(dnnl_FOUND)
    set(TESSERA_SHORT_PRODUCTS onednn)
  elseif(TESSERA_ENABLE_ONEDNN STREQUAL ON)
    message(FATAL_ERROR "TESSERA_ENABLE_ONEDNN = ON, but oneDNN was not found. Install it (Debian: libdnnl-dev; "
      "Spack: onednn), name where it is in CMAKE_PREFIX_PATH, or set TESSERA_ENABLE_ONEDNN=AUTO.")
  endif()
endif()
