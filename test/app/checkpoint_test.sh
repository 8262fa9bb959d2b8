#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checkpoints end to end: runs that stop and go on, on other meshes too, and what is said of files.
# usage: checkpoint_test.sh PROGRAM JSON_GET INPUTS RANKS LAUNCHER...
program=$1 json_get=$2 inputs=$3 ranks=$4
shift 4
several=("$@")
launcher=("${several[@]}")
tests=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=script_support.sh
source "$(dirname "$0")/script_support.sh"

# expect_one_message PIECE: one rank says it; launchers add what they think of the exit code.
expect_one_message() {
  [ "$(grep -c '^tessera: error: ' "$err")" -eq 1 ] || fail "not one error"
  grep -qF -- "$1" "$err" || fail "stderr lacks '$1'"
}

saved_files() { (cd "$here/saves" && echo *); }

tutorial=("$inputs/tutorial.toml" --set training.num_epochs=5 --set checkpoint.directory=saves)
begin whole
launch run "$inputs/tutorial.toml" --set training.num_epochs=5 --json out.json
expect_code 0
expect_json /checkpoints 0
losses=$(json /epoch_losses)

# Threads write the same while training goes on.
begin async
async=("${tutorial[@]}" --set checkpoint.async=true --set checkpoint.on_failure=continue --set checkpoint.every_steps=7)
launch run "${async[@]}" --until 1000 --json out.json
expect_code 6
launch run "${async[@]}" --resume --json out.json
expect_code 0
expect_line " +Checkpoints: +6 in .*, the last one is saves/step_0000000040.h5"
expect_json /epoch_losses "$losses"
expect_json /failed_checkpoints 0
expect_json /measured/checkpoint_bytes_written "$(json /planned/checkpoint_bytes_written)"
expect_json /measured/checkpoint_bytes_written 27720
launch checkpoint verify saves/step_0000000040.h5
expect_code 0

begin stops-and-goes-on
launch run "${tutorial[@]}" --resume
expect_code 1
expect_one_message "--resume: there is no checkpoint in saves"
launch run "${tutorial[@]}" --until 1000 --resume-if-present --json out.json
expect_code 6
expect_line "Stopped on request after 2 steps and 0 of 5 epochs; resume with --resume saves/step_0000000002.h5"
expect_json /stopped true
expect_json /checkpoints 1
expect_json /initial_loss null
[ "$(cat "$here/saves/latest")" = step_0000000002.h5 ] || fail "latest is $(cat "$here/saves/latest")"
launch run "${tutorial[@]}" --set checkpoint.every_steps=7 --resume-if-present --json out.json
expect_code 0
expect_line " +Resumed at: +step 2"
expect_line " +Checkpoints: +6 in [0-9.]+ (ns|us|ms|s), the last one is saves/step_0000000040.h5"
expect_json /epoch_losses "$losses"
expect_json /resumed_at 2
expect_json /steps 38
expect_json /measured/checkpoint_bytes_written "$(json /planned/checkpoint_bytes_written)"
expect_json /measured/checkpoint_bytes_read 4620
expect_json /measured/checkpoint_bytes_written 27720

# Started once more, it says that it is at its end, and gives no rates.
launch run "${tutorial[@]}" --resume-if-present --json out.json
expect_code 0
expect_line " +Steps: +none was left"
! grep -qE "Time per step|Samples/s" "$out" || fail "it gives rates of no steps"
[ "$(tail -n 1 "$out")" = "Nothing was left to train: the checkpoint is that of the last epoch." ] ||
  fail "the last line is '$(tail -n 1 "$out")'"
expect_json /seconds_per_step null
expect_json /samples_per_second null
expect_json /steps 0
expect_json /epoch_losses "$losses"

