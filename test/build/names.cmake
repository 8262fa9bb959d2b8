# SPDX-License-Identifier: Apache-2.0
# No two types of the library and of bench share a name, in any namespaces. Nested types, declarations without a body and
# specialisations of templates may repeat one.
# Usage: cmake -D SOURCE_DIR=<repository> -P names.cmake
cmake_minimum_required(VERSION 3.22)

file(GLOB_RECURSE files RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/src/*.hpp ${SOURCE_DIR}/src/*.cpp ${SOURCE_DIR}/bench/*.hpp
  ${SOURCE_DIR}/bench/*.cpp)
set(names "")
foreach(file IN LISTS files)
  # clang-format leaves what is inside of namespaces unindented, and indents what is inside of classes.
  file(STRINGS ${SOURCE_DIR}/${file} lines REGEX "^(struct|class|union|enum|enum class) ")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^(struct|class|union|enum class|enum) +(\\[\\[[a-z]+\\]\\] +)?" "" rest "${line}")
    if(NOT rest MATCHES "^([A-Za-z0-9_]+)( final)?( [{:].*)?$")
      continue()
    endif()
    set(name ${CMAKE_MATCH_1})
    if(name IN_LIST names)
      message(SEND_ERROR "${file} and ${file_of_${name}} both define a type ${name}")
    else()
      list(APPEND names ${name})
      set(file_of_${name} ${file})
    endif()
  endforeach()
endforeach()
list(LENGTH names count)
if(count LESS 1)
  message(SEND_ERROR "no types found under ${SOURCE_DIR}")
endif()
