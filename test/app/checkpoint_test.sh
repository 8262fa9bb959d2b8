#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checkpoints end to end: runs that stop and resume, also on other meshes; damaged files; export; signals.
# usage: checkpoint_test.sh PROGRAM JSON_GET INPUTS RANKS LAUNCHER...
program=$1 json_get=$2 inputs=$3 ranks=$4
shift 4
several=("$@")
launcher=("${several[@]}")
tests=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=script_support.sh
source "$(dirname "$0")/script_support.sh"

tutorial=("$inputs/tutorial.toml" --set training.num_epochs=5 --set checkpoint.directory=saves)
begin whole
succeeds run "$inputs/tutorial.toml" --set training.num_epochs=5 --json out.json
expect_json /checkpoints 0
losses=$(json /epoch_losses)

# Threads write the same checkpoints in the background.
begin async
async=("${tutorial[@]}" --set checkpoint.async=true --set checkpoint.on_failure=continue --set checkpoint.every_steps=7)
ends_with 6 run "${async[@]}" --until 1000 --json out.json
succeeds run "${async[@]}" --resume --json out.json
expect_line " +Checkpoints: +6 in .*, the last one is $(saved 40)"
expect_json /epoch_losses "$losses" /failed_checkpoints 0
expect_json /measured/checkpoint_bytes_written "$(json /planned/checkpoint_bytes_written)"
expect_json /measured/checkpoint_bytes_written 27720
succeeds checkpoint verify "$(saved 40)"

begin stops-and-goes-on
rejects "--resume: there is no checkpoint in saves" run "${tutorial[@]}" --resume
ends_with 6 run "${tutorial[@]}" --until 1000 --resume-if-present --json out.json
expect_line "Stopped on request after 2 steps and 0 of 5 epochs; resume with --resume $(saved 2)"
expect_json /stopped true /checkpoints 1 /initial_loss null
succeeds run "${tutorial[@]}" --set checkpoint.every_steps=7 --resume-if-present --json out.json
expect_line " +Resumed at: +step 2"
expect_line " +Checkpoints: +6 in [0-9.]+ (ns|us|ms|s), the last one is $(saved 40)"
expect_json /epoch_losses "$losses" /resumed_at 2 /steps 38
expect_json /measured/checkpoint_bytes_written "$(json /planned/checkpoint_bytes_written)"
expect_json /measured/checkpoint_bytes_read 4620 /measured/checkpoint_bytes_written 27720

# A run with no steps left says so and prints no rates.
succeeds run "${tutorial[@]}" --resume-if-present --json out.json
expect_line " +Steps: +none was left"
! grep -qE "Time per step|Samples/s" "$out" || fail "it gives rates of no steps"
[ "$(tail -n 1 "$out")" = "Nothing was left to train: the checkpoint is that of the last epoch." ] ||
  fail "the last line is '$(tail -n 1 "$out")'"
expect_json /seconds_per_step null /samples_per_second null /steps 0 /epoch_losses "$losses"

# Checkpoints can be shown, verified, and resumed on one rank and with another strategy.
launcher=()
of35=$(saved 35)
succeeds checkpoint show "$of35"
expect_line "Step: +35, after 4 of 5 epochs and 3 steps of the next one"
expect_line "Written by: +tessera .*, on $ranks ranks, mesh \[\"data\"\] \[$ranks\], strategy data"
expect_line " +layer1/kernel +float32 +\(4, 64\) +1,024 B +embed, mlp"
succeeds checkpoint verify "$of35"
expect_line "$of35: intact: 4,620 B of arrays match their checksums"
succeeds run "${tutorial[@]}" --resume "$of35" --json out.json
expect_near "the final loss on one rank" "$(json /final_loss)" "$(sed 's/.*,//; s/]//' <<< "$losses")" 1e-4
launcher=("${several[@]}")
succeeds run "${tutorial[@]}" --strategy fsdp --mesh "fsdp=$ranks" --resume "$of35" --json out.json
expect_near "the final loss with fsdp" "$(json /final_loss)" "$(sed 's/.*,//; s/]//' <<< "$losses")" 1e-4

