# SPDX-License-Identifier: Apache-2.0
# Runs a program that goes wrong on purpose, and holds exit code and stderr against what is expected.
#   cmake -D COMMAND=... -D CODE=5 -D "LINE=regular expression" -D LINES=1 -P run_stall.cmake
separate_arguments(COMMAND)
execute_process(COMMAND ${COMMAND} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
if(NOT code EQUAL CODE)
  message(FATAL_ERROR "exit code ${code}, expected ${CODE}:\n${out}\n${err}")
endif()
string(REPLACE ";" "," err "${err}")  # no list
string(REGEX MATCHALL "tessera: [^\n]*" lines "${err}")
list(LENGTH lines number)
if(NOT number EQUAL LINES)
  message(FATAL_ERROR "${number} lines, expected ${LINES}:\n${lines}\n${err}")
endif()
foreach(line IN LISTS lines)
  message("${line}")
  if(NOT line MATCHES "${LINE}")
    message(FATAL_ERROR "the line should match: ${LINE}")
  endif()
endforeach()
