# SPDX-License-Identifier: Apache-2.0
# tessera_auto_option(<name> <purpose> <condition>): makes a cache variable that is AUTO, ON or OFF. The caller decides
# when AUTO means ON; `condition` says it in words.
function(tessera_auto_option name what when)
  set(${name} AUTO CACHE STRING "${what}: AUTO (when ${when}), ON, OFF")
  set_property(CACHE ${name} PROPERTY STRINGS AUTO ON OFF)
  if(NOT ${name} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${name} = ${${name}}: must be one of AUTO, ON, OFF")
  endif()
endfunction()
