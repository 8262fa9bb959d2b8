#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which checkpoints stay, which is the newest one and which the best; which of them a run may resume from.
# usage: checkpoint_files_test.sh PROGRAM JSON_GET INPUTS RANKS LAUNCHER...
program=$1 json_get=$2 inputs=$3 ranks=$4
shift 4
several=("$@")
launcher=()
# shellcheck source=script_support.sh
source "$(dirname "$0")/script_support.sh"

# An epoch of the tutorial has 8 steps.
tutorial=("$inputs/tutorial.toml" --quiet --set checkpoint.directory=saves --set checkpoint.every_steps=8 --json out.json)
quiet=("${tutorial[@]:0:${#tutorial[@]}-2}")
# epochs N ARGUMENT...: trains to the end of epoch N.
epochs() { succeeds run "${tutorial[@]}" --set training.num_epochs="$1" "${@:2}"; }
# expect_saves STEP...: the training of the last name has the checkpoints of these steps.
expect_saves() {
  local found
  found=$(cd "$here"/saves && cd "$(ls | tail -n 1)" && echo *)
  [ "$found" = "$(printf 'step_%010d.safetensors ' "$@" | sed 's/ $//')" ] || fail "has '$found', not those of steps $*"
}

# Steps count, not times of change.
begin clock
epochs 2 --set checkpoint.keep=3
touch -d '+10 minutes' "$here/$(saved 8)"
touch -d '+20 minutes' "$here/$(saved 16)"
epochs 3 --resume --set checkpoint.keep=1
expect_saves 24
epochs 4 --resume
expect_json /resumed_at 24
expect_saves 24 32

# The last checkpoint is cut off, or all are.
begin damaged
epochs 3 --set checkpoint.keep=0
truncate -s -100 "$here/$(saved 24)"
touch -d '+10 minutes' "$here/$(saved 8)"
of24=$(saved 24)
epochs 2 --resume
expect_json /resumed_at 16
expect_one_error "warning: $of24: has 4520 bytes of values, but its header describes 4620; taking step_0000000016.safetensors, \
the newest one that is complete"
epochs 3 --resume-if-present
expect_json /resumed_at 16
expect_saves 16 24
for step in 16 24; do truncate -s 3000 "$here/$(saved $step)"; done
rejects "$of24: is not a safetensors file, or is cut off" run "${tutorial[@]}" --resume-if-present

# One of this run's trainings is damaged: the other is not taken for it. Damaged files of other models stop nobody.
begin damaged-beside-others
epochs 2 --set checkpoint.keep=1
epochs 3 --set checkpoint.keep=1
of24=$(saved 24)
truncate -s 3000 "$here"/saves/*/"${of24##*/}"
for flag in --resume --resume-if-present; do
  rejects "$of24: is not a safetensors file, or is cut off" run "${tutorial[@]}" $flag
done
epochs 2 --resume-if-present --set 'model.widths=[4,32,1]'
grep -qF "warning: $of24: is not a safetensors file, or is cut off; going on without this training" "$err" || fail "no warning"

# A link to the newest checkpoint, and a directory whose name is not UTF-8.
begin names
epochs 1
ln -s "$(saved 8)" "$here/latest"
epochs 2 --resume latest
expect_json /resumed_at 8
epochs 3 --resume
expect_json /resumed_at 16
odd=(--set checkpoint.directory=$'u\xe9')
epochs 1 "${odd[@]}"
launcher=("${several[@]}")
epochs 2 "${odd[@]}" --resume
expect_json /resumed_at 8
launcher=()

# A run that resumes from an earlier step begins a branch. Later checkpoints of the other one are not its best.
begin branch
validated=(--set data.validation_samples=64 --set training.patience=100)
epochs 4 "${validated[@]}" --set checkpoint.keep=0
worse=("${validated[@]}" --set training.learning_rate=0)
of8=$(saved 8) of32=$(saved 32)
epochs 2 --resume "$of8" "${worse[@]}" --set checkpoint.keep=4
branch=$(dirname "$(json /last_checkpoint)")
expect_json /resumed_at 8
expect_json /best_checkpoint "$branch/${of8##*/}"
[ "$branch" != "${of8%/*}" ] || fail "the branch has no folder of its own"
# Nothing of the other one is lost. Now two trainings fit, and the user chooses.
for flag in --resume --resume-if-present; do
  rejects "saves: has 2 trainings that this run may resume: choose one with --resume " run "${tutorial[@]}" "${worse[@]}" $flag
  grep -qF -- "--resume $of32" "$err" || fail "$of32 is not listed"
  grep -qF -- "--resume $branch/step_0000000016.safetensors" "$err" || fail "that of the branch is not listed"
done
epochs 6 --resume "$branch/step_0000000016.safetensors" "${worse[@]}" --set checkpoint.keep=1 --set checkpoint.keep_best=1
[ "$(cd "$here/$branch" && echo *)" = "step_0000000008.safetensors step_0000000048.safetensors" ] ||
  fail "has $(ls "$here/$branch")"
epochs 5 --resume "$of32" "${validated[@]}" --set checkpoint.keep=0
[ "$(json /last_checkpoint)" = "${of8%/*}/step_0000000040.safetensors" ] || fail "saved $(json /last_checkpoint)"

# Two runs start or resume at once. No two of them write to one place.
begin at-once
for number in 1 2; do
  (cd "$here" && exec timeout 240 "$program" run "${quiet[@]}" --set training.num_epochs=20 2> "new$number.err") &
