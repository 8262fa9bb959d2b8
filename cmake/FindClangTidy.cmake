# SPDX-License-Identifier: Apache-2.0
# Finds ClangTidy_EXECUTABLE, version 14. Other versions find other things.
find_program(ClangTidy_EXECUTABLE NAMES clang-tidy-14)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ClangTidy REQUIRED_VARS ClangTidy_EXECUTABLE)
mark_as_advanced(ClangTidy_EXECUTABLE)
