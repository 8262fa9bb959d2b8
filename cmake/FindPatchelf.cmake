# SPDX-License-Identifier: Apache-2.0
# Finds Patchelf_EXECUTABLE, which sets where a program looks for its libraries.
find_program(Patchelf_EXECUTABLE patchelf)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Patchelf REQUIRED_VARS Patchelf_EXECUTABLE)
mark_as_advanced(Patchelf_EXECUTABLE)
