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
# epochs N ARGUMENT...: trains to the end of epoch N.
epochs() {
  launch run "${tutorial[@]}" --set training.num_epochs="$1" "${@:2}"
  expect_code 0
}
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
launch run "${tutorial[@]}" --resume-if-present
expect_code 1
expect_one_error "$of24: is not a safetensors file, or is cut off"

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
  launch run "${tutorial[@]}" "${worse[@]}" $flag
  expect_code 1
  expect_one_error "saves: has 2 trainings that this run may resume: choose one with --resume "
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
together() {
  local way=$1
  shift
  for number in 1 2; do
    (cd "$here" && timeout 120 "$program" run "${tutorial[@]:0:${#tutorial[@]}-2}" --set training.num_epochs=20 "$@" > /dev/null 2> "$way$number.err"; echo $? > "$way$number.code") &
  done
  wait
}
together new
for number in 1 2; do [ "$(cat "$here/new$number.code")" = 0 ] || fail "a new training ended: $(cat "$here/new$number.err")"; done
[ "$(ls "$here/saves" | wc -l)" -eq 2 ] || fail "two trainings have the folders $(ls "$here/saves")"
begin resumed-at-once
epochs 2
runs=()
for number in 1 2; do
  (cd "$here" && exec timeout 120 "$program" run "${tutorial[@]:0:${#tutorial[@]}-2}" --resume-if-present \
    --set training.num_epochs=10000000 --set checkpoint.every_steps=1000 > /dev/null 2> "again$number.err") &
  runs+=($!)
done
wait -n "${runs[@]}"
code=$?
expect_code 1
[ "$(grep -lF "another run goes on with the training in " "$here"/again?.err | wc -l)" -eq 1 ] || fail "no run is rejected"
kill -TERM "${runs[@]}" 2> /dev/null
wait
[ "$(ls "$here/saves" | wc -l)" -eq 1 ] || fail "one training has the folders $(ls "$here/saves")"
last=$(cd "$here" && compgen -G 'saves/*/step_*.safetensors' | tail -n 1)
[ "$last" \> "$(dirname "$last")/step_0000000016" ] || fail "the other run has saved nothing"
launch checkpoint verify "$last"
expect_code 0

# Checkpoints of version 0.2.
begin hdf5
mkdir "$here/saves"
printf '\x89HDF\r\n\x1a\n and more' > "$here/saves/step_0000000008.h5"
for flag in --resume --resume-if-present; do
  launch run "${tutorial[@]}" $flag
  expect_code 1
  expect_one_error "saves/step_0000000008.h5: is a checkpoint of Tessera 0.2: export it with "
done
for command in "run $inputs/tutorial.toml --resume" "run $inputs/tutorial.toml --set checkpoint.init_from" "checkpoint show" \
  "checkpoint export"; do
  # shellcheck disable=SC2086 # words
  case $command in *init_from) launch $command=saves/step_0000000008.h5 ;; *) launch $command saves/step_0000000008.h5 ;; esac
  expect_code 1
  expect_one_error "saves/step_0000000008.h5: is an HDF5 file; if it is a checkpoint of Tessera 0.2, export it with "
done
launch run "${tutorial[@]}" --set checkpoint.overwrite=true
expect_code 1
expect_one_error "checkpoint.overwrite = true: is gone: each training has a folder of its own"

# What changes the numbers of a training is rejected.
begin other-training
epochs 1
of8=$(saved 8)
for change in distributed.gradient_reduce_type=sum:'"mean"':'"sum"' numerics.reproducible=true:false:true \
  training.loss=mae:'"mse"':'"mae"'; do
  IFS=: read -r assignment then now <<< "$change"
  launch run "${tutorial[@]}" --resume "$of8" --set "$assignment"
  expect_code 1
  expect_one_error "$of8: was written with ${assignment%=*} = $then, but this run has $now"
