# SPDX-License-Identifier: Apache-2.0
# Defines add_serial_test, add_mpi_test and add_script_test, which set time limit, processors, labels and environment.

# Open MPI refuses more ranks than cores unless told, and binds ranks to cores: tests that run side by side would share
# the first ones. MPICH does neither.
execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE tessera_mpiexec_version
  ERROR_QUIET)
if(tessera_mpiexec_version MATCHES "Open MPI|OpenRTE|PRRTE|prterun")
  set(tessera_mpiexec_flags --oversubscribe --bind-to none)
else()
  set(tessera_mpiexec_flags "")
endif()

option(TESSERA_TEST_HEADERS "Compile every header alone" ON)

# Kernels of any size use all threads of a rank. Threads and ranks that wait yield their core. When a rank ends a
# launch, the others end at once. Leaks are not reported, because MPI libraries keep memory until the process ends. Tests
# read stderr, so nothing shows progress, and threads may share cores without a warning.
set(TESSERA_TEST_THREADS 1 CACHE STRING "Threads of a rank in tests that do not choose them")
set(tessera_test_environment OMP_NUM_THREADS=${TESSERA_TEST_THREADS} TESSERA_SERIAL_BELOW=0
  TESSERA_PROGRESS=none TESSERA_ALLOW_SHARED_CORES=1 OMP_WAIT_POLICY=passive OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_odls_base_sigkill_timeout=0
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1)
execute_process(COMMAND id -u OUTPUT_VARIABLE tessera_user OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(tessera_user STREQUAL "0")
  list(APPEND tessera_test_environment OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
endif()
# Without a user's choice OpenBLAS may use slow kernels, and Tessera would warn on stderr, which tests read.
if(NOT DEFINED ENV{OPENBLAS_CORETYPE} AND EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo flags REGEX "^flags" LIMIT_COUNT 1)
  if(flags MATCHES " avx512dq .* avx512bw .*avx512vl")
    list(APPEND tessera_test_environment OPENBLAS_CORETYPE=SkylakeX)
  elseif(flags MATCHES " fma .* avx2 ")
    list(APPEND tessera_test_environment OPENBLAS_CORETYPE=Haswell)
  endif()
endif()

# Sets <out> to the command that launches `command...` on `ranks` ranks.
function(tessera_mpi_command out ranks)
  set(${out} ${MPIEXEC_EXECUTABLE} ${tessera_mpiexec_flags} ${MPIEXEC_NUMPROC_FLAG} ${ranks}
    ${MPIEXEC_PREFLAGS} ${ARGN} PARENT_SCOPE)
endfunction()

# Marks a test that starts Kokkos: with CUDA it needs a GPU, and without one it is shown as skipped.
function(tessera_needs_gpu test)
  if("CUDA" IN_LIST Kokkos_DEVICES)
    set_property(TEST ${test} APPEND PROPERTY LABELS gpu)
    set_property(TEST ${test} PROPERTY SKIP_REGULAR_EXPRESSION "sees no GPU" "cudaGetDeviceCount"
      "libcuda.so.1: cannot open")
  endif()
endfunction()

# add_serial_test(<name> COMMAND <target or program> [args...] [TIMEOUT <seconds>] [LABELS <label>...])
# Adds a test of one process, started without a launcher.
function(add_serial_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "TIMEOUT" "COMMAND;LABELS")
  tessera_check_test_arguments(${name})
  add_test(NAME ${name} COMMAND ${test_COMMAND})
  tessera_describe_test(${name} 1 serial)
endfunction()

# add_mpi_test(<name> COMMAND <target or program> [args...] [RANKS <n>...] [TWO_THREADS <n>...] [TIMEOUT <seconds>]
#              [LABELS <label>...])
# Adds a test <name>_np<n> for every number of ranks, also above the number of cores, and <name>_np<n>_threads2 for
# those of TWO_THREADS.
function(add_mpi_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "TIMEOUT" "COMMAND;LABELS;RANKS;TWO_THREADS")
  tessera_check_test_arguments(${name})
  if(NOT test_RANKS AND NOT test_TWO_THREADS)
    message(FATAL_ERROR "add_mpi_test(${name}): RANKS is missing")
  endif()
  list(POP_FRONT test_COMMAND program)
  if(TARGET ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  foreach(ranks IN LISTS test_RANKS)
    tessera_mpi_command(command ${ranks} ${program} ${test_COMMAND})
    add_test(NAME ${name}_np${ranks} COMMAND ${command})
    tessera_describe_test(${name}_np${ranks} ${ranks} mpi ranks-${ranks})
  endforeach()
  foreach(ranks IN LISTS test_TWO_THREADS)
    tessera_mpi_command(command ${ranks} ${program} ${test_COMMAND})
    add_test(NAME ${name}_np${ranks}_threads2 COMMAND ${command})
    tessera_describe_test(${name}_np${ranks}_threads2 ${ranks} mpi threads-2)
  endforeach()
endfunction()

# add_script_test(<name> COMMAND <script> [args...] RANKS <n> [TWO_THREADS] [TIMEOUT <seconds>] [LABELS <label>...])
# Adds a script that launches programs; its last arguments are the command that starts `n` ranks. Short launches mostly
# wait, so the test counts as one processor and others run beside it.
function(add_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "TWO_THREADS" "TIMEOUT;RANKS" "COMMAND;LABELS")
  tessera_check_test_arguments(${name})
  tessera_mpi_command(launcher ${test_RANKS})
  add_test(NAME ${name} COMMAND ${test_COMMAND} ${launcher})
  tessera_describe_test(${name} ${test_RANKS} mpi ranks-${test_RANKS})
  set_tests_properties(${name} PROPERTIES PROCESSORS 1)
  if(test_TWO_THREADS)
    add_test(NAME ${name}_threads2 COMMAND ${test_COMMAND} ${launcher})
    tessera_describe_test(${name}_threads2 ${test_RANKS} mpi threads-2)
    set_tests_properties(${name}_threads2 PROPERTIES PROCESSORS 1)
  endif()
endfunction()

# Sets time limit, labels, processors and environment of a test; the label threads-2 gives it two threads.
# scripts/test.sh has two slots for each core, because most tests mostly wait. Ranks that wait for each other need their cores:
# beside others they take ten times as long. So each of several ranks counts as two processors. Threads sleep while they wait.
macro(tessera_describe_test name ranks)
  set(labels ${ARGN} ${test_LABELS})
  set(environment ${tessera_test_environment})
  set(processors ${ranks})
  if(processors GREATER 1)
    math(EXPR processors "2 * ${processors}")
  endif()
  if("threads-2" IN_LIST labels)
    list(APPEND environment OMP_NUM_THREADS=2)
    math(EXPR processors "2 * ${processors}")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${test_TIMEOUT} PROCESSORS ${processors}
    ENVIRONMENT "${environment}" LABELS "${labels}")
  tessera_needs_gpu(${name})
endmacro()

macro(tessera_check_test_arguments name)
  if(test_UNPARSED_ARGUMENTS OR NOT test_COMMAND)
    message(FATAL_ERROR "test ${name}: COMMAND is missing, or unknown arguments '${test_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 300)
  endif()
endmacro()
