# SPDX-License-Identifier: Apache-2.0
# add_serial_test and add_mpi_test: time limits, processors, labels and the environment of a launch.

# What the launcher of this MPI needs. Open MPI refuses root and more ranks than cores unless told, and
# pins ranks to cores, where tests that run side by side would share the first ones. MPICH does neither.
execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE tessera_mpiexec_version
  ERROR_QUIET)
if(tessera_mpiexec_version MATCHES "Open MPI|OpenRTE|PRRTE|prterun")
  set(tessera_mpiexec_flags --oversubscribe --bind-to none)
else()
  set(tessera_mpiexec_flags "")
endif()

# One BLAS thread a rank. Ranks that wait leave their core to those that work. MPI libraries keep memory
# until the process ends, which is not our leak.
set(tessera_test_environment OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 OMP_PROC_BIND=false
  OMPI_MCA_mpi_yield_when_idle=1
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1)
execute_process(COMMAND id -u OUTPUT_VARIABLE tessera_user OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(tessera_user STREQUAL "0")
  list(APPEND tessera_test_environment OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
endif()

# Sets <out> to the command that launches `command...` on `ranks` ranks.
function(tessera_mpi_command out ranks)
  set(${out} ${MPIEXEC_EXECUTABLE} ${tessera_mpiexec_flags} ${MPIEXEC_NUMPROC_FLAG} ${ranks}
    ${MPIEXEC_PREFLAGS} ${ARGN} PARENT_SCOPE)
endfunction()

# add_serial_test(<name> COMMAND <target or program> [args...] [TIMEOUT <seconds>] [LABELS <label>...])
# One process, started without a launcher.
function(add_serial_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "TIMEOUT" "COMMAND;LABELS")
  tessera_check_test_arguments(${name})
  set(labels serial ${test_LABELS})
  add_test(NAME ${name} COMMAND ${test_COMMAND})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${test_TIMEOUT} PROCESSORS 1
    ENVIRONMENT "${tessera_test_environment}" LABELS "${labels}")
endfunction()

# add_mpi_test(<name> COMMAND <target or program> [args...] RANKS <n>... [TIMEOUT <seconds>]
#              [LABELS <label>...])
# One test <name>_np<n> for every rank count, also for those above the number of cores.
function(add_mpi_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "TIMEOUT" "COMMAND;LABELS;RANKS")
  tessera_check_test_arguments(${name})
  if(NOT test_RANKS)
    message(FATAL_ERROR "add_mpi_test(${name}): RANKS is missing")
  endif()
  list(POP_FRONT test_COMMAND program)
  if(TARGET ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  foreach(ranks IN LISTS test_RANKS)
    tessera_mpi_command(command ${ranks} ${program} ${test_COMMAND})
    set(labels mpi ranks-${ranks} ${test_LABELS})
    add_test(NAME ${name}_np${ranks} COMMAND ${command})
    set_tests_properties(${name}_np${ranks} PROPERTIES TIMEOUT ${test_TIMEOUT} PROCESSORS ${ranks}
      ENVIRONMENT "${tessera_test_environment}" LABELS "${labels}")
  endforeach()
endfunction()

macro(tessera_check_test_arguments name)
  if(test_UNPARSED_ARGUMENTS OR NOT test_COMMAND)
    message(FATAL_ERROR "test ${name}: COMMAND is missing, or unknown arguments '${test_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 300)
  endif()
endmacro()
