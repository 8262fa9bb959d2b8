# SPDX-License-Identifier: Apache-2.0
# Finds Chromium_EXECUTABLE, a browser that opens pages without a display.
find_program(Chromium_EXECUTABLE NAMES chromium chromium-browser google-chrome)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Chromium REQUIRED_VARS Chromium_EXECUTABLE)
mark_as_advanced(Chromium_EXECUTABLE)
