#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training on files: exported samples give the same losses, and bad files give one clear line.
# usage: data_files_test.sh PROGRAM JSON_GET INPUTS RANKS LAUNCHER...
program=$1 json_get=$2 inputs=$3 ranks=$4
shift 4
several=("$@")
launcher=()
# shellcheck source=script_support.sh
source "$(dirname "$0")/script_support.sh"

tutorial=("$inputs/tutorial.toml" --set training.num_epochs=3 --set data.shuffle=true)
arrays=(--set data.kind=npy --set data.x=saved/x.npy --set data.y=saved/y.npy)

begin npy
succeeds run "${tutorial[@]}" --export saved --json out.json
losses=$(json /epoch_losses)
succeeds run "${tutorial[@]}" "${arrays[@]}" --json out.json
expect_json /epoch_losses "$losses"
launcher=("${several[@]}")
succeeds run "${tutorial[@]}" "${arrays[@]}" --json out.json
expect_line " +Devices used: +$ranks"
expect_near "the final loss on $ranks ranks" "$(json /final_loss)" "$(sed 's/.*,//; s/]//' <<< "$losses")" 2e-5

rejects 'data.x = saved/x.npy: has shape (256, 1, 4), but 257 samples are needed; data.samples = "all" takes what there is' \
  run "${tutorial[@]}" "${arrays[@]}" --set data.samples=257
succeeds run "${tutorial[@]}" "${arrays[@]}" --set data.samples=all --set data.validation_samples=56 --print-config
expect_line "samples = 200 .*"
launcher=()
rejects 'data.samples = "all": needs samples in files; data.kind = "sum_of_squares" makes them' \
  plan "${tutorial[@]}" --set data.samples=all

# make_nan ELEMENT: makes an element of x.npy NaN.
cp -r "$work/npy/saved/." "$work"
header=$(od -An -tu2 -j8 -N2 "$work/x.npy")
make_nan() {
  printf '\0\0\300\177' | dd of="$work/x.npy" bs=1 seek=$((10 + header + 4 * $1)) conv=notrunc 2> "$work/dd"
}

# A validation loss that is not finite ends the training as a loss does; with patience it only counts.
make_nan 1001  # rows have 4 elements: row 250
begin validation
mkdir "$here/saved"
cp "$work"/[xy].npy "$here/saved"
unseen=(--set data.samples=240 --set data.validation_samples=16 --set data.allow_nonfinite=true)
ends_with 2 run "${tutorial[@]}" "${arrays[@]}" "${unseen[@]}"
expect_one_error "training diverged: the validation loss of epoch 1 is not a number"
succeeds run "${tutorial[@]}" "${arrays[@]}" "${unseen[@]}" --set training.patience=2
expect_line "Stopped early after 2 of 3 epochs: .*"

# NaN in two rows, which several ranks read, gives the same line on any number of ranks.
make_nan 67  # row 16, column 3
begin not_finite
mkdir "$here/saved"
cp "$work"/[xy].npy "$here/saved"
for ranks_of in "" "${several[*]}"; do
  read -ra launcher <<< "$ranks_of"
  for shuffle in true false; do
    rejects "data.x = saved/x.npy: has nan in row 16, column 3, counted from 0, which is not finite in float32; \
data.allow_nonfinite = true trains on it" run "${tutorial[@]}" "${arrays[@]}" --set data.shuffle=$shuffle
  done
done
ends_with 2 run "${tutorial[@]}" "${arrays[@]}" --set data.allow_nonfinite=true

# Plans and configurations need no files.
begin nothing
launcher=()
succeeds plan "${tutorial[@]}" "${arrays[@]}"
succeeds run "${tutorial[@]}" "${arrays[@]}" --print-config
expect_line 'x = "saved/x.npy" +# .*'
rejects "data.x = saved/x.npy: cannot be read: No such file or directory" run "${tutorial[@]}" "${arrays[@]}"

conclude
