# SPDX-License-Identifier: Apache-2.0
# Finds every dependency of the table dependencies.txt, and reports all missing ones in one message.

# <mpi.h> must not include the C++ bindings, which MPI has removed.
set(MPI_CXX_SKIP_MPICXX ON)

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/dependencies.txt)
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/dependencies.txt tessera_dependency_rows REGEX "^[^#]")

# Sets <out> to the columns of the row of package <name>: name;Debian packages;Spack package;purpose.
function(tessera_dependency_row name out)
  foreach(row IN LISTS tessera_dependency_rows)
    string(REGEX REPLACE " *\\| *" ";" columns "${row}")
    list(GET columns 0 first)
    if(first STREQUAL name)
      set(${out} "${columns}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "cmake/dependencies.txt has no row '${name}'")
endfunction()

set(TESSERA_MISSING "")
# Finds a package that the build needs. This is a macro, because packages set variables.
macro(tessera_find_package name)
  tessera_dependency_row(${name} tessera_row)
  list(GET tessera_row 3 tessera_purpose)
  find_package(${name} QUIET ${ARGN})
  set_package_properties(${name} PROPERTIES TYPE REQUIRED PURPOSE "${tessera_purpose}")
  if(NOT ${name}_FOUND)
    list(APPEND TESSERA_MISSING ${name})
  endif()
endmacro()

function(tessera_stop_if_missing)
  if(NOT TESSERA_MISSING)
    return()
  endif()
  set(text "")
  foreach(name IN LISTS TESSERA_MISSING)
    tessera_dependency_row(${name} row)
    list(GET row 1 debian)
    list(GET row 2 spack)
    list(GET row 3 purpose)
    string(APPEND text "  ${name} (${purpose}): on Debian ${debian}; with Spack ${spack}\n")
  endforeach()
  message(FATAL_ERROR "Tessera needs packages that were not found:\n${text}"
    "Install them (scripts/setup.sh does it on Debian, `spack env activate . && spack install` with Spack),"
    " or name where they are in CMAKE_PREFIX_PATH. `cmake --debug-find` shows where CMake looked.")
endfunction()

tessera_find_package(Threads)
tessera_find_package(MPI 3.0 COMPONENTS CXX)
# TesseraKokkos.cmake checks the version, and says how to get a newer one.
tessera_find_package(Kokkos)
tessera_find_package(KokkosKernels)
tessera_find_package(fmt)
tessera_find_package(nlohmann_json)
tessera_find_package(tomlplusplus)
tessera_find_package(CLI11)
tessera_find_package(ZLIB)
if(TESSERA_BUILD_TESTS)
  tessera_find_package(GTest)
endif()
if(TESSERA_BUILD_BENCHMARKS)
  tessera_find_package(benchmark)
endif()
tessera_stop_if_missing()

include(TesseraKokkos)
include(TesseraAutoOption)
include(TesseraNccl)
include(TesseraShortProducts)
include(TesseraHdf5)
