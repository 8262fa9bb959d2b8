#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# stopped_rank_test.sh LIBRARY TESSERA INPUTS LAUNCHER...
# A rank that stops in any call of MPI, from before MPI starts to its end, ends the job in time, with exit code 5 and a
# line that says what waited. Every STRIDE-th call is tried (default 15), and all of the start and the end.
set -u
library=$1 program=$2 inputs=$3
shift 3
launcher=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TESSERA_TIMEOUT_SECONDS=0.8
failures=0

# run RANK CALL: trains and saves, with this rank stopped in this call. Sets $code, and $err holds what was said.
err=$work/err
run() {
  rm -rf "$work/saves"
  timeout --kill-after=5 25 "${launcher[@]}" env LD_PRELOAD="$library" STOP_RANK="$1" STOP_CALL="$2" \
    "$program" run "$inputs/tutorial.toml" --set training.num_epochs=1 --set comm.timeout_seconds=0.5 \
    "${saving[@]}" > /dev/null 2> "$err"
  code=$?
}

# How many calls the ranks 0 and 1 make, the smaller number of both.
saving=(--set checkpoint.directory="$work/saves" --set checkpoint.async=false)
run 0 -1
if grep -q 'HDF5' "$err"; then saving=(); fi
calls=
for rank in 0 1; do
  run "$rank" -1
  made=$(sed -n 's/^\([0-9]*\) calls$/\1/p' "$err")
  if [ "$code" -ne 0 ] || [ -z "$made" ]; then
    echo "FAILED: the run that nobody stops ended with $code"
    cat "$err"
    exit 1
  fi
  if [ -z "$calls" ] || [ "$made" -lt "$calls" ]; then calls=$made; fi
done
echo "$calls calls of MPI"

# The start and the end are tried call by call.
stride=${STRIDE:-15} call=0
while [ "$call" -le "$calls" ]; do
  rank=$((call % 2)) # rank 0 has tasks of its own
  run "$rank" "$call"
  line=$(grep -m 1 '^tessera: .* has waited ' "$err")
  echo "call $call of rank $rank: exit code $code: $line"
  # Open MPI's mpirun itself may crash or hang when a rank ends in MPI_Finalize, where the others are from the last but
  # two calls on.
  if { [ "$code" -ne 5 ] && [ "$call" -lt $((calls - 2)) ]; } || [ -z "$line" ]; then
    echo "FAILED"
    cat "$err"
    failures=$((failures + 1))
  fi
  if [ "$call" -lt 20 ] || [ "$call" -ge $((calls - 4)) ]; then
    call=$((call + 1))
  else
    call=$((call + stride < calls - 4 ? call + stride : calls - 4))
  fi
done
[ "$failures" -eq 0 ]
