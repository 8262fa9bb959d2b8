#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by run.sh, study.sh and test.sh; ./scripts/setup.sh alone only installs missing dependencies.
#
# If there is a Kokkos in CMAKE_PREFIX_PATH, Kokkos_ROOT or Kokkos_DIR (Spack, modules, built by hand),
# nothing is installed. Otherwise the Debian packages of cmake/dependencies.txt are.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc)

say() { printf -- '-- %s\n' "$*"; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

require_ranks() {
  [[ $1 =~ ^[1-9][0-9]*$ ]] || die "--ranks '$1': must be a positive number"
}

# Reads the whole output of mpirun: a pipe that closes early would fail under pipefail.
is_open_mpi() { [[ $(mpirun --version 2>&1) =~ Open\ MPI|OpenRTE|PRRTE ]]; }

# Prints the directory of the Kokkos that the user pointed CMake to, if there is one.
find_kokkos() {
  local prefix directory
  local -a prefixes=()
  # Spack and modules separate entries by colons, CMake's own lists by semicolons.
  IFS=':;' read -r -a prefixes <<<"${CMAKE_PREFIX_PATH:-}:${Kokkos_ROOT:-}:${KOKKOS_ROOT:-}"
  for prefix in "${prefixes[@]}"; do
    [[ -n $prefix ]] || continue
    for directory in "$prefix"/lib{,64}/cmake/Kokkos "$prefix"/lib/*/cmake/Kokkos; do
      if [[ -f $directory/KokkosConfig.cmake ]]; then
        echo "$directory"
        return
      fi
    done
  done
  if [[ -f ${Kokkos_DIR:-/nowhere}/KokkosConfig.cmake ]]; then echo "$Kokkos_DIR"; fi
}

# Prints the Debian packages that the build and the scripts need, one per line. With arguments: those of the
# optional rows with these names.
debian_packages() {
  awk -F'|' -v names="$*" '
    /^#/ || $2 ~ /^ *-/ { next }
    { name = $1; gsub(/ /, "", name); optional = $4 ~ /^ *optional/ }
    names == "" ? !optional : index(" " names " ", " " name " ") { print $2 }
  ' "$root/cmake/dependencies.txt" | tr -s ' ' '\n' | sed '/^$/d'
  if (($# == 0)); then printf '%s\n' g++ git ninja-build; fi
}

missing_packages() {
  local package
  for package in $(debian_packages "$@"); do
    if [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
      echo "$package"
    fi
  done
}

# install_debian_packages [row...]
install_debian_packages() {
  local -a missing as_root=()
  mapfile -t missing < <(missing_packages "$@")
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
  elif command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
    install_debian_packages
    if (($# > 0)); then
      (install_debian_packages "$@") || say "Continuing without the packages that could not be installed"
    fi
  else
    die "no Kokkos in CMAKE_PREFIX_PATH, and no apt to install one. With Spack, in $root:
  spack env activate . && spack install"
  fi
}

# build <preset> [target...]: configures and builds in build/<preset>.
build() {
  local preset=$1
  shift
  if command -v ninja >/dev/null; then export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}; fi
  if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
  fi
  say "Configuring and building in build/$preset ($jobs jobs)"
  (cd "$root" && cmake --preset "$preset" && cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"})
}

# Open MPI refuses to start as root without both.
if ((EUID == 0)); then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then install_missing Matplotlib Chromium PyYAML; fi