done
wait
[ -z "$(cat "$here"/new?.err)" ] || fail "a new training ended: $(cat "$here"/new?.err)"
[ "$(compgen -G "$here/saves/*/$(basename "$(saved 160)")" | wc -l)" -eq 2 ] || fail "two trainings left $(ls "$here"/saves/*)"
begin resumed-at-once
epochs 2
runs=()
for number in 1 2; do
  (cd "$here" && exec timeout 240 "$program" run "${quiet[@]}" --resume-if-present \
    --set training.num_epochs=10000000 --set checkpoint.every_steps=100000000 --set output.metrics=metrics$number.jsonl \
    --set output.every_steps=10000 > /dev/null 2> "again$number.err") &
  runs+=($!)
done
wait -n "${runs[@]}"
code=$?
expect_code 1
trains() { cat "$here"/metrics?.jsonl | grep -q loss; }
wait_until trains
[ "$(grep -lF "another run goes on with the training in " "$here"/again?.err | wc -l)" -eq 1 ] || fail "no run is rejected"
kill -TERM "${runs[@]}" 2> /dev/null
wait
[ "$(ls "$here/saves" | wc -l)" -eq 1 ] || fail "one training has the folders $(ls "$here/saves")"
last=$(cd "$here" && compgen -G 'saves/*/step_*.safetensors' | tail -n 1)
[ "$last" \> "$(dirname "$last")/step_0000000016" ] || fail "the other run has saved nothing"
succeeds checkpoint verify "$last"

# Checkpoints of version 0.2.
begin hdf5
mkdir "$here/saves"
printf '\x89HDF\r\n\x1a\n and more' > "$here/saves/step_0000000008.h5"
for flag in --resume --resume-if-present; do
  rejects "saves/step_0000000008.h5: is a checkpoint of Tessera 0.2: export it with " run "${tutorial[@]}" $flag
done
for command in "run $inputs/tutorial.toml --resume " "run $inputs/tutorial.toml --set checkpoint.init_from=" \
  "checkpoint show " "checkpoint export "; do
  # shellcheck disable=SC2086 # words
  rejects "saves/step_0000000008.h5: is an HDF5 file; if it is a checkpoint of Tessera 0.2, export it with " \
    ${command}saves/step_0000000008.h5
done

# What changes the numbers of a training is rejected.
begin other-training
epochs 1
of8=$(saved 8)
for change in distributed.gradient_reduce_type=sum:'"mean"':'"sum"' numerics.reproducible=true:false:true \
  training.loss=mae:'"mse"':'"mae"'; do
  IFS=: read -r assignment then now <<< "$change"
  rejects "$of8: was written with ${assignment%=*} = $then, but this run has $now" \
    run "${tutorial[@]}" --resume "$of8" --set "$assignment"
done
begin other-grains
fixed=(--set numerics.reproducible=true)
epochs 1 "${fixed[@]}"
for grains in grains model_grains; do
  rejects "$(saved 8): was written with numerics.$grains = " run "${tutorial[@]}" "${fixed[@]}" --resume --set numerics.$grains=2
done

# Each rank works in a directory of its own, like the ranks of nodes that share none.
cat > "$work/apart.sh" << 'SCRIPT'
cd "rank_${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$SLURM_PROCID}}" && exec "$@"
SCRIPT
# From here on, `launch` starts two such ranks.
launcher=("${several[@]}" bash "$work/apart.sh")
not_shared="checkpoint.directory = saves: must be a directory that all ranks share; a file of rank 0 is not there on rank 1"
export TESSERA_TIMEOUT_SECONDS=20
begin not-shared
mkdir "$here"/rank_{0,1}
rejects "$not_shared" run "${tutorial[@]}"
mkdir -p "$here"/rank_{0,1}/saves
rejects "$not_shared" run "${tutorial[@]}"
[ -z "$(find "$here" -type f)" ] || fail "left $(find "$here" -type f)"

# The same before every save: a rank loses sight of the directory during the training.
begin no-longer-shared
mkdir "$here"/{rank_{0,1},shared,other}
ln -s ../shared "$here/rank_0/saves"
ln -s ../shared "$here/rank_1/saves"
(
  wait_until compgen -G "$here/shared/*/step_*.safetensors"
  ln -sfn ../other "$here/rank_1/saves"
) &
ends_with 1 run "${tutorial[@]}" --set training.num_epochs=1000000
wait
# The link may change between the check and the save.
grep -q '^tessera: error: saves/.*.unfinished: cannot be opened: No such file or directory$' "$err" ||
  expect_one_error "$not_shared"

# Checkpoints and data with other contents on another rank.
begin other-contents
for rank in 0 1; do
  mkdir "$here/rank_$rank"
  (cd "$here/rank_$rank" && "$program" run "${tutorial[@]}" --export . --set training.learning_rate=0.0$((rank + 1)) \
    --set training.num_epochs=1 && cp saves/*/step_0000000008.safetensors same.safetensors &&
    "$program" checkpoint export same.safetensors -o weights > /dev/null)
done
printf x | dd of="$here/rank_1/y.npy" bs=1 seek=300 conv=notrunc status=none
arrays=("$inputs/tutorial.toml" --set data.kind=npy --set data.x=x.npy --set data.y=y.npy)
rejects "same.safetensors: has other contents on rank 1 than on rank 0" run "$inputs/tutorial.toml" --resume same.safetensors
rejects "weights: has other contents on rank 1 than on rank 0" run "$inputs/tutorial.toml" --set checkpoint.init_from=weights \
  --strategy fsdp --mesh fsdp=2
rejects "data.x = x.npy, data.y = y.npy: has other samples on rank 1 than on rank 0" run "${arrays[@]}"
cp "$here/rank_0/y.npy" "$here/rank_1/"
succeeds run "${arrays[@]}"

conclude
