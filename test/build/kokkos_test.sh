#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs scripts/kokkos.sh with small sources: it rejects bad input, compares checksums of downloads, and leaves a
# complete installation or none. Needs no network.
# usage: kokkos_test.sh SCRIPT
# shellcheck source-path=SCRIPTDIR
program=$1
# shellcheck source=../app/script_support.sh
source "$(dirname "$0")/../app/script_support.sh"
# Neither the release archives nor pip may reach a network.
export KOKKOS_MIRROR=file://$work/mirror PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1 PIP_FIND_LINKS=$work/links
mkdir "$work/links"

# make_sources: makes $here/sources/kokkos and kokkos-kernels, which only install the two files that packages look for.
make_sources() {
  local name package
  for name in kokkos kokkos-kernels; do
    package=Kokkos
    if [ $name = kokkos-kernels ]; then package=KokkosKernels; fi
    mkdir -p "$here/sources/$name"
    cat > "$here/sources/$name/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.22)
project($package LANGUAGES NONE)
set(${package}_VERSION_MAJOR 4)
set(${package}_VERSION_MINOR 6)
set(${package}_VERSION_PATCH 2)
option(Kokkos_ARCH_ZEN4 "" OFF)
file(WRITE \${CMAKE_BINARY_DIR}/${package}Config.cmake "# \${CMAKE_INSTALL_PREFIX}")
install(FILES \${CMAKE_BINARY_DIR}/${package}Config.cmake DESTINATION lib/cmake/$package)
TEXT
  done
}

# make_path: makes $here/bin with the programs that the script itself calls, and no others.
make_path() {
  local tool
  mkdir "$here/bin"
  for tool in awk bash cat cmake cut dirname env grep head ls mkdir mktemp nproc realpath rm sed timeout xargs; do
    ln -s "$(command -v "$tool")" "$here/bin/$tool"
  done
}

# refuses NAME PIECE ARGUMENTS...: expects an error that has PIECE, before anything is written.
refuses() {
  begin "$1"
  rejects "error: $2" "${@:3}"
  expect_files
}

refuses backend "--backend 'hip': must be openmp, serial or cuda" --backend hip
refuses no_value "--arch needs a value" --arch
refuses argument "unknown argument '--verbose'" --verbose
refuses spelling "--arch 'zen4': write it as Kokkos does" --arch zen4
refuses no_source "--source 'nowhere': has no kokkos/CMakeLists.txt" --source nowhere

begin no_kernels
make_sources
rm -r "$here/sources/kokkos-kernels"
rejects "error: --source 'sources': has no kokkos-kernels/CMakeLists.txt" --source sources --prefix out
expect_files sources

begin no_version
make_sources
echo > "$here/sources/kokkos/CMakeLists.txt"
rejects "error: $here/sources/kokkos/CMakeLists.txt sets no Kokkos_VERSION_MAJOR" --source sources --prefix out
expect_files sources

begin no_nvcc
make_path
PATH=$here/bin rejects "error: no nvcc in PATH" --backend cuda --arch HOPPER90 --prefix out
expect_files bin

begin no_gpu_arch
make_path
ln -s "$here/bin/env" "$here/bin/nvcc"
PATH=$here/bin rejects "error: --backend cuda needs --arch" --backend cuda --prefix out
expect_files bin

begin no_pip
make_path
PATH=$here/bin rejects "error: no pip in PATH" --prefix out
expect_files bin out.log

# The log stays, because the error points to it.
if command -v pip3 > "$work/pip" || command -v pip > "$work/pip"; then
  begin no_network
  rejects "error: pip could not download pycompadre 1.7.6; check the network" --prefix out
  expect_line "-- The release archives cannot be downloaded; using the Python packages that hold Kokkos"
  expect_files out.log

  begin checksum
  archive=$(awk '$1 == "kokkos" && $4 ~ /^[0-9.]+$/ { print $3 "-" $4; exit }' "$program")
  mkdir "$here/$archive"
  # Would leave a file if pip ran it before it compared the checksum.
  echo "open('$here/ran', 'w')" > "$here/$archive/setup.py"
  tar -C "$here" -czf "$work/links/$archive.tar.gz" "$archive"
  rm -r "${here:?}/$archive"
  rejects "error: pip could not download ${archive%-*} ${archive##*-}: its archive has a wrong checksum" --prefix out
  expect_files out.log
fi

