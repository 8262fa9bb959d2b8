# SPDX-License-Identifier: Apache-2.0
# Matplotlib_PYTHON: a Python that has matplotlib. The first one in PATH need not be the one whose package
# the distribution installed.
find_program(tessera_path_python NAMES python3 python)
mark_as_advanced(tessera_path_python)
if(NOT Matplotlib_PYTHON)
  foreach(program IN ITEMS ${tessera_path_python} /usr/bin/python3)
    execute_process(COMMAND ${program} -c "import matplotlib; print(matplotlib.__version__)"
      RESULT_VARIABLE status OUTPUT_VARIABLE Matplotlib_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(status EQUAL 0)
      set(Matplotlib_PYTHON ${program} CACHE FILEPATH "A Python that has matplotlib")
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Matplotlib REQUIRED_VARS Matplotlib_PYTHON VERSION_VAR Matplotlib_VERSION)
mark_as_advanced(Matplotlib_PYTHON)
