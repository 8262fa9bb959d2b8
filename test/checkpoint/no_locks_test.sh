#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checkpoints and data on file systems without locks. flock() reports them by the errors 524 (not supported) and 37 (none left).
# usage: no_locks_test.sh PROGRAM JSON_GET INPUTS NO_LOCKS_LIBRARY LAUNCHER...
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
  # A checkpoint serves as the HDF5 file with data.
  begin "data-$error"
  launch run "$inputs/tutorial.toml" --set 'model.widths=[64, 8, 64]' --set data.kind=random \
    --set checkpoint.directory=saves --set training.num_epochs=1
  expect_code 0
  data=(--set data.kind=hdf5 --set data.file=saves/step_0000000008.h5 --set data.x=parameters/layer1/kernel
    --set data.y=parameters/layer1/kernel --set data.samples=64 --set training.batch_size=8)
  launch run "$inputs/tutorial.toml" --set 'model.widths=[8, 4, 8]' "${data[@]}" --set training.num_epochs=1
  expect_code 0
done

# A user who insists on locks gets an error with the name of the variable.
begin insists
HDF5_USE_FILE_LOCKING=TRUE launch run "${tutorial[@]}" --json out.json
expect_code 1
grep -qF "checkpoint.directory = saves: cannot hold checkpoints: " "$err" || fail "the key is not named"
grep -qF "the file system has no locks: set HDF5_USE_FILE_LOCKING=FALSE" "$err" || fail "the variable is not named"
[ "$(grep -c '^tessera: error: ' "$err")" -eq 1 ] || fail "not one error"
[ ! -e "$here/out.json" ] || fail "the run trained"
cp "$work/saves-37-false/saves/step_0000000016.h5" "$here/a.h5"
HDF5_USE_FILE_LOCKING=TRUE launch checkpoint verify a.h5
expect_code 1
grep -q "a.h5: cannot be opened: unable to lock file, .*set HDF5_USE_FILE_LOCKING=FALSE" "$err" ||
  fail "the variable is not named"

conclude
