# SPDX-License-Identifier: Apache-2.0
# cmake -DCOMMAND="a;b;c" -DEXIT_CODE=1 [-DERROR=regex] [-DOUTPUT=regex] -P check_run.cmake
# Runs a command; it must end with that exit code, print one line "tessera: error: ..." that matches
# ERROR (none if ERROR is empty) on stderr, and something that matches OUTPUT on stdout.
execute_process(COMMAND ${COMMAND} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE error)
message("${output}\n${error}")
if(NOT code STREQUAL EXIT_CODE)
  message(FATAL_ERROR "exit code ${code}, expected ${EXIT_CODE}")
endif()
string(REGEX MATCHALL "tessera: error: [^\n]*" lines "${error}")
list(LENGTH lines count)
if(ERROR STREQUAL "")
  if(count GREATER 0)
    message(FATAL_ERROR "an error line where none was expected")
  endif()
elseif(NOT count EQUAL 1)
  message(FATAL_ERROR "${count} error lines, expected one")
elseif(NOT lines MATCHES "^tessera: error: ${ERROR}$")
  message(FATAL_ERROR "the error line does not match ${ERROR}")
endif()
if(NOT OUTPUT STREQUAL "" AND NOT output MATCHES "${OUTPUT}")
  message(FATAL_ERROR "the output does not match ${OUTPUT}")
endif()
