# SPDX-License-Identifier: Apache-2.0
# The top level has only these entries and dotfiles, src only the library and the examples, and every folder of
# src/tessera has a README.
# Usage: cmake -D SOURCE_DIR=<repository> -P layout.cmake
cmake_minimum_required(VERSION 3.22)

set(allowed src bench test inputs scripts cmake CMakeLists.txt CMakePresets.json README.md LICENSE
  spack.yaml)

# In a checkout only tracked files count, because build directories lie beside them.
find_program(git_program git)
set(status 1)
if(git_program AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${git_program} -C ${SOURCE_DIR} ls-files OUTPUT_VARIABLE files
    RESULT_VARIABLE status ERROR_QUIET)
endif()
if(status EQUAL 0)
  string(REGEX REPLACE "(/[^\n]*)?\n" ";" entries "${files}")
  list(REMOVE_DUPLICATES entries)
else()
  file(GLOB entries RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/*)
  list(FILTER entries EXCLUDE REGEX "^(build|results)")
endif()
foreach(entry IN LISTS entries)
  if(NOT entry IN_LIST allowed AND NOT entry MATCHES "^\\.|^$")
    message(SEND_ERROR "${entry} does not belong at the top level")
  endif()
endforeach()
foreach(entry src test scripts cmake CMakeLists.txt CMakePresets.json LICENSE spack.yaml)
  if(NOT EXISTS ${SOURCE_DIR}/${entry})
    message(SEND_ERROR "${entry} is missing at the top level")
  endif()
endforeach()

file(GLOB entries RELATIVE ${SOURCE_DIR}/src ${SOURCE_DIR}/src/*)
foreach(entry IN LISTS entries)
  if(NOT entry MATCHES "^(tessera|examples)$")
    message(SEND_ERROR "src/${entry} belongs neither to the library nor to the examples")
  endif()
endforeach()
file(GLOB folders LIST_DIRECTORIES true ${SOURCE_DIR}/src/tessera/*)
foreach(folder IN LISTS folders)
  if(IS_DIRECTORY ${folder} AND NOT EXISTS ${folder}/README.md)
    message(SEND_ERROR "${folder} has no README.md")
  endif()
endforeach()
