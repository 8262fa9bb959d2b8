#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck source-path=SCRIPTDIR
usage() {
  cat <<'TEXT'
usage: scripts/kokkos.sh [--backend NAME] [--arch ARCH] [--source DIR] [--prefix DIR]

Builds Kokkos and the BLAS part of Kokkos Kernels, and prints where they are, for CMAKE_PREFIX_PATH:

  export CMAKE_PREFIX_PATH=$(scripts/kokkos.sh | tail -n 1)

  --backend NAME   openmp (default), serial or cuda
  --arch ARCH      processor or GPU by its Kokkos name, such as ZEN3 or HOPPER90 (required for cuda;
                   without it the code runs on any processor of this instruction set)
  --source DIR     build the sources in DIR/kokkos and DIR/kokkos-kernels instead of downloading them
  --prefix DIR     where to install (build/kokkos/<version>-<backend>[-<arch>])

Requires cmake, a C++ compiler and BLAS. Sources are the release archives of the Kokkos project on GitHub, or of its
mirror KOKKOS_MIRROR; where that cannot be reached, they come from Python packages that hold them, by pip with its
index and proxy settings. All checksums are checked.
TEXT
}

# The release archives: name, back ends, version, SHA-256.
releases='
kokkos         openmp,serial      4.5.01 52d003ffbbe05f30c89966e4009c017efb1662b02b2b73190670d3418719564c
kokkos         cuda               4.7.00 126b774a24dde8c1085c4aede7564c0b7492d6a07d85380f2b387a712cea1ff5
kokkos-kernels openmp,serial,cuda 4.5.01 c111a6561f23a85af9850d1df1e9015f37a586f1da0be4b6fb1e98001d75e074
'
# The Python packages whose source archives hold the same: name, version, package, its version, SHA-256, folder.
packages='
kokkos         4.5.01 pycompadre 1.7.6 c766ec4d445ce076069be4b8c51a23ffac4ee79ea949ca86446bfd8c299b154c kokkos
kokkos         4.7.00 pygenten   0.1.5 e620f05c742905e2db705d875f1cac92ef0ed453f9e6734e9beda26cc0f9cce7 tpls/kokkos
kokkos-kernels 4.5.01 pycompadre 1.7.6 c766ec4d445ce076069be4b8c51a23ffac4ee79ea949ca86446bfd8c299b154c kokkos-kernels
'

# shellcheck source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
work=''

# release_of NAME: version and checksum of its release for this back end.
release_of() {
  awk -v name="$1" -v backend="$backend" \
    '$1 == name && index("," $2 ",", "," backend ",") { print $3, $4 }' <<<"$releases"
}

take_kokkos_arguments() {
  backend=openmp arch='' source='' prefix=''
  take_options '--backend --arch --source --prefix' '' "$@"
  [[ $backend =~ ^(openmp|serial|cuda)$ ]] || die "--backend '$backend': must be openmp, serial or cuda"
  # The name becomes part of a CMake variable's name and of a path.
  [[ $arch =~ ^[A-Z0-9_]*$ ]] || die "--arch '$arch': write it as Kokkos does, such as ZEN3 or HOPPER90"
}

need() { command -v "$1" >/dev/null || die "no $1 in PATH; $2"; }

check_tools() {
  need cmake "install CMake 3.22 or newer"
  if [[ $backend != cuda ]]; then return; fi
  need nvcc "install the CUDA toolkit, load its module, or choose --backend openmp"
  [[ -n $arch ]] || die "--backend cuda needs --arch, such as HOPPER90, because the GPU may be on another machine"
}

# Sets version to that of the user's sources.
check_source() {
  local name
  for name in kokkos kokkos-kernels; do
    [[ -f $source/$name/CMakeLists.txt ]] ||
      die "--source '$source': has no $name/CMakeLists.txt;" \
        "unpack both Kokkos and Kokkos Kernels there, as kokkos and kokkos-kernels"
  done
  source=$(cd "$source" && pwd)
  version=$(sed -nE 's/^ *set\( *Kokkos_VERSION_(MAJOR|MINOR|PATCH) +([0-9]+) *\).*/\2/Ip' \
    "$source/kokkos/CMakeLists.txt" | head -n 3 | xargs)
  [[ $version =~ ^([0-9]+)\ ([0-9]+)\ ([0-9]+)$ ]] ||
    die "$source/kokkos/CMakeLists.txt sets no Kokkos_VERSION_MAJOR, MINOR and PATCH; unpack a release of Kokkos there"
  printf -v version '%d.%d.%02d' "${BASH_REMATCH[@]:1}"
}