# What it wrote is shown, verified, and trained on with another strategy on one rank.
launcher=()
saved=saves/step_0000000035.h5
launch checkpoint show $saved
expect_code 0
expect_line "Step: +35, after 4 of 5 epochs and 3 steps of the next one"
expect_line "Written by: +tessera .*, on $ranks ranks, mesh \[\"data\"\] \[$ranks\], strategy data"
expect_line " +parameters/layer1/kernel +float32 +\(4, 64\) +1,024 B +embed, mlp"
launch checkpoint verify $saved
expect_code 0
expect_line "$saved: intact: 4,676 B of arrays match their checksums"
launch run "${tutorial[@]}" --resume $saved --json out.json
expect_code 0
expect_near "the final loss on one rank" "$(json /final_loss)" "$(sed 's/.*,//; s/]//' <<< "$losses")" 1e-4
launcher=("${several[@]}")
launch run "${tutorial[@]}" --strategy fsdp --mesh "fsdp=$ranks" --resume $saved --json out.json
expect_code 0
expect_near "the final loss with fsdp" "$(json /final_loss)" "$(sed 's/.*,//; s/]//' <<< "$losses")" 1e-4

# Damage is found by whoever reads, with one line.
cp "$here/$saved" "$here/damaged.h5"
size=$(stat -c %s "$here/$saved")
printf '\x55' | dd of="$here/damaged.h5" bs=1 seek=$((size - 100)) conv=notrunc status=none
for command in "checkpoint verify damaged.h5" "run $inputs/tutorial.toml --resume damaged.h5"; do
  # shellcheck disable=SC2086 # words
  launch $command
  expect_code 1
  expect_one_message "damaged.h5: "
done
truncate -s 3000 "$here/damaged.h5"
launch run "${tutorial[@]}" --resume damaged.h5
expect_code 1
expect_one_message "damaged.h5: is not a complete HDF5 file: truncated file"
launch run "${tutorial[@]}" --resume "$inputs/tutorial.toml"
expect_code 1
expect_one_message "tutorial.toml: is not a complete HDF5 file: file signature not found"
launch run "${tutorial[@]}" --set 'model.widths=[4, 8, 1]' --resume
expect_code 1
expect_one_message "saves/step_0000000040.h5: was written with model.widths = [4, 64, 1], but this run has [4, 8, 1]"

# A directory belongs to one training, and to one run at a time.
cp -r "$here/saves" "$here/before"
other=("${tutorial[@]}" --set data.seed=7 --set checkpoint.every_steps=10)
launch run "${other[@]}"
expect_code 1
expect_one_message "checkpoint.directory = saves: holds step_0000000040.h5 of another training; resume that with --resume, set another directory, or replace it with checkpoint.overwrite = true"
host=$(hostname)/$(readlink /proc/self/ns/pid)
(for ((count = 0;; ++count)); do printf '%s %d %010d\n' "$host" $$ $count 1<> "$here/saves/lock"; sleep 0.5; done) &
counter=$!
launch run "${tutorial[@]}" --resume
kill $counter
wait $counter 2> /dev/null
expect_code 1
expect_one_message "checkpoint.directory = saves: is in use by process $$ on $(hostname), which is running; set another directory"
rm "$here/saves/lock"
diff -r "$here/before" "$here/saves" || fail "it changed what another run has there"
echo "$host 999999999 0" > "$here/saves/lock"
launch run "${other[@]}" --set checkpoint.overwrite=true
expect_code 0
[ "$(saved_files)" = "latest step_0000000030.h5 step_0000000040.h5" ] || fail "there is $(saved_files)"
launch run "${tutorial[@]}" --resume
expect_code 1
expect_one_message "saves/step_0000000040.h5: was written with data.seed = 7, but this run has 0"

# A training that diverges keeps its last good checkpoint.
begin diverges
launch run "${tutorial[@]}" --set checkpoint.every_steps=1 --set training.learning_rate=1e30
expect_code 2
expect_one_message "training diverged: "
[ "$(saved_files)" = "latest $(cat "$here/saves/latest")" ] || fail "there is $(saved_files)"
launch checkpoint verify "saves/$(cat "$here/saves/latest")"
expect_code 0

