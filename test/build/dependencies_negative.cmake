# SPDX-License-Identifier: Apache-2.0
# The check of the dependencies must catch these.
# Usage: cmake -D SOURCE_DIR=<repository> -D SCRATCH=<directory> -P dependencies_negative.cmake
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/expect_failure.cmake)

# Copies the files that the check reads, and replaces one text in one of them.
function(expect_violation regex file old new)
  file(REMOVE_RECURSE ${SCRATCH})
  file(COPY ${SOURCE_DIR}/spack.yaml ${SOURCE_DIR}/cmake ${SOURCE_DIR}/CMakeLists.txt
    DESTINATION ${SCRATCH})
  file(COPY ${SOURCE_DIR}/src ${SOURCE_DIR}/test DESTINATION ${SCRATCH}
    FILES_MATCHING PATTERN CMakeLists.txt)
  file(READ ${SCRATCH}/${file} text)
  string(REPLACE "${old}" "${new}" changed "${text}")
  if(changed STREQUAL text)
    message(FATAL_ERROR "${file} does not contain '${old}'")
  endif()
  file(WRITE ${SCRATCH}/${file} "${changed}")
  expect_failure(dependencies.cmake ${SCRATCH} "${regex}")
endfunction()

expect_violation("spack.yaml lacks fmt" spack.yaml "- \"fmt\"" "# fmt")
expect_violation("spack.yaml has zlib" spack.yaml "- \"fmt\"" "- \"zlib\"")
expect_violation("kokkos-kernels needs the variant '.blas" spack.yaml " +blas" "")
expect_violation("kokkos needs the variant 'cxxstd=20'" spack.yaml "cxxstd=20" "cxxstd=17")
expect_violation("must ask for cmake@" spack.yaml "cmake@" "cmake@2")
expect_violation("looks for HDF5" CMakeLists.txt "include(FeatureSummary)" "find_package(HDF5 REQUIRED)")
expect_violation("names Boost, which no CMake file" cmake/dependencies.txt "\nNCCL " "\nBoost | - | - | -\nNCCL ")
