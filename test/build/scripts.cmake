# SPDX-License-Identifier: Apache-2.0
# Scripts parse and are executable, and the README names only scripts and inputs that exist.
# Usage: cmake -D SOURCE_DIR=<repository> -P scripts.cmake
cmake_minimum_required(VERSION 3.22)
find_program(bash_program bash REQUIRED)

file(GLOB scripts ${SOURCE_DIR}/scripts/*.sh ${SOURCE_DIR}/.ci/run)
if(NOT scripts)
  message(FATAL_ERROR "no scripts under ${SOURCE_DIR}/scripts")
endif()
foreach(script IN LISTS scripts)
  execute_process(COMMAND ${bash_program} -n ${script} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(SEND_ERROR "${script} does not parse")
  endif()
  execute_process(COMMAND ${bash_program} -c "test -x '${script}'" RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(SEND_ERROR "${script} is not executable")
  endif()
endforeach()

# Scripts that people start answer --help without doing anything.
foreach(name run study test kokkos opifex_tutorial gpu_check)
  execute_process(COMMAND ${bash_program} ${SOURCE_DIR}/scripts/${name}.sh --help TIMEOUT 10
    RESULT_VARIABLE status OUTPUT_VARIABLE text)
  if(NOT status EQUAL 0 OR NOT text MATCHES "usage: scripts/${name}.sh")
    message(SEND_ERROR "scripts/${name}.sh --help does not explain itself")
  endif()
endforeach()

if(EXISTS ${SOURCE_DIR}/README.md)
  file(READ ${SOURCE_DIR}/README.md readme)
  string(REGEX MATCHALL "scripts/[A-Za-z0-9_.-]*[A-Za-z0-9_]|inputs/[A-Za-z0-9_.-]*[A-Za-z0-9_]" named
    "${readme}")
  list(REMOVE_DUPLICATES named)
  foreach(path IN LISTS named)
    if(NOT EXISTS ${SOURCE_DIR}/${path})
      message(SEND_ERROR "README.md names ${path}, which does not exist")
    endif()
  endforeach()

  # The README shows the example that a test builds and runs.
  file(READ ${SOURCE_DIR}/src/examples/tutorial.cpp example)
  string(FIND "${readme}" "```cpp\n${example}```" at)
  if(at EQUAL -1)
    message(SEND_ERROR "README.md does not show src/examples/tutorial.cpp as it is")
  endif()
endif()
