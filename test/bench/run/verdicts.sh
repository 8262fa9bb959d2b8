#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Counts how often `compare` reports a difference between two runs of one program, and how often it finds a planted
# slow-down. Run it by hand on an idle machine. It prints a line for each pair, and the sums.
# usage: verdicts.sh PROGRAM STUDY PAIRS FAULT DIRECTORY LAUNCHER...
#   FAULT: as for --inject, such as slow@0:10%
set -euo pipefail
program=$1 study=$2 pairs=$3 fault=$4 directory=$5
shift 5
mkdir -p "$directory"

# measure NAME [options of `run`]: runs the study into a directory of this name.
measure() {
  local name=$1
  shift
  "${launcher[@]}" "$program" run "$study" -o "$directory/$name" "$@" > "$directory/$name.log" 2>&1 ||
    [[ $? == 77 ]]  # some cases need more ranks
}

# line NAME BEFORE AFTER: prints the counts of a comparison.
line() {
  "$program" compare "$directory/$2" "$directory/$3" > "$directory/$1.txt"
  printf '%-12s %s\n' "$1" "$(tail -2 "$directory/$1.txt" | head -1)"
}

launcher=("$@")
for ((pair = 1; pair <= pairs; ++pair)); do
  measure "a$pair"
  measure "b$pair"
  measure "slow$pair" --inject "$fault"
  line "same $pair" "a$pair" "b$pair"
  line "slow $pair" "a$pair" "slow$pair"
done
for kind in same slow; do
  awk -v kind="$kind" '
    { sub(/: .*/, "") }  # the reason
    /^strategy=.* (better|worse|indistinguishable)$/ { ++all; ++count[$NF] }
    END { printf "%s: %d comparisons:", kind, all
          for (verdict in count) printf " %d %s", count[verdict], verdict
          print "" }' "$directory/$kind "*.txt
done
