#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the checks of .clang-tidy on sources. The current directory is the repository.
# usage: tidy.sh CLANG_TIDY CMAKE BUILD_DIRECTORY INCLUDE_DIRECTORIES FOLDER SOURCE...
#   INCLUDE_DIRECTORIES are separated by colons; the sources are in FOLDER
set -euo pipefail
tidy=$1 cmake=$2 build=$3 folder=$5
IFS=':' read -r -a directories <<<"$4"
shift 5
"$cmake" --build "$build" --target tessera_build_info >/dev/null

# clang 14 rejects calls of consteval functions in default arguments, so it reads them as constexpr.
flags=(-std=c++20 -fopenmp -Dconsteval=constexpr -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX
  -isystem test/build/style/clang14 -Isrc -Ibench "-I$build/generated")
for directory in "${directories[@]}"; do
  # The compiler looks into the last one anyway, and must not do so earlier.
  if [[ -n $directory && $directory != "$PWD"/src && $directory != "$build"/* && $directory != /usr/include ]]; then
    flags+=(-isystem "$directory")
  fi
done

# shellcheck disable=SC2016 # the inner shell expands it
printf '%s\0' "$@" | xargs -0 -P "$(nproc)" -I '{}' sh -c '"$@" || { echo "in $0" >&2; exit 1; }' '{}' \
  "$tidy" --quiet --config-file=.clang-tidy "$folder/{}" -- "${flags[@]}"
