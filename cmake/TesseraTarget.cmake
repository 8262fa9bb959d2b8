# SPDX-License-Identifier: Apache-2.0
# Sets the compiler options of our own code. None of them reaches users of the library.
include(CheckCXXCompilerFlag)

# Warnings are errors only for the compiler that we test with: a new warning of another one must not stop a build.
set(tessera_werror_default OFF)
if(PROJECT_IS_TOP_LEVEL AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
   AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\." AND NOT "CUDA" IN_LIST Kokkos_DEVICES)
  set(tessera_werror_default ON)
endif()
option(TESSERA_WERROR "Treat warnings as errors" ${tessera_werror_default})

add_library(tessera_warnings INTERFACE)
target_compile_options(tessera_warnings INTERFACE -Wall -Wextra)
# nvcc writes host code that is not pedantic and has superfluous parentheses. It warns of assignments of [[nodiscard]]
# objects as if the value were ignored (2810).
if("CUDA" IN_LIST Kokkos_DEVICES)
  target_compile_options(tessera_warnings INTERFACE -Wno-parentheses
    "SHELL:-Xcudafe --diag_suppress=2810")
else()
  target_compile_options(tessera_warnings INTERFACE -Wpedantic)
endif()
# GCC 12 sees overlaps and overflows in "literal" + std::string that are not there (GCC bug 105651), in some sources only
# with a precompiled header.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
  target_compile_options(tessera_warnings INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
endif()
# The warning is meant for headers, and takes the sources of a unity build for headers.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(tessera_warnings INTERFACE -Wno-subobject-linkage)
endif()
if(TESSERA_WERROR)
  target_compile_options(tessera_warnings INTERFACE -Werror)
endif()

add_library(tessera_native INTERFACE)
# A compiler fuses products and sums as it likes: in the body of a loop, in its last elements, or with another execution
# space. numerics.reproducible needs the same bits in all of them; kernels that gain from fused operations call them.
# Without this option, steps of inputs/fno.toml are 8 % faster and those of other models equally fast.
target_compile_options(tessera_native INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
# nvcc_wrapper passes that option to the host's compiler only; this one is for the code of the device.
if("CUDA" IN_LIST Kokkos_DEVICES)
  target_compile_options(tessera_native INTERFACE -fmad=false)
endif()
if(TESSERA_NATIVE)
  check_cxx_compiler_flag(-march=native TESSERA_HAVE_MARCH_NATIVE)
  if(NOT TESSERA_HAVE_MARCH_NATIVE)
    message(FATAL_ERROR "TESSERA_NATIVE = ON: ${CMAKE_CXX_COMPILER} does not accept -march=native")
  endif()
  target_compile_options(tessera_native INTERFACE -march=native)
  # g++ 12 with 512-bit vectors stores wrong constants (eight 64-bit integers from a list, for one).
  # 256 is what it prefers on the processors that it knows.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13
     AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(tessera_native INTERFACE -mprefer-vector-width=256)
  endif()
endif()

# Precompiled headers halve the time of a whole build. The presets use them; packagers decide for themselves.
option(TESSERA_PRECOMPILE_HEADERS "Precompile the headers of libraries" OFF)
# ccache compares preprocessed sources, which a precompiled header hides.
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache" OR "CUDA" IN_LIST Kokkos_DEVICES)
  set(TESSERA_PRECOMPILE_HEADERS OFF)
endif()

# Headers that most of our sources include.
set(tessera_common_headers <Kokkos_Core.hpp> <fmt/format.h> <nlohmann/json.hpp> <mpi.h>)

# tessera_target(<target> [header...]): turns on warnings, compiles for the processor that TESSERA_NATIVE asks for, and
# precompiles these headers with TESSERA_PRECOMPILE_HEADERS.
function(tessera_target target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:tessera_warnings>
                                          $<BUILD_INTERFACE:tessera_native>)
  if(TESSERA_PRECOMPILE_HEADERS AND ARGN)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# tessera_unite_by_folder(<target> [<folders>...]): makes a unity build compile the sources of each folder at once, and
# those of each list of folders. Names in anonymous namespaces must differ there. Most of the time goes into headers.
function(tessera_unite_by_folder target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME group)
    foreach(folders IN LISTS ARGN)
      separate_arguments(folders)
      if(group IN_LIST folders)
        list(GET folders 0 group)
      endif()
    endforeach()
    set_property(SOURCE ${source} TARGET_DIRECTORY ${target} PROPERTY UNITY_GROUP ${group})
  endforeach()
endfunction()