done
begin other-grains
fixed=(--set numerics.reproducible=true)
epochs 1 "${fixed[@]}"
for grains in grains model_grains; do
  launch run "${tutorial[@]}" "${fixed[@]}" --resume --set numerics.$grains=2
  expect_code 1
  expect_one_error "$(saved 8): was written with numerics.$grains = "
done

# Each rank works in a directory of its own, like the ranks of nodes that share none.
cat > "$work/apart.sh" << 'SCRIPT'
cd "rank_${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$SLURM_PROCID}}" && exec "$@"
SCRIPT
# launch_apart ARGUMENT...: like launch, on two ranks.
launch_apart() {
  mkdir -p "$here/rank_0" "$here/rank_1"
  launcher=("${several[@]}" bash "$work/apart.sh")
  launch "$@"
  launcher=()
}
# expect_apart WHERE: one rank prints that this directory is not shared. Launchers add lines about the exit code.
expect_apart() {
  expect_code 1
  [ "$(grep -c '^tessera: error: ' "$err")" -eq 1 ] || fail "not one error"
  grep -qxF "tessera: error: checkpoint.directory = $1: must be a directory that all ranks share; a file of rank 0 is \
not there on rank 1" "$err" || fail "another error"
}
export TESSERA_TIMEOUT_SECONDS=20
begin not-shared
launch_apart run "${tutorial[@]}"
expect_apart saves
mkdir -p "$here/rank_0/saves" "$here/rank_1/saves"
launch_apart run "${tutorial[@]}"
expect_apart saves
[ -z "$(find "$here" -type f)" ] || fail "left $(find "$here" -type f)"

# The same before every save: a rank loses sight of the directory during the training.
begin no-longer-shared
mkdir -p "$here/rank_0" "$here/rank_1" "$here/shared" "$here/other"
ln -s ../shared "$here/rank_0/saves"
ln -s ../shared "$here/rank_1/saves"
(
  for ((wait = 0; wait < 2000; ++wait)); do
    compgen -G "$here/shared/*/step_*.safetensors" > /dev/null && break
    sleep 0.01
  done
  ln -sfn ../other "$here/rank_1/saves"
) &
launch_apart run "${tutorial[@]}" --set training.num_epochs=1000000
wait
# The link may change between the check and the save.
if grep -q '^tessera: error: saves/.*.unfinished: cannot be opened: No such file or directory$' "$err"; then
  expect_code 1
else
  expect_apart saves
fi

# Checkpoints and data with other contents on another rank.
begin other-contents
for rank in 0 1; do
  mkdir "$here/rank_$rank"
  (cd "$here/rank_$rank" && "$program" run "${tutorial[@]}" --export . --set training.learning_rate=0.0$((rank + 1)) \
    --set training.num_epochs=1)
done
printf x | dd of="$here/rank_1/y.npy" bs=1 seek=300 conv=notrunc status=none
for rank in 0 1; do (cd "$here/rank_$rank" && cp saves/*/step_0000000008.safetensors same.safetensors); done
launch_apart run "$inputs/tutorial.toml" --resume same.safetensors
expect_code 1
grep -qxF "tessera: error: same.safetensors: has other contents on rank 1 than on rank 0" "$err" || fail "another error"
for rank in 0 1; do (cd "$here/rank_$rank" && "$program" checkpoint export same.safetensors -o weights > /dev/null); done
launch_apart run "$inputs/tutorial.toml" --set checkpoint.init_from=weights --strategy fsdp --mesh fsdp=2
expect_code 1
grep -qxF "tessera: error: weights: has other contents on rank 1 than on rank 0" "$err" || fail "another error"
launch_apart run "$inputs/tutorial.toml" --set data.kind=npy --set data.x=x.npy --set data.y=y.npy
expect_code 1
grep -qxF "tessera: error: data.x = x.npy, data.y = y.npy: has other samples on rank 1 than on rank 0" "$err" ||
  fail "another error"
cp "$here/rank_0/y.npy" "$here/rank_1/"
launch_apart run "$inputs/tutorial.toml" --set data.kind=npy --set data.x=x.npy --set data.y=y.npy
expect_code 0

conclude
