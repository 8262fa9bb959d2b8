# SPDX-License-Identifier: Apache-2.0
# Finds Help2man_EXECUTABLE, which makes manual pages from the help of programs.
find_program(Help2man_EXECUTABLE help2man)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Help2man REQUIRED_VARS Help2man_EXECUTABLE)
mark_as_advanced(Help2man_EXECUTABLE)