# The release archives come first. A copy of the script has the checksums of small ones.
begin release
make_sources
mkdir "$here/scripts"
cp "$(dirname "$program")"/{env.sh,completion.bash,setup.sh,kokkos.sh} "$here/scripts"
while read -r package version checksum; do
  archive=$work/mirror/$package/releases/download/$version/$package-$version.tar.gz
  mkdir -p "$(dirname "$archive")"
  tar -C "$here/sources" -czf "$archive" "$package"
  sed -i "s/$checksum/$(sha256sum "$archive" | cut -d ' ' -f 1)/" "$here/scripts/kokkos.sh"
done < <(awk '$2 ~ /openmp/ && NF == 4 { print $1, $3, $4 }' "$program")
script=$program program=$here/scripts/kokkos.sh
succeeds --prefix out
expect_line "-- Downloaded the release archive of kokkos 4.5.01"
expect_line "-- Downloaded the release archive of kokkos-kernels 4.5.01"
expect_line "-- Installed Kokkos 4.5.01 openmp"
expect_files out scripts sources
echo >> "$archive"
launch --prefix other
expect_line "-- The release archives cannot be downloaded; using the Python packages that hold Kokkos"
expect_code 1
program=$script
rm -r "$work/mirror"

# The wrapper compiles all code that uses a Kokkos with CUDA.
begin compiler_wrapper
make_sources
mkdir "$here/bin" "$here/sources/kokkos/bin"
printf '#!/bin/sh\necho sm_75\necho sm_90\n' > "$here/bin/nvcc"
printf '#!/bin/sh\ndefault_arch="sm_70"\ncuda_args=""\n' > "$here/sources/kokkos/bin/nvcc_wrapper"
echo 'install(PROGRAMS bin/nvcc_wrapper DESTINATION bin)' >> "$here/sources/kokkos/CMakeLists.txt"
chmod +x "$here/bin/nvcc"
PATH=$here/bin:$PATH succeeds --source sources --prefix out --backend cuda --arch ZEN4
grep -qx 'default_arch=sm_75' "$here/out/bin/nvcc_wrapper" || fail "compiles for a GPU that nvcc does not know"
grep -qx "cuda_args='-include $here/out/include/tessera_cuda13.hpp'" "$here/out/bin/nvcc_wrapper" ||
  fail "does not include what CUDA 13 needs: $(cat "$here/out/bin/nvcc_wrapper")"
[ -f "$here/out/include/tessera_cuda13.hpp" ] || fail "did not install what the wrapper includes"
expect_files bin out sources

begin unknown_arch
make_sources
rejects "error: --arch 'ZEN9': Kokkos 4.6.02 knows only ZEN4" --source sources --prefix out --arch ZEN9
expect_files out.log sources

begin not_ours
mkdir "$here/out"
touch "$here/out/file"
make_sources
rejects "error: $here/out exists and was not made by this script" --source sources --prefix out
expect_files out sources

begin failed_then_whole
make_sources
echo 'message(FATAL_ERROR "no BLAS")' >> "$here/sources/kokkos-kernels/CMakeLists.txt"
rejects "error: cannot configure kokkos-kernels; see $here/out.log" --source sources --prefix out
grep -q "no BLAS" "$here/out.log" || fail "the log does not say why"
expect_files out.log sources
make_sources
succeeds --source sources --prefix out --arch ZEN4
[ "$(tail -n 1 "$out")" = "$here/out" ] || fail "does not end with the prefix"
grep -qx "# $here/out" "$here/out/lib/cmake/Kokkos/KokkosConfig.cmake" || fail "names the temporary directory"
expect_files out sources
rm -r "$here/sources/kokkos/CMakeLists.txt"
make_sources
succeeds --source sources --prefix out --arch ZEN4
expect_line "-- Kokkos is complete there; nothing to do"
[ "$(tail -n 1 "$out")" = "$here/out" ] || fail "does not end with the prefix"
rejects "error: $here/out is Kokkos 4.6.02 openmp ZEN4, not Kokkos 4.6.02 serial" --source sources --prefix out --backend serial

# A signal to the script and the build, as Ctrl-C sends it.
begin interrupted
make_sources
cat >> "$here/sources/kokkos/CMakeLists.txt" <<TEXT
file(WRITE $here/started "")
execute_process(COMMAND sleep 50)
file(WRITE $here/went_on "")
TEXT
(cd "$here" && exec setsid "$program" --source sources --prefix out) > "$out" 2> "$err" &
wait_until test -e "$here/started"
kill -TERM -- -$!
SECONDS=0
wait $!
code=$?
[ $SECONDS -lt 45 ] || fail "went on for $SECONDS s"
expect_code 1
grep -qx "error: interrupted; nothing was installed, run it again" "$err" || fail "does not say that it was interrupted"
expect_files out.log sources started

conclude
