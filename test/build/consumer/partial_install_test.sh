#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A build of the library alone can be installed, and tessera_install builds no tests.
# usage: partial_install_test.sh CMAKE SOURCE LIBRARY CONFIG OPTION...   (OPTION: of the configuration)
set -uo pipefail
cmake=$1 source=$2 library=$3 config=$4
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED $*"
  exit 1
}

"$cmake" -S "$source" -B "$work/build" -D CMAKE_BUILD_TYPE="$config" "$@" > "$work/log" 2>&1 ||
  fail "cannot configure: $(tail -30 "$work/log")"
cp -P "$library"* "$work/build/"
"$cmake" --install "$work/build" --prefix "$work/prefix" > "$work/log" 2>&1 || fail "cannot install: $(tail -5 "$work/log")"
[[ -n $(find "$work/prefix" -name "$(basename "$library")") ]] || fail "the library is not installed"
[[ -f $work/prefix/include/tessera/train/trainer.hpp ]] || fail "the headers are not installed"
[[ ! -e $work/prefix/bin/tessera ]] || fail "a program was installed that nobody built"

# Ninja can list the commands of a target without running them.
if [[ -f $work/build/build.ninja ]]; then
  ninja=$(sed -n 's/^CMAKE_MAKE_PROGRAM:[A-Z]*=//p' "$work/build/CMakeCache.txt")
  "$ninja" -C "$work/build" -t commands tessera_install > "$work/log" || fail "no target tessera_install"
  for made in tessera tessera-bench tessera-micro; do
    grep -q -- "-o bin/$made " "$work/log" || fail "tessera_install does not make $made"
  done
  ! grep -F "$source/test/" "$work/log" || fail "tessera_install makes tests"
fi
echo "installed"