# An installation gets its name when it is complete. A file in it says what it was built for, because a name given with
# --prefix does not.
stop_if_complete() {
  if [[ ! -e $prefix ]] || { [[ -d $prefix ]] && [[ -z $(ls -A "$prefix") ]]; }; then return; fi
  [[ -f $prefix/$describes ]] ||
    die "$prefix exists and was not made by this script; move it away, or choose another --prefix"
  [[ $(<"$prefix/$describes") == "$description" ]] ||
    die "$prefix is $(<"$prefix/$describes"), not $description; delete it, or choose another --prefix"
  say "Kokkos is complete there; nothing to do"
  echo "$prefix"
  exit 0
}

# The directory is beside the target, so that the rename at the end stays on one file system.
make_work_directory() {
  trap 'rm -rf "$work"' EXIT
  trap 'die "interrupted; nothing was installed, run it again"' INT TERM HUP
  if ! mkdir -p "$(dirname "$prefix")" 2>/dev/null || ! work=$(mktemp -d "$prefix.XXXXXX" 2>/dev/null); then
    die "cannot write in $(dirname "$prefix"); choose another --prefix"
  fi
  log=$prefix.log
  : >"$log"
}

# run COMMAND...: runs it and writes its output to the log.
run() {
  printf '\n$ %s\n' "$*" >>"$log"
  "$@" </dev/null >>"$log" 2>&1
}

# download NAME...: puts the sources of each in $work/source/NAME, all from releases or all from packages.
download() {
  source=$work/source
  if download_releases "$@"; then return; fi
  say "The release archives cannot be downloaded; using the Python packages that hold Kokkos"
  rm -rf "$source"
  mkdir "$source"
  local name
  for name in "$@"; do download_from_package "$name"; done
}

# CMake compares the checksum. TIMEOUT is in seconds.
download_releases() {
  local name version checksum url
  for name in "$@"; do
    read -r version checksum <<<"$(release_of "$name")"
    url=${KOKKOS_MIRROR:-https://github.com/kokkos}/$name/releases/download/$version/$name-$version.tar.gz
    echo "file(DOWNLOAD $url $work/$name.tar.gz EXPECTED_HASH SHA256=$checksum TIMEOUT 30)" >"$work/download.cmake"
    run cmake -P "$work/download.cmake" && unpack "$work/$name.tar.gz" "$source/$name" || return
    say "Downloaded the release archive of $name $version"
  done
}

# unpack ARCHIVE FOLDER
unpack() { mkdir -p "$2" && run tar -xzf "$1" -C "$2" --strip-components=1; }

# pip compares the checksum before it runs any code of the package.
download_from_package() {
  local version package package_version checksum folder pip
  pip=$(command -v pip3 || command -v pip) ||
    die "no pip in PATH to download the sources with;" \
      "install it (Debian: python3-pip), or give the sources with --source"
  version=$(release_of "$1")
  read -r package package_version checksum folder \
    <<<"$(awk -v of="$1 ${version% *}" '$1 " " $2 == of { print $3, $4, $5, $6 }' <<<"$packages")"
  if [[ ! -d $work/$package ]]; then
    say "Downloading the Python package $package $package_version"
    echo "$package==$package_version --hash=sha256:$checksum" >"$work/requirements.txt"
    run "$pip" download --no-deps --no-binary "$package" --retries 2 --timeout 20 --dest "$work" \
      -r "$work/requirements.txt" ||
      die "pip could not download $package $package_version$(
        grep -q 'DO NOT MATCH THE HASHES' "$log" && echo ': its archive has a wrong checksum');" \
        "check the network and the settings of pip, or give the sources with --source; see $log"
    unpack "$work/$package-$package_version.tar.gz" "$work/$package" ||
      die "cannot unpack the archive of $package $package_version; see $log"
  fi
  mv "$work/$package/$folder" "$source/$1"
}

# build_part NAME [option...]: configures, builds and installs $source/NAME into $work/install.
build_part() {
  local name=$1
  shift
  say "Building $name for $description ($jobs jobs)"
  run cmake -S "$source/$name" -B "$work/$name" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=20 \
    -DCMAKE_INSTALL_PREFIX="$work/install" -DCMAKE_INSTALL_LIBDIR=lib "${compiler[@]}" "$@" || {
    check_arch "$work/$name/CMakeCache.txt"
    die "cannot configure $name; see $log"
  }
  check_arch "$work/$name/CMakeCache.txt"
  run cmake --build "$work/$name" -j "$jobs" --target install || die "cannot build $name; see $log"
}

