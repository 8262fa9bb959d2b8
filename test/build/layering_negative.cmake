# SPDX-License-Identifier: Apache-2.0
# The layering check must catch these. Usage: cmake -D SCRATCH=<directory> -P layering_negative.cmake
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/expect_failure.cmake)

# A source tree of pairs: file, text.
function(expect_violation regex)
  file(REMOVE_RECURSE ${SCRATCH})
  list(LENGTH ARGN count)
  math(EXPR last "${count} - 1")
  foreach(i RANGE 0 ${last} 2)
    math(EXPR j "${i} + 1")
    list(GET ARGN ${i} file)
    list(GET ARGN ${j} text)
    file(WRITE ${SCRATCH}/src/${file} "${text}\n")
  endforeach()
  expect_failure(layering.cmake ${SCRATCH} "${regex}")
endfunction()

expect_violation("src/base must not depend on src/nn"
  base/a.hpp "#include <tessera/nn/b.hpp>" nn/b.hpp "")
expect_violation("src/nn must not depend on src/comm"
  nn/a.cpp "  #  include <tessera/comm/b.hpp>  // hidden" comm/b.hpp "")
expect_violation("src/comm must not depend on src/train"
  comm/a.cpp "#include <tessera/train/b.hpp>" train/b.hpp "")
expect_violation("mesh/a.cpp includes <mpi.h>" mesh/a.cpp "#include <mpi.h>")
expect_violation("main.cpp includes <mpi.h>" main.cpp "#include <mpi.h>")
expect_violation("more than one file includes <nccl.h>"
  comm/a.cpp "#include <nccl.h>" comm/b.cpp "#include <nccl.h>")
expect_violation("included as <tessera" base/a.cpp "#include \"b.hpp\"")
expect_violation("no folder src/misc" misc/a.hpp "")
expect_violation("the plan knows neither MPI nor Views"
  plan/a.hpp "#include <tessera/base/view.hpp>" base/view.hpp "")
expect_violation("plan/a.hpp reaches <tessera/comm/c.hpp>"
  plan/a.hpp "#include <tessera/mesh/b.hpp>" mesh/b.hpp "#include <tessera/comm/c.hpp>" comm/c.hpp "")
