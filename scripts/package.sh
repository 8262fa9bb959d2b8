#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck source-path=SCRIPTDIR
usage() {
  cat <<'TEXT'
usage: scripts/package.sh [--preset release|cuda] [--build DIR] [--with-mpi] [--with-tests] [--xz] [-o DIR]

Makes tessera-VERSION-SYSTEM-PROCESSOR-BACKENDS.tar.gz, which can be unpacked anywhere: programs, the libraries that they
load, inputs, examples, manual pages and documentation. The machine that runs them needs the MPI library, and CUDA and
NCCL for the preset cuda, in the versions of this machine, and a C library at least as new. With --with-mpi it needs no
MPI: source env.sh in the unpacked folder, then mpirun starts ranks on that one host.

  --preset NAME   what to build, in build/package-NAME, for any processor of this kind (release)
  --build DIR     pack the programs that this build has made, and build nothing
  --with-mpi      include this machine's Open MPI 4, without its components for fast networks
  --with-tests    include the test programs, for scripts/gpu_check.sh
  --xz            make a .tar.xz, which is 40 % smaller, takes a minute, and needs xz on the other machine
  -o DIR          where to put the package (build)
TEXT
}

# shellcheck source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

take_package_arguments() {
  preset=release build='' xz='' with_mpi=OFF with_tests=OFF o=$root/build
  take_options '--preset --build -o' '--xz --with-mpi --with-tests' "$@"
  [[ $preset =~ ^(release|cuda)$ ]] || die "--preset '$preset': must be release or cuda"
  if [[ $with_mpi == ON ]]; then command -v orted > /dev/null || die "--with-mpi needs Open MPI 4, whose orted is not in PATH"; fi
  format=TGZ
  if [[ -n $xz ]]; then format=TXZ; fi
  mkdir -p "$o"
  output=$(cd "$o" && pwd)
}

# build_package: builds the programs in $build.
build_package() {
  local -a options=(-D TESSERA_NATIVE=OFF -D "TESSERA_BUILD_TESTS=$with_tests") targets=(tessera_install)
  if [[ $with_tests == ON ]]; then targets+=(tessera_serial_tests tessera_mpi_tests); fi
  install_missing dnnl HDF5C Help2man Patchelf
  if [[ $preset == cuda ]]; then use_cuda_kokkos; fi
  if ((jobs <= 4)); then options+=(-D CMAKE_UNITY_BUILD=ON); fi
  build=$root/build/package-$preset
  say "Configuring and building in $build ($jobs jobs)"
  (cd "$root" && cmake --preset "$preset" -B "$build" "${options[@]}" &&
    cmake --build "$build" -j "$jobs" --target "${targets[@]}")
}

take_package_arguments "$@"
if [[ -z $build ]]; then build_package; fi
[[ -f $build/CPackConfig.cmake ]] || die "--build '$build': is no build of Tessera"
build=$(cd "$build" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
parts="$build;tessera;Unspecified;/"
if [[ $with_tests == ON ]]; then parts+=";$build;tessera;tests;/"; fi
cpack --config "$build/CPackConfig.cmake" -G "$format" -D CPACK_TESSERA_MPI=$with_mpi \
  -D "CPACK_INSTALL_CMAKE_PROJECTS=$parts" -B "$work"
for file in "$work"/*.tar.*; do
  mv "$file" "$output"
  say "Package: $output/$(basename "$file")"
done
