# SPDX-License-Identifier: Apache-2.0
# tessera_auto_option(<name> <what it is> <when AUTO means ON>): a cache variable of three values.
function(tessera_auto_option name what when)
  set(${name} AUTO CACHE STRING "${what}: AUTO (when ${when}), ON, OFF")
  set_property(CACHE ${name} PROPERTY STRINGS AUTO ON OFF)
  if(NOT ${name} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${name} = ${${name}}: must be one of AUTO, ON, OFF")
  endif()
endfunction()
