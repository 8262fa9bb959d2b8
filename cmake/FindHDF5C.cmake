# SPDX-License-Identifier: Apache-2.0
# Finds the C library of HDF5, with or without MPI, and makes HDF5C::hdf5. CMake's own module needs the language C.
# Hints: HDF5_ROOT, HDF5_DIR (variables or environment).
set(hdf5_hints ${HDF5_ROOT} $ENV{HDF5_ROOT} ${HDF5_DIR} $ENV{HDF5_DIR})
# Debian installs a serial HDF5 and one for each MPI, side by side. The header of MPI tells which one fits this build.
find_file(HDF5C_MPI_HEADER mpi.h HINTS ${MPI_CXX_HEADER_DIR} ${MPI_CXX_INCLUDE_DIRS} NO_DEFAULT_PATH)
set(hdf5_mpi openmpi)
if(HDF5C_MPI_HEADER)
  file(STRINGS ${HDF5C_MPI_HEADER} hdf5_lines REGEX "^#define MPICH_VERSION")
  if(hdf5_lines)
    set(hdf5_mpi mpich)
  endif()
endif()
find_path(HDF5C_INCLUDE_DIR hdf5.h HINTS ${hdf5_hints} PATH_SUFFIXES hdf5/serial hdf5/${hdf5_mpi} include
  include/hdf5/serial include/hdf5/${hdf5_mpi})
# The library of the same one.
set(hdf5_names hdf5)
if(HDF5C_INCLUDE_DIR MATCHES "/hdf5/(serial|openmpi|mpich)$")
  set(hdf5_names hdf5_${CMAKE_MATCH_1})
endif()
find_library(HDF5C_LIBRARY NAMES ${hdf5_names} HINTS ${hdf5_hints} PATH_SUFFIXES lib lib64)
mark_as_advanced(HDF5C_MPI_HEADER HDF5C_INCLUDE_DIR HDF5C_LIBRARY)

if(HDF5C_INCLUDE_DIR)
  file(STRINGS ${HDF5C_INCLUDE_DIR}/H5public.h hdf5_lines REGEX "^#define H5_VERS_(MAJOR|MINOR|RELEASE)")
  string(REGEX REPLACE "#define H5_VERS_[A-Z]+[ \t]+([0-9]+)[^;]*" "\\1" HDF5C_VERSION "${hdf5_lines}")
  string(REPLACE ";" "." HDF5C_VERSION "${HDF5C_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HDF5C VERSION_VAR HDF5C_VERSION REQUIRED_VARS HDF5C_LIBRARY HDF5C_INCLUDE_DIR)

if(HDF5C_FOUND AND NOT TARGET HDF5C::hdf5)
  add_library(HDF5C::hdf5 UNKNOWN IMPORTED GLOBAL)
  set_target_properties(HDF5C::hdf5 PROPERTIES IMPORTED_LOCATION ${HDF5C_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${HDF5C_INCLUDE_DIR})
endif()
