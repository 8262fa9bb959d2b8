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
foreach(name run study test kokkos opifex_tutorial gpu_check site release)
  execute_process(COMMAND ${bash_program} ${SOURCE_DIR}/scripts/${name}.sh --help TIMEOUT 10
    RESULT_VARIABLE status OUTPUT_VARIABLE text)
  if(NOT status EQUAL 0 OR NOT text MATCHES "usage: scripts/${name}.sh")
    message(SEND_ERROR "scripts/${name}.sh --help does not explain itself")
  endif()
endforeach()

# The page of the examples shows the one that a test builds and runs.
if(EXISTS ${SOURCE_DIR}/src/examples/tutorial.cpp)
  file(READ ${SOURCE_DIR}/src/examples/README.md page)
  file(READ ${SOURCE_DIR}/src/examples/tutorial.cpp example)
  string(FIND "${page}" "```cpp\n${example}```" at)
  if(at EQUAL -1)
    message(SEND_ERROR "src/examples/README.md does not show src/examples/tutorial.cpp as it is")
  endif()
endif()

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

  # The front page is read in five minutes.
  string(REGEX REPLACE "[];[]" "x" plain "${readme}")
  string(REGEX MATCHALL "[^ \t\n]+" words "${plain}")
  list(LENGTH words count)
  if(count GREATER 1000)
    message(SEND_ERROR "README.md has ${count} words, more than 1,000")
  endif()
endif()
