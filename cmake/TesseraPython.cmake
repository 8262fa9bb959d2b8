# SPDX-License-Identifier: Apache-2.0
# Sets <name>_PYTHON to a Python that has <module>, and <name>_VERSION. The first one in PATH need not be the one whose
# packages the distribution installed.
function(tessera_find_python_module name module)
  find_program(tessera_path_python NAMES python3 python)
  mark_as_advanced(tessera_path_python ${name}_PYTHON)
  foreach(program IN ITEMS ${${name}_PYTHON} ${tessera_path_python} /usr/bin/python3)
    execute_process(COMMAND ${program} -c "import ${module}; print(${module}.__version__)"
      RESULT_VARIABLE status OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(status EQUAL 0)
      set(${name}_PYTHON ${program} CACHE FILEPATH "A Python that has ${module}")
      set(${name}_VERSION ${version} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()
