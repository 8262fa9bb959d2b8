# SPDX-License-Identifier: Apache-2.0
# Finds Iproute2_EXECUTABLE, which makes the networks of tests over several hosts.
find_program(Iproute2_EXECUTABLE ip PATHS /usr/sbin /sbin)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Iproute2 REQUIRED_VARS Iproute2_EXECUTABLE)
mark_as_advanced(Iproute2_EXECUTABLE)
