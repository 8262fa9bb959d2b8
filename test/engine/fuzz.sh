#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: fuzz.sh <tessera_mpi_tests> <cases> <command that launches n ranks, with n at its end>
# Trains random configurations on 1 to 8 ranks, <cases> on each number of ranks, and compares each with one rank.
# TESSERA_FUZZ_SEED (1) is the seed of the first one:
#   TESSERA_FUZZ_SEED=1000 test/engine/fuzz.sh build/release/test/tessera_mpi_tests 250 mpirun --oversubscribe -n 8
set -uo pipefail
program=$1 cases=$2
launcher=("${@:3}")
unset 'launcher[-1]'

failed=0
for ranks in 1 2 3 4 5 6 7 8; do
  if output=$(TESSERA_FUZZ_CASES=$cases "${launcher[@]}" "$ranks" "$program" --gtest_filter='ShardingFuzz.*' 2>&1); then
    echo "$ranks ranks: $cases configurations train like one rank"
  else
    failed=1
    printf '%s\n' "$output" "$ranks ranks: some configurations do not"
  fi
done
exit "$failed"
