# SPDX-License-Identifier: Apache-2.0
# Usage: cmake -D SCRATCH=<directory> -P kernel_lambdas_negative.cmake
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/expect_failure.cmake)

foreach(case IN ITEMS "test/nn/a_test.cpp|KOKKOS_LAMBDA(int i) {" "src/tessera/a.hpp|KOKKOS_LAMBDA(const auto& team) {")
  string(REPLACE "|" ";" case "${case}")
  list(POP_FRONT case file)
  file(REMOVE_RECURSE ${SCRATCH})
  file(WRITE ${SCRATCH}/${file} "  f(\n    ${case} });\n")
  expect_failure(kernel_lambdas.cmake ${SCRATCH} "nvcc needs a functor")
endforeach()
