# SPDX-License-Identifier: Apache-2.0
# Installs tessera.pc for builds without CMake: g++ main.cpp $(pkg-config --cflags --libs tessera). It names every library
# that the target links to, because Kokkos has no such file. If the library is shared, only its public ones are named.

# Appends to the list <out> the libraries and options of a link item and of what it links to; $<TARGET_FILE:...> stands
# for targets.
function(tessera_link_flags item out)
  set(flags "${${out}}")
  while(item MATCHES "^\\$<LINK_ONLY:(.*)>$")
    set(item ${CMAKE_MATCH_1})
    get_target_property(type tessera TYPE)
    if(type STREQUAL SHARED_LIBRARY)
      return()
    endif()
  endwhile()
  if(item MATCHES "^\\$<BUILD_INTERFACE:" OR item MATCHES "^::@")
    return()
  elseif(TARGET "${item}")
    get_target_property(type ${item} TYPE)
    if(NOT type STREQUAL INTERFACE_LIBRARY)
      list(APPEND flags $<TARGET_FILE:${item}>)
    endif()
    foreach(property IN ITEMS INTERFACE_LINK_OPTIONS INTERFACE_LINK_LIBRARIES)
      get_target_property(parts ${item} ${property})
      foreach(part IN LISTS parts)
        if(NOT part MATCHES "-NOTFOUND$|^SHELL:$")
          tessera_link_flags("${part}" flags)
        endif()
      endforeach()
    endforeach()
  elseif(item MATCHES "^[-/]")
    list(APPEND flags "${item}")
  elseif(NOT item MATCHES "^\\$")
    list(APPEND flags -l${item})
  endif()
  set(${out} "${flags}" PARENT_SCOPE)
endfunction()

set(tessera_flags "")
get_target_property(tessera_links tessera INTERFACE_LINK_LIBRARIES)
foreach(link IN LISTS tessera_links)
  tessera_link_flags("${link}" tessera_flags)
endforeach()
# A static library comes before those that it needs.
list(REVERSE tessera_flags)
list(REMOVE_DUPLICATES tessera_flags)
list(REVERSE tessera_flags)
list(JOIN tessera_flags " " tessera_flags)

set(tessera_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
string(REGEX REPLACE "[^/]+" ".." tessera_pc_prefix ${tessera_pc_dir})
set(includes $<FILTER:$<REMOVE_DUPLICATES:$<TARGET_PROPERTY:tessera,INTERFACE_INCLUDE_DIRECTORIES>>,EXCLUDE,^${PROJECT_SOURCE_DIR}/src$>)
set(options $<REMOVE_DUPLICATES:$<TARGET_PROPERTY:tessera,INTERFACE_COMPILE_OPTIONS>>)
set(definitions $<REMOVE_DUPLICATES:$<TARGET_PROPERTY:tessera,INTERFACE_COMPILE_DEFINITIONS>>)
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/tessera.pc CONTENT
"prefix=\${pcfiledir}/${tessera_pc_prefix}
includedir=\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}
libdir=\${prefix}/${CMAKE_INSTALL_LIBDIR}

Name: tessera
Description: ${PROJECT_DESCRIPTION}
Version: ${PROJECT_VERSION}
Cflags: -std=c++20 -I\${includedir} $<$<BOOL:${includes}>:-I$<JOIN:${includes}, -I>> $<JOIN:${options}, > $<$<BOOL:${definitions}>:-D$<JOIN:${definitions}, -D>>
Libs: -L\${libdir} -ltessera ${tessera_flags}
" TARGET tessera)
set(tessera_pc ${PROJECT_BINARY_DIR}/tessera.pc)
if(tessera_installs_kokkos)
  set(tessera_pc ${PROJECT_BINARY_DIR}/install/tessera.pc)
  install(CODE "file(READ \"${PROJECT_BINARY_DIR}/tessera.pc\" text)
    string(REPLACE \"${tessera_kokkos}\" \"\\\${prefix}/${tessera_installed_kokkos}/\" text \"\${text}\")
    file(WRITE \"${tessera_pc}\" \"\${text}\")" COMPONENT development)
endif()
install(FILES ${tessera_pc} DESTINATION ${tessera_pc_dir} COMPONENT development)
