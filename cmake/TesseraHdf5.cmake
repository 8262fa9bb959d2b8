# SPDX-License-Identifier: Apache-2.0
# Decides whether data sets in HDF5 files can be read. After this file TESSERA_ENABLE_HDF5 is ON or OFF.
tessera_auto_option(TESSERA_ENABLE_HDF5 "data sets in HDF5 files" "HDF5 is found")

set(tessera_hdf5_wanted ${TESSERA_ENABLE_HDF5})
set(TESSERA_ENABLE_HDF5 OFF)
if(NOT tessera_hdf5_wanted STREQUAL OFF)
  find_package(HDF5C 1.10 QUIET)
  set_package_properties(HDF5C PROPERTIES TYPE OPTIONAL PURPOSE "data sets in HDF5 files")
  if(HDF5C_FOUND)
    set(TESSERA_ENABLE_HDF5 ON)
  elseif(tessera_hdf5_wanted STREQUAL ON)
    message(FATAL_ERROR "TESSERA_ENABLE_HDF5 = ON, but no HDF5 1.10 or newer was found. "
      "Install it (Debian: libhdf5-dev; Spack: hdf5), set HDF5_ROOT, or set TESSERA_ENABLE_HDF5=AUTO.")
  endif()
endif()
