# SPDX-License-Identifier: Apache-2.0
# Finds NCCL together with the CUDA run-time library that it needs, and makes NCCL::nccl.
# Hints: NCCL_ROOT, CUDAToolkit_ROOT (variables or environment), CUDA_HOME (environment).
set(nccl_hints ${CUDAToolkit_ROOT} $ENV{CUDAToolkit_ROOT} $ENV{CUDA_HOME} /usr/local/cuda)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${nccl_hints} PATH_SUFFIXES include)
find_library(NCCL_LIBRARY nccl HINTS ${nccl_hints} PATH_SUFFIXES lib64 lib)
find_path(NCCL_CUDA_INCLUDE_DIR cuda_runtime_api.h HINTS ${nccl_hints} PATH_SUFFIXES include)
find_library(NCCL_CUDART_LIBRARY cudart HINTS ${nccl_hints} PATH_SUFFIXES lib64 lib)
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY NCCL_CUDA_INCLUDE_DIR NCCL_CUDART_LIBRARY)

if(NCCL_INCLUDE_DIR)
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h nccl_lines REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" NCCL_VERSION "${nccl_lines}")
  string(REPLACE ";" "." NCCL_VERSION "${NCCL_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL VERSION_VAR NCCL_VERSION REQUIRED_VARS
  NCCL_LIBRARY NCCL_INCLUDE_DIR NCCL_CUDART_LIBRARY NCCL_CUDA_INCLUDE_DIR)

if(NCCL_FOUND AND NOT TARGET NCCL::nccl)
  add_library(NCCL::nccl INTERFACE IMPORTED GLOBAL)
  target_include_directories(NCCL::nccl INTERFACE ${NCCL_INCLUDE_DIR} ${NCCL_CUDA_INCLUDE_DIR})
  target_link_libraries(NCCL::nccl INTERFACE ${NCCL_LIBRARY} ${NCCL_CUDART_LIBRARY})
endif()
