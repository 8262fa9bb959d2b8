# SPDX-License-Identifier: Apache-2.0
# expect_failure(<script> <source directory> <regex>): the check must fail there, with this text.
function(expect_failure script source_dir regex)
  execute_process(COMMAND ${CMAKE_COMMAND} -D SOURCE_DIR=${source_dir}
    -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${script}
    RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(status EQUAL 0)
    message(FATAL_ERROR "${script} did not notice: ${regex}")
  endif()
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  if(NOT text MATCHES "${regex}")
    message(FATAL_ERROR "${script} failed without saying '${regex}':\n${text}")
  endif()
endfunction()