# Every command reports a damaged file in one line.
cp "$here/$of35" "$here/damaged.safetensors"
printf '\x55' | dd of="$here/damaged.safetensors" bs=1 seek=$(($(stat -c %s "$here/$of35") - 100)) conv=notrunc status=none
for command in "checkpoint verify damaged.safetensors" "run $inputs/tutorial.toml --resume damaged.safetensors"; do
  # shellcheck disable=SC2086 # words
  rejects "damaged.safetensors: " $command
done
# NumPy computes the printed loss from the exported parameters.
begin export
launcher=()
succeeds run "${tutorial[@]}" --set data.validation_samples=64 --export run
of40=$(saved 40)
succeeds checkpoint export "$of40" -o model.safetensors
expect_line "model.safetensors: 4 arrays from $of40"
succeeds checkpoint export "$of40" --format safetensors --names pytorch
expect_line "${of40/.safetensors/.pytorch.safetensors}: 4 arrays from $of40"
if [ -n "${PYTHON:-}" ]; then
  (cd "$here" && "$PYTHON" -B "$tests/../../scripts/npz.py" model.safetensors &&
    "$PYTHON" -B "$tests/../checkpoint/export_test.py" model.npz "${of40/.safetensors/.pytorch.safetensors}" run "$of40") ||
    fail "NumPy does not get the loss of the run"
  # NumPy has no bf16; a file may also be cut off.
  printf '\x40\0\0\0\0\0\0\0{"a/b": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}XX' > "$here/bf16"
  head -c 100 "$here/model.safetensors" > "$here/cut"
  for file in bf16:"a/b has elements of type BF16, which NumPy lacks" cut:Expecting none:"[Errno 2] No such file"; do
    (cd "$here" && "$PYTHON" -B "$tests/../../scripts/npz.py" "${file%%:*}") 2> "$err" && fail "converts ${file%%:*}"
    expect_one_error "error: ${file%%:*}: ${file#*:}"
  done
fi
rejects "--format: must be safetensors; scripts/npz.py converts that to npz" checkpoint export "$of40" --format npz
succeeds checkpoint export "$of40" --dtype bfloat16 -o half.safetensors
[ "$(stat -c %s "$here/half.safetensors")" -lt "$(stat -c %s "$here/model.safetensors")" ] || fail "bfloat16 is not smaller"
rejects "--dtype = int32: must be one of float64, float32, bfloat16, float16" checkpoint export "$of40" --dtype int32
rejects "/dev/null/model.npz: cannot be written: Not a directory" checkpoint export "$of40" -o /dev/null/model.npz
launcher=("${several[@]}")

# A training starts from exported parameters, and the same command resumes it.
begin init-from
from=$work/export/model.safetensors
start=("$inputs/tutorial.toml" --set training.num_epochs=5 --set data.validation_samples=64
  --set "checkpoint.init_from=$from" --set training.learning_rate=0.0005)
succeeds run "${start[@]}" --json out.json
expect_line " +Started from: +$from"
expect_json /init_from "$from"
losses=$(json /epoch_losses)
awk -v a="$(json /initial_loss)" 'BEGIN { exit !(a < 13) }' || fail "the first loss is $(json /initial_loss)"
start+=(--set checkpoint.directory=saves --json out.json)
ends_with 6 run "${start[@]}" --resume-if-present --until 1000
succeeds run "${start[@]}" --resume-if-present
expect_json /init_from "" /resumed_at 2 /epoch_losses "$losses"
succeeds run "${start[@]}" --resume "$(saved 2)"
expect_json /init_from "" /resumed_at 2 /epoch_losses "$losses"
rejects "does not fit the model: layer1/bias is float (64,), not float (65,); layer1/kernel is" \
  run "${start[@]}" --set 'model.widths=[4, 65, 1]' --set checkpoint.directory=others
[ ! -e "$here/others" ] || fail "it made a directory before it read the weights"

# A folder for transformers: a run starts from it, unless a setting differs.
begin transformers
small=("$inputs/transformer.toml" --set training.num_epochs=1 --set data.samples=64)
succeeds run "${small[@]}" --set checkpoint.directory=saves
launcher=()
rejects "--names = huggingface: GPT2LMHeadModel needs model.kind = \"transformer\", not \"mlp\"" \
  checkpoint export "$work/export/$of40" --names huggingface -o other
