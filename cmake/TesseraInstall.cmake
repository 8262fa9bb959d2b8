# SPDX-License-Identifier: Apache-2.0
# Installs the library: headers under include/tessera, and a package config that gives tessera::tessera. Programs and
# manual pages are installed if they have been built. The target tessera_install builds everything but the tests. Files that
# only compilers need are the component "development".
add_custom_target(tessera_install DEPENDS tessera)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(tessera_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)

set_target_properties(tessera PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_include_directories(tessera PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS tessera EXPORT tesseraTargets ARCHIVE COMPONENT development LIBRARY NAMELINK_COMPONENT development)
install(TARGETS tessera_cli OPTIONAL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/tessera DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT development FILES_MATCHING PATTERN "*.hpp" PATTERN detail EXCLUDE)
# Users run and read these: inputs, examples, templates of jobs and the report. bash loads the completion file that has
# the program's name.
set(tessera_data_dir ${CMAKE_INSTALL_DATADIR}/tessera)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/inputs ${PROJECT_SOURCE_DIR}/src/examples
  DESTINATION ${tessera_data_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scripts/jobs DESTINATION ${tessera_data_dir} FILES_MATCHING PATTERN "*.template")
set(scripts ${PROJECT_SOURCE_DIR}/scripts)
install(PROGRAMS ${scripts}/report.py ${scripts}/npz.py ${scripts}/thicket.py ${scripts}/gpu_check.sh DESTINATION ${tessera_data_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/bench/peers DESTINATION ${tessera_data_dir}/bench FILES_MATCHING PATTERN "*.py" PATTERN "*.toml")
install(DIRECTORY ${scripts}/report ${scripts}/gpu_check DESTINATION ${tessera_data_dir}
  FILES_MATCHING PATTERN "*.py" PATTERN "*.css")
file(RELATIVE_PATH tessera_report ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/tessera/report.py)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/install)
file(CREATE_LINK ${tessera_report} ${PROJECT_BINARY_DIR}/install/tessera-report SYMBOLIC)
install(FILES ${PROJECT_BINARY_DIR}/install/tessera-report DESTINATION ${CMAKE_INSTALL_BINDIR})
foreach(program IN ITEMS tessera tessera-bench tessera-micro)
  install(FILES ${PROJECT_SOURCE_DIR}/scripts/completion.bash RENAME ${program}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endforeach()
install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION ${tessera_package_dir}
  COMPONENT development)

# A Kokkos inside the clone, where scripts/kokkos.sh puts it, is installed too: an installation does not need the clone.
cmake_path(IS_PREFIX PROJECT_SOURCE_DIR "${Kokkos_DIR}" NORMALIZE tessera_installs_kokkos)
set(tessera_kokkos_dir ${Kokkos_DIR})
set(tessera_kokkos_kernels_dir ${KokkosKernels_DIR})
if(tessera_installs_kokkos)
  cmake_path(SET tessera_kokkos NORMALIZE ${Kokkos_DIR}/../../..)
  set(tessera_installed_kokkos ${CMAKE_INSTALL_LIBDIR}/tessera/kokkos)
  install(DIRECTORY ${tessera_kokkos} DESTINATION ${tessera_installed_kokkos} USE_SOURCE_PERMISSIONS COMPONENT development)
  foreach(dir IN ITEMS tessera_kokkos_dir tessera_kokkos_kernels_dir)
    cmake_path(RELATIVE_PATH ${dir} BASE_DIRECTORY ${tessera_kokkos})
    string(PREPEND ${dir} ${tessera_installed_kokkos}/)
  endforeach()
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tesseraConfig.cmake.in
  ${PROJECT_BINARY_DIR}/tesseraConfig.cmake INSTALL_DESTINATION ${tessera_package_dir}
  PATH_VARS tessera_kokkos_dir tessera_kokkos_kernels_dir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tesseraConfig.cmake ${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/TesseraKokkos.cmake ${CMAKE_CURRENT_LIST_DIR}/FindNCCL.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindHDF5C.cmake
  DESTINATION ${tessera_package_dir} COMPONENT development)
