# SPDX-License-Identifier: Apache-2.0
# cmake -DCOMMAND="a;b;c" -DEXIT_CODE=1 [-DERROR=regex] [-DREPORT=regex] [-DLINES=1] [-DOUTPUT=regex] [-DSECONDS="1;9"]
#   -P check_run.cmake
# Runs a command. Checks its exit code and what it prints: on stderr LINES lines "tessera: error: ..." that match ERROR, or
# lines "tessera: ..." that match REPORT; none of the former if both are empty. On stdout something that matches OUTPUT.
# A command with a time limit as its last argument is run with each of SECONDS until one run is right: on a busy machine
# other ranks than the one that stalls may be late.
set(start "tessera: error: ")
set(expected 0)
if(NOT REPORT STREQUAL "")
  set(start "tessera: ")
  set(ERROR "${REPORT}")
endif()
if(NOT ERROR STREQUAL "")
  set(expected 1)
endif()
if(NOT LINES STREQUAL "")
  set(expected ${LINES})
endif()

# Runs the command with these further arguments, and sets `wrong` to what is wrong with it.
function(try)
  execute_process(COMMAND ${COMMAND} ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE error)
  message("${output}\n${error}")
  set(wrong "")
  if(NOT code STREQUAL EXIT_CODE)
    string(APPEND wrong "exit code ${code}, expected ${EXIT_CODE}\n")
  endif()
  string(REPLACE ";" "," error "${error}")  # no list
  string(REGEX MATCHALL "${start}[^\n]*" lines "${error}")
  list(LENGTH lines count)
  if(NOT count EQUAL expected)
    string(APPEND wrong "${count} lines that begin with \"${start}\", expected ${expected}\n")
  endif()
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^${start}${ERROR}$")
      string(APPEND wrong "a line does not match ${start}${ERROR}\n")
    endif()
  endforeach()
  if(NOT OUTPUT STREQUAL "" AND NOT output MATCHES "${OUTPUT}")
    string(APPEND wrong "the output does not match ${OUTPUT}\n")
  endif()
  set(wrong "${wrong}" PARENT_SCOPE)
endfunction()

list(POP_FRONT SECONDS first)
try(${first})
foreach(limit IN LISTS SECONDS)
  if(wrong)
    try(${limit})
  endif()
endforeach()
if(wrong)
  message(FATAL_ERROR "${wrong}")
endif()
