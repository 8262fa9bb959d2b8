# SPDX-License-Identifier: Apache-2.0
# tessera_find_python_module(<name> <module>... ): sets <name>_PYTHON to a Python that has all of the modules, and
# <name>_VERSION to the version of the first. The first Python in PATH may not be the one of the distribution's packages.
function(tessera_find_python_module name module)
  find_program(tessera_path_python NAMES python3 python)
  mark_as_advanced(tessera_path_python ${name}_PYTHON)
  string(JOIN ", " modules ${module} ${ARGN})
  foreach(program IN ITEMS ${${name}_PYTHON} ${tessera_path_python} /usr/bin/python3)
    execute_process(COMMAND ${program} -c "import ${modules}; print(${module}.__version__)"
      RESULT_VARIABLE status OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(status EQUAL 0)
      set(${name}_PYTHON ${program} CACHE FILEPATH "A Python that has ${modules}")
      set(${name}_VERSION ${version} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()