[ ! -e "$here/other" ] || fail "it made a folder for a model that it cannot write"
succeeds checkpoint export "$(saved 2)" --names huggingface -o model --dtype bfloat16
expect_line "model/model.safetensors: 29 arrays from $(saved 2)"
launcher=("${several[@]}")
succeeds run "${small[@]}" --set checkpoint.init_from=model
expect_line " +Started from: +model"
rejects "needs model.transformer.norm_epsilon = 1e-05, not 0.001" \
  run "${small[@]}" --set checkpoint.init_from=model --set model.transformer.norm_epsilon=0.001

# It ends early, and names the checkpoint with the smallest validation loss.
begin patience
early=("${tutorial[@]}" --set data.validation_samples=64 --set training.num_epochs=200 --set training.patience=2
  --set training.learning_rate=0.3 --json out.json)
succeeds run "${early[@]}"
expect_line "Stopped early after [0-9]+ of 200 epochs: 2 validations in a row had no new smallest loss."
expect_json /stopped_early true /stopped false
best=$(json /best_checkpoint)
expect_line " +Best checkpoint: +$best"
epochs=$(json /validation/smallest/epoch)
[ "$(json /steps)" -eq $((8 * (epochs + 2))) ] || fail "$(json /steps) steps, and the best was epoch $epochs"
[ "$best" = "$(saved $((8 * epochs)))" ] || fail "the best checkpoint is $best"
[ -e "$here/$best" ] || fail "$best does not exist"
succeeds run "${early[@]}" --resume-if-present
expect_json /steps 0
expect_line "Stopped early after .*"

begin bad
rejects "--resume: needs checkpoint.directory" run "$inputs/tutorial.toml" --resume
rejects "--until: 1.5 must be a whole number of seconds" run "$inputs/tutorial.toml" --until 1.5
rejects "--until = 1000: needs checkpoint.directory" run "$inputs/tutorial.toml" --until 1000
rejects "checkpoint.directory = /dev/null/saves: must be a directory that exists or can be created" \
  run "$inputs/tutorial.toml" --set checkpoint.directory=/dev/null/saves
expect_files

# stop_by NAME SIGNAL FILE ARGUMENTS...: sends the signal to a run when FILE appears in its directory; with
# $again set, twice in one call: signals that come 0.3 s later are another request.
launcher=()
handles_int=()
stop_by() {
  begin "$1"
  local signal=$2 file=$3 process trained
  shift 3
  (cd "$here" && exec timeout 200 ${handles_int[@]+"${handles_int[@]}"} "$program" run "${tutorial[@]}" \
    --set training.num_epochs=10000000 "$@" --quiet) > "$out" 2> "$err" &
  process=$!
  wait_until compgen -G "$here/saves/$file"
  # Sends to the program itself, because timeout passes on SIGTERM only.
  trained=$(pgrep -P $process)
  kill -"$signal" "$trained" ${again:+"$trained"}
  wait $process
  code=$?
  expect_code 6
  succeeds checkpoint verify "$(cd "$here" && compgen -G 'saves/*/step_*.safetensors' | tail -n 1)"
  ! compgen -G "$here/saves/*/*.unfinished" || fail "a file is left that is not finished"
}
stop_by signal USR1 '*/step_*.safetensors' --set checkpoint.every_steps=1000
# Background processes of scripts ignore SIGINT, which older versions of env cannot change.
if env --default-signal=INT true 2> /dev/null; then
  handles_int=(env --default-signal=INT)
  stop_by interrupt INT '*/step_*.safetensors' --set checkpoint.every_steps=1000
fi
# Launchers may pass on one request twice.
again=yes stop_by signal-twice TERM '*/step_*.safetensors' --set checkpoint.every_steps=1000
# During a save of 20 MB.
large=(--set 'model.widths=[4, 300000, 1]' --set checkpoint.every_steps=1)
stop_by signal-in-a-save TERM '*/step_*.unfinished' "${large[@]}"
stop_by signal-in-the-background TERM '*/step_*.unfinished' "${large[@]}" --set checkpoint.async=true

conclude
