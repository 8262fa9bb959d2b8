# SPDX-License-Identifier: Apache-2.0
# Finds ClangFormat_EXECUTABLE, version 14. Other versions format the same style differently.
find_program(ClangFormat_EXECUTABLE NAMES clang-format-14)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ClangFormat REQUIRED_VARS ClangFormat_EXECUTABLE)
mark_as_advanced(ClangFormat_EXECUTABLE)
