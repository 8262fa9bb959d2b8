# SPDX-License-Identifier: Apache-2.0
# The layering check must catch these. Usage: cmake -D SCRATCH=<directory> -P layering_negative.cmake
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/expect_failure.cmake)

# Makes a source tree of pairs: file, text.
function(expect_violation regex)
  file(REMOVE_RECURSE ${SCRATCH})
  list(LENGTH ARGN count)
  math(EXPR last "${count} - 1")
  foreach(i RANGE 0 ${last} 2)
    math(EXPR j "${i} + 1")
    list(GET ARGN ${i} file)
    list(GET ARGN ${j} text)
    file(WRITE ${SCRATCH}/${file} "${text}\n")
  endforeach()
  expect_failure(layering.cmake ${SCRATCH} "${regex}")
endfunction()

expect_violation("src/tessera/base must not depend on src/tessera/nn"
  src/tessera/base/a.hpp "#include <tessera/nn/b.hpp>" src/tessera/nn/b.hpp "")
expect_violation("src/tessera/nn must not depend on src/tessera/comm"
  src/tessera/nn/a.cpp "  #  include <tessera/comm/b.hpp>  // hidden" src/tessera/comm/b.hpp "")
expect_violation("src/tessera/comm must not depend on src/tessera/train"
  src/tessera/comm/a.cpp "#include <tessera/train/b.hpp>" src/tessera/train/b.hpp "")
expect_violation("tensor/a.cpp includes <mpi.h>" src/tessera/tensor/a.cpp "#include <mpi.h>")
expect_violation("src/tessera/config must not depend on src/tessera/engine"
  src/tessera/config/a.hpp "#include <tessera/engine/b.hpp>" src/tessera/engine/b.hpp "")
expect_violation("app/main.cpp includes <mpi.h>" src/tessera/app/main.cpp "#include <mpi.h>")
expect_violation("headers in detail/ are not installed"
  src/tessera/comm/a.hpp "#include <tessera/comm/detail/b.hpp>" src/tessera/comm/detail/b.hpp "")
expect_violation("bench/study must not depend on bench/run" src/tessera/base/a.hpp ""
  bench/study/a.cpp "#include \"run/b.hpp\"" bench/run/b.hpp "")
expect_violation("headers of bench are included as" src/tessera/base/a.hpp ""
  bench/study/a.cpp "#include \"b.hpp\"" bench/study/b.hpp "")
expect_violation("no folder bench/misc" src/tessera/base/a.hpp "" bench/misc/a.cpp "")
expect_violation("more than one file includes <nccl.h>"
  src/tessera/comm/a.cpp "#include <nccl.h>" src/tessera/comm/b.cpp "#include <nccl.h>")
expect_violation("more than one file includes <hdf5.h>"
  src/tessera/io/a.cpp "#include <hdf5.h>" src/tessera/checkpoint/b.cpp "#include <hdf5.h>")
expect_violation("included as <tessera" src/tessera/base/a.cpp "#include \"b.hpp\"")
expect_violation("no folder src/tessera/misc" src/tessera/misc/a.hpp "")
expect_violation("plan and predict know neither MPI nor Views"
  src/tessera/plan/a.hpp "#include <tessera/base/view.hpp>" src/tessera/base/view.hpp "")
expect_violation("plan/a.hpp reaches <tessera/comm/c.hpp>"
  src/tessera/plan/a.hpp "#include <tessera/tensor/b.hpp>" src/tessera/tensor/b.hpp "#include <tessera/comm/c.hpp>" src/tessera/comm/c.hpp "")
