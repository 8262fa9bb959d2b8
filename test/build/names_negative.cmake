# SPDX-License-Identifier: Apache-2.0
# The check of the names must catch these, and only these. Usage: cmake -D SCRATCH=<directory> -P names_negative.cmake
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/expect_failure.cmake)

function(write_tree first second)
  file(REMOVE_RECURSE ${SCRATCH})
  file(WRITE ${SCRATCH}/src/tessera/nn/a.hpp "namespace tessera {\n${first}\n}\n")
  file(WRITE ${SCRATCH}/bench/run/b.cpp "namespace tessera::bench {\n${second}\n}\n")
endfunction()

foreach(pair IN ITEMS "struct Options {|struct Options {" "class Options final : public Base {|struct Options {"
    "enum class Options : std::uint8_t { a };|class Options {" "class [[nodiscard]] Options {|enum Options { a }"
    "struct Options {|class Options\n    : public Base {")
  string(REGEX REPLACE "^(.*)[|].*$" "\\1" first "${pair}")
  string(REGEX REPLACE "^.*[|](.*)$" "\\1" second "${pair}")
  write_tree("${first}" "${second}")
  expect_failure(names.cmake ${SCRATCH} "both define a type Options")
endforeach()

foreach(second IN ITEMS "struct Options;" "struct Options::Part {" "struct Options<int> {" "class Other {\n  struct Options {")
  write_tree("struct Options {" "${second}")
  execute_process(COMMAND ${CMAKE_COMMAND} -D SOURCE_DIR=${SCRATCH} -P ${CMAKE_CURRENT_LIST_DIR}/names.cmake
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(SEND_ERROR "names.cmake refuses '${second}'")
  endif()
endforeach()
