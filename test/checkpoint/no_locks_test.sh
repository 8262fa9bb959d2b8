#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checkpoints on file systems without locks. flock() reports them by the errors 524 (not supported) and 37 (none left).
# usage: no_locks_test.sh PROGRAM JSON_GET INPUTS FILE_FAULTS LAUNCHER...
program=$1 json_get=$2 inputs=$3 library=$4
shift 4
launcher=("$@" env "LD_PRELOAD=$library")
# shellcheck source=../app/script_support.sh
source "$(dirname "$0")/../app/script_support.sh"

tutorial=("$inputs/tutorial.toml" --set training.num_epochs=2 --set checkpoint.directory=saves)
for error in 37 524; do
  export NO_LOCKS=$error
  for async in false true; do
    begin "saves-$error-$async"
    launch run "${tutorial[@]}" --set checkpoint.async=$async --set training.num_epochs=1
    expect_code 0
    launch run "${tutorial[@]}" --set checkpoint.async=$async --resume --json out.json
    expect_code 0
    expect_json /resumed_at 8
  done
done

# Two runs go on with one training, and nothing locks it. The one that saves later learns of the other one, and ends.
# Both save only when they are stopped: a run that starts after a save of the other one would begin a branch.
launcher=(env "LD_PRELOAD=$library")
begin two-runs
launch run "${tutorial[@]}" --set training.num_epochs=1
expect_code 0
runs=()
for number in 1 2; do
  (cd "$here" && exec timeout 280 "${launcher[@]}" "$program" run "${tutorial[@]}" --quiet --resume \
    --set checkpoint.on_failure=continue --set training.num_epochs=10000000 --set checkpoint.every_steps=100000000 \
    --set output.metrics=metrics$number.jsonl --set output.every_steps=10000 > /dev/null 2> "$work/$number.err") &
  runs+=($!)
done
for number in 1 2; do wait_until test -s "$here/metrics$number.jsonl"; done
stop() {
  kill -TERM "${runs[$1 - 1]}"
  wait "${runs[$1 - 1]}"
  code=$? err=$work/$1.err
}
stop 1
expect_code 6
[ ! -s "$err" ] || fail "the first run prints an error"
stop 2
expect_code 1
expect_one_error "another run has gone on with this training and saved saves/"
launch checkpoint verify "$(cd "$here" && compgen -G 'saves/*/step_*.safetensors' | tail -n 1)"
expect_code 0

conclude
