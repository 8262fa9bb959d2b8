# SPDX-License-Identifier: Apache-2.0
# tessera_add_manual(<target> [subcommand...]): makes and installs manual pages of a program and its subcommands from
# their --help, if help2man is installed and the programs can run here. The targets <target>_manual and tessera_install
# make the program and these pages.
find_package(Help2man QUIET)
set_package_properties(Help2man PROPERTIES TYPE OPTIONAL PURPOSE "manual pages")

function(tessera_add_manual target)
  # Sanitizers find leaks in libraries; the program would fail, and with it the build.
  if(NOT Help2man_FOUND OR CMAKE_CROSSCOMPILING OR CMAKE_CXX_FLAGS MATCHES "fsanitize")
    add_custom_target(${target}_manual ALL DEPENDS ${target})
    add_dependencies(tessera_install ${target}_manual)
    return()
  endif()
  get_target_property(program ${target} OUTPUT_NAME)
  set(pages "")
  foreach(subcommand IN ITEMS "" LISTS ARGN)
    string(JOIN "-" name ${program} ${subcommand})
    set(page ${PROJECT_BINARY_DIR}/man/man1/${name}.1)
    add_custom_command(OUTPUT ${page}
      COMMAND ${CMAKE_COMMAND} -D HELP2MAN=${Help2man_EXECUTABLE} -D PROGRAM=$<TARGET_FILE:${target}>
        -D SUBCOMMAND=${subcommand} -D NAME=${name} -D VERSION=${PROJECT_VERSION} -D OUTPUT=${page}
        -P ${PROJECT_SOURCE_DIR}/cmake/write_manual.cmake
      DEPENDS ${target} ${PROJECT_SOURCE_DIR}/cmake/write_manual.cmake VERBATIM)
    list(APPEND pages ${page})
  endforeach()
  add_custom_target(${target}_manual ALL DEPENDS ${pages})
  add_dependencies(tessera_install ${target}_manual)
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
endfunction()
