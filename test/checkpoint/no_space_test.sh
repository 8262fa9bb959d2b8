#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A checkpoint for which the disk has too little space is one error, wherever the space ends, and leaves no file.
# usage: no_space_test.sh PROGRAM INPUTS FILE_FAULTS LAUNCHER...
program=$1 inputs=$2 library=$3
shift 3
launcher=("$@" env "LD_PRELOAD=$library")
# shellcheck source=../app/script_support.sh
source "$(dirname "$0")/../app/script_support.sh"

tutorial=("$inputs/tutorial.toml" --quiet --set training.num_epochs=1 --set checkpoint.directory=saves)
begin enough
NO_SPACE_BEYOND=1000000 launch run "${tutorial[@]}"
expect_code 0
size=$(stat -c %s "$here/$(saved 8)")
for bytes in 100 1000 3000 5000 8000 $((size / 2)) $((size - 1)); do
  begin "space-for-$bytes"
  NO_SPACE_BEYOND=$bytes launch run "${tutorial[@]}"
  expect_code 1
  [ "$(grep -c '^tessera: error: saves/.*/step_0000000008.safetensors.*.unfinished: .*No space left on device$' "$err")" -eq 1 ] ||
    fail "not one error with file and reason"
  [ -z "$(ls -A "$here/saves")" ] || fail "left $(ls -A "$here/saves")"
done
# The last checkpoint may be one of those between the steps.
begin last-fails
NO_SPACE_BEYOND=100 launch run "${tutorial[@]}" --set checkpoint.every_steps=8 --set checkpoint.at_end=false \
  --set checkpoint.on_failure=continue
expect_code 1
grep -q '^tessera: warning: .*No space left on device; continuing without this checkpoint$' "$err" || fail "no warning"
grep -q '^tessera: error: .*No space left on device$' "$err" || fail "no error"
conclude