# Kokkos ignores an architecture that it does not know; its options have a type, other variables have none.
check_arch() {
  if [[ -z $arch ]] || ! grep -q '^Kokkos_ARCH_.*:BOOL=' "$1" || grep -q "^Kokkos_ARCH_$arch:BOOL=" "$1"; then
    return
  fi
  die "--arch '$arch': Kokkos $version knows only $(sed -n 's/^Kokkos_ARCH_\(.*\):BOOL=.*/\1/p' "$1" | xargs)"
}

# Kokkos' compiler wrapper compiles all code that uses this Kokkos. Its default GPU is one that CUDA 13 no longer knows,
# and Kokkos 4.7.00 calls functions whose parameters CUDA 13 changed. It starts nvcc again for the headers that a source
# depends on, which nvcc lists while it compiles.
make_wrapper() {
  local gpu include=$work/install/include/tessera_cuda13.hpp
  read -r gpu < <(nvcc --list-gpu-code)
  mkdir -p "$work/install/bin" "$work/install/include"
  cp "$root/scripts/kokkos_cuda13.hpp" "$include"
  sed -e "s|^default_arch=.*|default_arch=$gpu|" -e "s|^cuda_args=.*|cuda_args='-include $include'|" \
    -e 's|depfile_output_arg="-o |depfile_output_arg="-MF |' -e 's|nvcc_depfile_command="$nvcc_command -M |nvcc_command="$nvcc_command -MD |' \
    "$source/kokkos/bin/nvcc_wrapper" >"$work/install/bin/nvcc_wrapper"
  chmod +x "$work/install/bin/nvcc_wrapper"
}

build_kokkos() {
  local -a compiler=() options=(-DKokkos_ENABLE_SERIAL=ON) kernels_options=()
  case $backend in
    openmp) options+=(-DKokkos_ENABLE_OPENMP=ON) ;;
    cuda)
      options+=(-DKokkos_ENABLE_CUDA=ON -DKokkos_ENABLE_CUDA_LAMBDA=ON)
      kernels_options+=(-DKokkosKernels_ENABLE_TPL_CUBLAS=ON)
      make_wrapper
      compiler=(-DCMAKE_CXX_COMPILER="$work/install/bin/nvcc_wrapper") ;;
  esac
  if [[ -n $arch ]]; then options+=("-DKokkos_ARCH_$arch=ON"); fi
  build_part kokkos "${options[@]}"
  # Kokkos has replaced the wrapper by its own.
  if [[ $backend == cuda ]]; then make_wrapper; fi
  # If several BLAS are installed, take the one with OpenMP threads.
  if [[ $backend == openmp ]]; then
    local -a blas=(/usr/lib/*/openblas-openmp/libopenblas.so)
    if [[ -e ${blas[0]} ]]; then kernels_options+=(-DCMAKE_LIBRARY_PATH="${blas[0]%/*}"); fi
  fi
  # Tessera uses the products only, in one file, so no kernel is instantiated in the library. The names of BLAS are
  # given, because CMake would need a Fortran compiler to find them.
  build_part kokkos-kernels -DKokkos_DIR="$work/install/lib/cmake/Kokkos" \
    -DKokkosKernels_ENABLE_ALL_COMPONENTS=OFF -DKokkosKernels_ENABLE_COMPONENT_BLAS=ON \
    -DKokkosKernels_ADD_DEFAULT_ETI=OFF -DKokkosKernels_ENABLE_TPL_BLAS=ON \
    -DF77_BLAS_MANGLE='(name,NAME) name ## _' "${kernels_options[@]}"
}

# Replaces the temporary path in the installed files, by which packages find each other, and renames the installation.
install_kokkos() {
  local kernels=$work/install/lib/cmake/KokkosKernels/KokkosKernelsConfig.cmake
  [[ -f $kernels ]] || die "the build installed no $(basename "$kernels"); see $log"
  { grep -rlIZF -- "$work/install" "$work/install" || true; } | xargs -0 -r sed -i "s|$work/install|$prefix|g"
  mkdir -p "$(dirname "$work/install/$describes")"
  echo "$description" >"$work/install/$describes"
  mv -T "$work/install" "$prefix" || die "cannot rename $work/install to $prefix"
  rm -f "$log"
}

take_kokkos_arguments "$@"
check_tools
if [[ -n $source ]]; then check_source; else read -r version _ <<<"$(release_of kokkos)"; fi
prefix=$(realpath -m "${prefix:-$root/build/kokkos/$version-$backend${arch:+-$arch}}")
describes=share/tessera-kokkos.txt
description="Kokkos $version $backend${arch:+ $arch}"
stop_if_complete
make_work_directory
if [[ -z $source ]]; then download kokkos kokkos-kernels; fi
build_kokkos
install_kokkos
say "Installed $description"
echo "$prefix"
