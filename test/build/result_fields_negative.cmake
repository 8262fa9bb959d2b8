# SPDX-License-Identifier: Apache-2.0
# The check of the fields of results must catch these. Usage: cmake -D SCRATCH=<directory> -P result_fields_negative.cmake
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/expect_failure.cmake)

file(REMOVE_RECURSE ${SCRATCH})
file(WRITE ${SCRATCH}/bench/results/a.hpp "TESSERA_FIELDS(seconds, bytes);\n")
file(WRITE ${SCRATCH}/bench/study/b.hpp "static void fields(auto& f, auto& v) {\n f(\"ranks\", v.r, \"mesh\", v.m);\n}\n")
file(WRITE ${SCRATCH}/bench/study/study.cpp "{\"measure.rounds\", &M::rounds, \"of a launch\"},\n{\"study.seed\", &S::seed}\n")
file(WRITE ${SCRATCH}/bench/results/summary.cpp "  f(\"id\", r.id);\n  f(\"ranks\", r.ranks());\n")

function(write_page)
  file(WRITE ${SCRATCH}/bench/RESULTS.md "{\"rounds\": 2, \"seconds\": 1, \"bytes\": 2, \"mesh\": {${ARGV0}}}\n${ARGV1}\n")
endfunction()

write_page("" "id,ranks")
execute_process(COMMAND ${CMAKE_COMMAND} -D SOURCE_DIR=${SCRATCH} -P ${CMAKE_CURRENT_LIST_DIR}/result_fields.cmake
  RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(SEND_ERROR "result_fields.cmake refuses a right page")
endif()
write_page("" "id")
expect_failure(result_fields.cmake ${SCRATCH} "does not show the field ranks")
write_page("\"nodes\": 3" "id,ranks")
expect_failure(result_fields.cmake ${SCRATCH} "shows nodes, which no source has")
write_page("" "ranks,id")
expect_failure(result_fields.cmake ${SCRATCH} "the columns of cases.csv in bench/RESULTS.md must be id,ranks")
