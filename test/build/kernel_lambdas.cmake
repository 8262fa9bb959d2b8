# SPDX-License-Identifier: Apache-2.0
# nvcc rejects lambdas for kernels in the bodies of tests, and generic ones anywhere. Builds without a GPU do not compile the
# tests with it.
# Usage: cmake -D SOURCE_DIR=<repository> -P kernel_lambdas.cmake
cmake_minimum_required(VERSION 3.22)

file(GLOB_RECURSE files RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/src/*.?pp ${SOURCE_DIR}/bench/*.?pp ${SOURCE_DIR}/test/*.?pp)
foreach(file IN LISTS files)
  set(pattern "KOKKOS_LAMBDA\\([^)]*auto")
  if(file MATCHES "^test/.*_test\\.cpp$")
    set(pattern "KOKKOS_LAMBDA")
  endif()
  file(STRINGS ${SOURCE_DIR}/${file} lines REGEX "${pattern}")
  foreach(line IN LISTS lines)
    message(SEND_ERROR "${file}: nvcc needs a functor in place of a lambda: ${line}")
  endforeach()
endforeach()
