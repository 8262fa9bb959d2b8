# SPDX-License-Identifier: Apache-2.0
# The check of citations must catch these. Usage: cmake -D SCRATCH=<directory> -P citations_negative.cmake
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/expect_failure.cmake)

function(expect_violation regex file text)
  file(REMOVE_RECURSE ${SCRATCH})
  file(WRITE ${SCRATCH}/src/README.md "[here](README.md#part) and [there](https://kokkos.org)\n")
  file(WRITE ${SCRATCH}/${file} "${text}\n")
  expect_failure(citations.cmake ${SCRATCH} "${regex}")
endfunction()

expect_violation("src/a.hpp cites THEORY.md" src/a.hpp "/// The proof is in THEORY.md, section 2.")
expect_violation("src/a.md links to b/, which" src/a.md "[text](b/)")
expect_violation("src/a.md links to b.cpp" src/a.md "[one](README.md)\n```\na[0](code)\n```\n[[text]](b.cpp#line)")
expect_violation("README.md cites src/THEORY.md" README.md "See src/THEORY.md.")
expect_violation("src/a.cpp cites THEORY.md" src/a.cpp "// THEORY §2: the table")