# Exported parameters give the loss that was printed.
begin export
launcher=()
launch run "${tutorial[@]}" --set data.validation_samples=64 --export run
expect_code 0
launch checkpoint export saves/step_0000000040.h5 -o model.npz
expect_code 0
expect_line "model.npz: 4 arrays from saves/step_0000000040.h5"
launch checkpoint export saves/step_0000000040.h5 --format safetensors --names pytorch
expect_code 0
expect_line "saves/step_0000000040.safetensors: 4 arrays from saves/step_0000000040.h5"
if [ -n "${PYTHON:-}" ]; then
  (cd "$here" && "$PYTHON" -B "$tests/../checkpoint/export_test.py" model.npz saves/step_0000000040.safetensors run) ||
    fail "NumPy does not get the loss of the run"
fi
launch checkpoint export saves/step_0000000040.h5 --format onnx
expect_code 1
expect_one_message "--format = onnx: must be one of npz, safetensors"
launch checkpoint export saves/step_0000000040.h5 -o /dev/null/model.npz
expect_code 1
expect_one_message "/dev/null/model.npz: cannot be written: Not a directory"
launcher=("${several[@]}")

begin bad
launch run "$inputs/tutorial.toml" --resume
expect_code 1
expect_one_message "--resume: needs checkpoint.directory"
launch run "$inputs/tutorial.toml" --until 1000
expect_code 1
expect_one_message "--until = 1000: needs checkpoint.directory"
launch run "${tutorial[@]}" --until tomorrow
expect_code 1
expect_one_message "--until = tomorrow: must be a local date and time that exists, like 2026-11-24T06:00:00, or seconds since 1970"
launch run "${tutorial[@]}" --until 2027-02-30T00:00:00
expect_code 1
expect_one_message "--until = 2027-02-30T00:00:00: must be a local date and time that exists"
launch run "$inputs/tutorial.toml" --set checkpoint.every_steps=3
expect_code 1
expect_one_message "checkpoint.every_steps = 3: needs checkpoint.directory"
launch run "${tutorial[@]}" --set checkpoint.on_failure=retry
expect_code 1
expect_one_message "checkpoint.on_failure = \"retry\": must be one of stop, continue"
launch run "$inputs/tutorial.toml" --set checkpoint.async=true
expect_code 1
expect_one_message "checkpoint.async = true: needs checkpoint.directory"
launch run "$inputs/tutorial.toml" --set checkpoint.directory=/dev/null/saves
expect_code 1
expect_one_message "checkpoint.directory = /dev/null/saves: must be a directory that exists or can be created"
expect_files

# stop_by NAME SIGNALS FILE ARGUMENTS...: a scheduler's signals to one process, once there is a FILE in its directory.
launcher=()
stop_by() {
  begin "$1"
  local signals=$2 file=$3 process trained signal wait
  shift 3
  (cd "$here" && exec timeout 60 "$program" run "${tutorial[@]}" --set training.num_epochs=10000000 "$@" --quiet) \
    > "$out" 2> "$err" &
  process=$!
  for ((wait = 0; wait < 2000; ++wait)); do
    compgen -G "$here/saves/$file" > /dev/null && break
    sleep 0.01
  done
  # To the program: timeout passes SIGTERM on, and nothing else.
  trained=$(pgrep -P $process)
  for signal in $signals; do kill -"$signal" "$trained"; done
  wait $process
  code=$?
  expect_code 6
  launch checkpoint verify "saves/$(cat "$here/saves/latest")"
  expect_code 0
  ! compgen -G "$here/saves/*.unfinished" || fail "a file is left that is not finished"
}
stop_by signal USR1 latest --set checkpoint.every_steps=1000
stop_by signal-twice "TERM TERM" latest --set checkpoint.every_steps=1000
# While a save of 20 MB goes on.
large=(--set 'model.widths=[4, 300000, 1]' --set checkpoint.every_steps=1)
stop_by signal-in-a-save TERM 'step_*.unfinished' "${large[@]}"
stop_by signal-in-the-background TERM 'step_*.unfinished' "${large[@]}" --set checkpoint.async=true

conclude
