#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash source-path=SCRIPTDIR
# Sourced by the other scripts. ./scripts/setup.sh alone installs missing dependencies and nothing else.
#
# If there is a Kokkos in CMAKE_PREFIX_PATH, Kokkos_ROOT or Kokkos_DIR (Spack, modules, built by hand),
# nothing is installed. Otherwise this installs the Debian packages of cmake/dependencies.txt, and scripts/kokkos.sh
# builds Kokkos.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=env.sh
source "$root/scripts/env.sh"
jobs=$(nproc)

say() { printf -- '-- %s\n' "$*"; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# take_arguments ARGUMENT...: sets ranks, results and input from the arguments of a script, and options to the others.
# shellcheck disable=SC2034 # not every script has results
take_arguments() {
  ranks=4 results='' input='' options=()
  while (($# > 0)); do
    case $1 in
      -h | --help) usage; exit 0 ;;
      --ranks) ranks=${2:-}; shift ;;
      --ranks=*) ranks=${1#*=} ;;
      -o | --output) results=${2:-}; shift ;;
      # A file after an option belongs to that option.
      *.toml) if ((${#options[@]} == 0)) && [[ -z $input ]]; then input=$1; else options+=("$1"); fi ;;
      *) options+=("$1") ;;
    esac
    shift || die "the last option needs a value"
  done
  [[ $ranks =~ ^[1-9][0-9]*$ ]] || die "--ranks '$ranks': must be a positive number"
}

# take_options OPTIONS FLAGS ARGUMENT...: sets a variable of the same name to the value of each of the options, and to ON
# for each of the flags: --with-mpi sets with_mpi. Both are lists of words.
take_options() {
  local with_value=" $1 " flags=" $2 " name
  shift 2
  while (($# > 0)); do
    name=${1#-} name=${name#-} name=${name//-/_}
    if [[ $1 == -h || $1 == --help ]]; then
      usage
      exit 0
    elif [[ $flags == *" $1 "* ]]; then
      printf -v "$name" ON
    elif [[ $with_value == *" $1 "* ]]; then
      [[ -n ${2:-} ]] || die "$1 needs a value"
      printf -v "$name" %s "$2"
      shift
    else
      die "unknown argument '$1'; scripts/$(basename "$0") --help lists all"
    fi
    shift
  done
}

# Prints the directory of the Kokkos that the user pointed CMake to, if there is one.
find_kokkos() {
  local -a places
  # Spack and modules separate entries by colons, CMake's own lists by semicolons.
  IFS=':;' read -r -a places <<<"${CMAKE_PREFIX_PATH:-}:${Kokkos_ROOT:-}:${KOKKOS_ROOT:-}:${Kokkos_DIR:-}"
  find -L "${places[@]}" -maxdepth 5 -name KokkosConfig.cmake -printf '%h\n' -quit 2>/dev/null || true
}

# debian_packages [row...]: prints the Debian packages that the build and the scripts need, one per line; with
# arguments, those of these optional rows of the table.
debian_packages() {
  awk -F'|' -v names="$*" '
    /^#/ || $2 ~ /^ *-/ { next }
    { name = $1; gsub(/ /, "", name); optional = $4 ~ /^ *optional/ }
    names == "" ? !optional : index(" " names " ", " " name " ") { print $2 }
  ' "$root/cmake/dependencies.txt" | tr -s ' ' '\n' | sed '/^$/d; /^scripts\//d'
  if (($# > 0)); then return; fi
  printf '%s\n' g++ git ninja-build
  # scripts/kokkos.sh may download with pip.
  command -v pip3 pip >/dev/null || echo python3-pip
}

# install_debian_packages [row...]
install_debian_packages() {
  local -a missing as_root=()
  mapfile -t missing < <(comm -23 <(debian_packages "$@" | sort -u) <(
    dpkg-query -W -f='${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | sort))
  if ((${#missing[@]} == 0)); then return; fi
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      die "not root and no sudo; ask your administrator to install: ${missing[*]}"
    as_root=(sudo)
  fi
  say "Installing with apt: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}"
}

# install_missing [row...]: installs what the build needs, and tries to install the optional packages of these
# rows of the table.
install_missing() {
  local kokkos
  kokkos=$(find_kokkos)
  if [[ -n $kokkos ]]; then
    say "Using the Kokkos in $kokkos; installing nothing"
    return
  fi
  if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
    install_debian_packages
    if (($# > 0)); then
      (install_debian_packages "$@") || say "Continuing without the packages that could not be installed"
    fi
  else
    say "apt is not available; install the packages of cmake/dependencies.txt yourself"
  fi
  kokkos=$(build_kokkos)
  export CMAKE_PREFIX_PATH=$kokkos${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}
}

# build_kokkos [option...]: runs kokkos.sh, shows its output on stderr, and prints its last line, the install directory.
build_kokkos() {
  "$root/scripts/kokkos.sh" "$@" | {
    while IFS= read -r line; do
      printf '%s\n' "$line" >&2
      last=$line
    done
    printf '%s' "${last:-}"
  }
}

# use_cuda_kokkos: later builds use a Kokkos with CUDA and its compiler.
use_cuda_kokkos() {
  local kokkos
  kokkos=$(build_kokkos --backend cuda --arch "${TESSERA_CUDA_ARCH:-HOPPER90}") || return
  export CMAKE_PREFIX_PATH=$kokkos${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH} PATH=$kokkos/bin:$PATH
}

# build <preset> [target...]: configures and builds in build/<preset>.
build() {
  local preset=$1
  shift
  # A unity build is faster with few cores. Separate sources are faster with many cores or after a small change.
  local -a unity=()
  if ((jobs <= 4)) && [[ ! -e $root/build/$preset/CMakeCache.txt ]]; then unity=(-D CMAKE_UNITY_BUILD=ON); fi
  say "Configuring and building in build/$preset ($jobs jobs)"
  (cd "$root" && cmake --preset "$preset" "${unity[@]}" &&
    cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"})
}

# launch <program> [argument...]: runs a program of build/release on $ranks ranks.
launch() {
  local -a command=(mpirun -n "$ranks")
  local cores
  cores=$(lscpu -p=CORE,SOCKET | grep -v '^#' | sort -u | wc -l)
  if ((ranks <= cores)) && [[ $(mpirun --version 2>&1) =~ Open\ MPI|OpenRTE|PRRTE ]]; then
    # A rank that migrates to another core loses its caches. Open MPI binds no ranks that share cores.
    command+=(--map-by "slot:PE=$((cores / ranks))" --bind-to core)
  fi
  command+=("$root/build/release/bin/$1" "${@:2}")
  say "${command[*]}"
  "${command[@]}"
}

# For all builds, Kokkos' as well.
if command -v ninja >/dev/null; then export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}; fi
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}; fi

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  install_missing dnnl HDF5C Matplotlib Pandas Chromium Iproute2 Help2man Patchelf ClangFormat ClangTidy Doxygen PythonProtobuf
  say "For CMake: export CMAKE_PREFIX_PATH=${CMAKE_PREFIX_PATH:-}"
fi
