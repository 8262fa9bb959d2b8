#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs the programs of this build, unpacks them elsewhere and runs the tutorial, while the build's folder is hidden if the
# system allows it.
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

"$script" --build "$build" --gzip -o "$work" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
mkdir "$work/unpacked"
tar -xzf "$work"/tessera-*.tar.gz -C "$work/unpacked" --strip-components=1
cd "$work/unpacked"
for file in bin/tessera bin/tessera-bench bin/tessera-micro lib/*; do
  case $file in bin/*) wanted="\$ORIGIN/../lib" ;; *) wanted="\$ORIGIN" ;; esac
  [[ $(patchelf --print-rpath "$file") == "$wanted" ]] || fail "$file looks for libraries in $(patchelf --print-rpath "$file")"
  # shellcheck disable=SC2046 # names of libraries have no blanks
  for needed in $(patchelf --print-needed "$file"); do
    [[ -e lib/$needed || $needed =~ ^(ld-linux|lib(c|m|mvec|pthread|dl|rt|util|resolv|stdc\+\+|gcc_s|mpi.*|cuda.*|cublas.*|nccl)\.so) ]] ||
      fail "$file needs $needed, which is not in the package"
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
"${run[@]}" env -u LD_LIBRARY_PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
  "$@" bin/tessera run share/tessera/inputs/tutorial.toml > out 2> err || fail "$(cat out err)"
grep -q 'As planned: *yes' out || fail "$(cat out)"
