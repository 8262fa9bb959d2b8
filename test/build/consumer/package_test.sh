#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs the programs of this build, unpacks them elsewhere, and runs the tutorial and parts of gpu_check.sh, while the
# build's folder is hidden if the system allows it.
# usage: package_test.sh PACKAGE_SCRIPT BUILD LAUNCHER...
set -euo pipefail
script=$1 build=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "FAILED $*"
  exit 1
}

with_mpi=()
if command -v orted > /dev/null; then with_mpi=(--with-mpi); fi
"$script" --build "$build" "${with_mpi[@]}" --with-tests -o "$work" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
mkdir "$work/unpacked"
tar -xzf "$work"/tessera-*.tar.gz -C "$work/unpacked" --strip-components=1
cd "$work/unpacked"
theirs='^(ld-linux|lib(c|m|mvec|pthread|dl|rt|util|resolv|stdc\+\+|gcc_s|cuda.*|cublas.*|nccl)\.so)'
if ((${#with_mpi[@]} == 0)); then theirs+='|^libmpi'; fi
for file in bin/* lib/* lib/openmpi/*; do
  if [[ $(head -c 4 "$file" 2> /dev/null) != $'\x7fELF' ]]; then continue; fi
  case $file in bin/*) wanted="\$ORIGIN/../lib" ;; lib/openmpi/*) wanted="\$ORIGIN/.." ;; *) wanted="\$ORIGIN" ;; esac
  [[ $(patchelf --print-rpath "$file") == "$wanted" ]] || fail "$file looks for libraries in $(patchelf --print-rpath "$file")"
  # shellcheck disable=SC2046 # names of libraries have no blanks
  for needed in $(patchelf --print-needed "$file"); do
    [[ -e lib/$needed || $needed =~ $theirs ]] || fail "$file needs $needed, which is not in the package"
  done
done
[[ ! -e include ]] || fail "has headers"
grep -rlIF "$build" . && fail "files name the build"
for file in README.md bench/README.md src/tessera/README.md; do
  [[ -f share/doc/tessera/$file ]] || fail "no $file"
done

run=()
# shellcheck disable=SC2016 # for the inner shell
if unshare -rm true 2> /dev/null; then run=(unshare -rm bash -c 'mount -t tmpfs none "$0" && exec "$@"' "$build"); fi
if ((${#with_mpi[@]} > 0)); then
  # shellcheck source=/dev/null
  source env.sh
  [[ $(command -v mpirun) == "$PWD/bin/mpirun" ]] || fail "mpirun is $(command -v mpirun)"
  set -- mpirun "${@:2}"
fi
"${run[@]}" env -u LD_LIBRARY_PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
  "$@" bin/tessera run share/tessera/inputs/tutorial.toml > out 2> err || fail "$(cat out err)"
grep -q 'As planned: *yes' out || fail "$(cat out)"
"${run[@]}" env -u LD_LIBRARY_PATH share/tessera/gpu_check.sh --small --only golden launches tests_2 large > out 2> err || fail "$(cat out err)"
[[ $(grep -c ' ok ' out) == 5 ]] || fail "not every part has run: $(cat out)"
