#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# stopped_rank_test.sh LIBRARY TESSERA INPUTS LAUNCHER...
# A rank that stops in any call of MPI, from before MPI starts to its end, ends the job in time, with exit code 5 and a
# line that says what waited. Tries every fourth call of the start, every STRIDE-th one of the training (default 60), and all
# of the end, by turns of rank 0, which has tasks of its own, and rank 1.
set -u
library=$1 program=$2 inputs=$3
shift 3
launcher=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run RANK CALL SECONDS: trains and saves with this time limit. The rank stops in this call. Leaves exit code and stderr in
# $work/RANK.CALL.code and .err.
run() {
  local here=$work/$1.$2
  TESSERA_TIMEOUT_SECONDS=$3 timeout --kill-after=5 $(($3 + 60)) "${launcher[@]}" env LD_PRELOAD="$library" STOP_RANK="$1" \
    STOP_CALL="$2" "$program" run "$inputs/tutorial.toml" --set training.num_epochs=1 --set comm.timeout_seconds="$3" \
    --set "checkpoint.directory=$here.saves" --set checkpoint.async=false > /dev/null 2> "$here.err"
  echo $? > "$here.code"
}

# The number of calls that the ranks 0 and 1 make, the smaller one of both.
run 0 -1 60
run 1 -1 60
calls=
for rank in 0 1; do
  made=$(sed -n 's/^\([0-9]*\) calls$/\1/p' "$work/$rank.-1.err")
  if [ "$(cat "$work/$rank.-1.code")" -ne 0 ] || [ -z "$made" ]; then
    echo "FAILED: the run in which no rank stops"
    cat "$work/$rank.-1.err"
    exit 1
  fi
  if [ -z "$calls" ] || [ "$made" -lt "$calls" ]; then calls=$made; fi
done
echo "$calls calls of MPI"

# try RANK CALL: with a longer limit if the time was over before the rank came to this call, on a busy machine.
try() {
  for limit in 1 4 16; do
    rm -rf "$work/$1.$2.saves"
    run "$1" "$2" $limit
    ! grep -q '^stopped$' "$work/$1.$2.err" || return
  done
}

# Two launches at a time, because most of their time is waiting.
turn=0 tries=()
for call in $(seq 0 4 20) $(seq 21 "${STRIDE:-60}" $((calls - 5))) $(seq $((calls - 4)) "$calls"); do
  try $((turn % 2)) "$call" &
  tries+=("$((turn % 2)).$call")
  turn=$((turn + 1))
  [ $((turn % 2)) = 1 ] || wait
done
wait

failures=0
for tried in "${tries[@]}"; do
  call=${tried#*.} code=$(cat "$work/$tried.code")
  line=$(grep -m 1 '^tessera: .* has waited ' "$work/$tried.err")
  echo "call $call of rank ${tried%.*}: exit code $code: $line"
  # Open MPI's mpirun itself may crash or hang when a rank ends in MPI_Finalize, where the others are from the last but
  # two calls on.
  if { [ "$code" -ne 5 ] && [ "$call" -lt $((calls - 2)) ]; } || [ -z "$line" ] ||
    ! grep -q '^stopped$' "$work/$tried.err"; then
    echo "FAILED"
    cat "$work/$tried.err"
    failures=$((failures + 1))
  fi
done
[ "$failures" -eq 0 ]
