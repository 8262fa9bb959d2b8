# SPDX-License-Identifier: Apache-2.0
# Finds the C library of an HDF5 that was built with MPI, and makes ParallelHDF5::hdf5. CMake's own module needs the
# language C, and takes a serial HDF5 if it finds that first. Hints: HDF5_ROOT, HDF5_DIR (variables or environment).
set(hdf5_hints ${HDF5_ROOT} $ENV{HDF5_ROOT} ${HDF5_DIR} $ENV{HDF5_DIR})
# Debian installs one HDF5 for each MPI, side by side. The header of MPI tells which one this build needs.
find_file(ParallelHDF5_MPI_HEADER mpi.h HINTS ${MPI_CXX_HEADER_DIR} ${MPI_CXX_INCLUDE_DIRS} NO_DEFAULT_PATH)
set(hdf5_mpi openmpi)
if(ParallelHDF5_MPI_HEADER)
  file(STRINGS ${ParallelHDF5_MPI_HEADER} hdf5_lines REGEX "^#define MPICH_VERSION")
  if(hdf5_lines)
    set(hdf5_mpi mpich)
  endif()
endif()
find_path(ParallelHDF5_INCLUDE_DIR hdf5.h HINTS ${hdf5_hints} PATH_SUFFIXES hdf5/${hdf5_mpi} include
  include/hdf5/${hdf5_mpi})
find_library(ParallelHDF5_LIBRARY NAMES hdf5_${hdf5_mpi} hdf5 NAMES_PER_DIR HINTS ${hdf5_hints} PATH_SUFFIXES lib lib64)
mark_as_advanced(ParallelHDF5_MPI_HEADER ParallelHDF5_INCLUDE_DIR ParallelHDF5_LIBRARY)

set(hdf5_is_parallel FALSE)
if(ParallelHDF5_INCLUDE_DIR)
  file(GLOB hdf5_headers ${ParallelHDF5_INCLUDE_DIR}/H5pubconf*.h)
  foreach(header IN LISTS hdf5_headers)
    file(STRINGS ${header} hdf5_lines REGEX "^#define H5_HAVE_PARALLEL 1")
    if(hdf5_lines)
      set(hdf5_is_parallel TRUE)
    endif()
  endforeach()
  file(STRINGS ${ParallelHDF5_INCLUDE_DIR}/H5public.h hdf5_lines REGEX "^#define H5_VERS_(MAJOR|MINOR|RELEASE)")
  string(REGEX REPLACE "#define H5_VERS_[A-Z]+[ \t]+([0-9]+)[^;]*" "\\1" ParallelHDF5_VERSION "${hdf5_lines}")
  string(REPLACE ";" "." ParallelHDF5_VERSION "${ParallelHDF5_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ParallelHDF5 VERSION_VAR ParallelHDF5_VERSION REQUIRED_VARS
  ParallelHDF5_LIBRARY ParallelHDF5_INCLUDE_DIR hdf5_is_parallel)

if(ParallelHDF5_FOUND AND NOT TARGET ParallelHDF5::hdf5)
  add_library(ParallelHDF5::hdf5 UNKNOWN IMPORTED GLOBAL)
  set_target_properties(ParallelHDF5::hdf5 PROPERTIES IMPORTED_LOCATION ${ParallelHDF5_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${ParallelHDF5_INCLUDE_DIR})
endif()
