#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which checkpoints stay, which is the latest one and which the best; which of them a run may resume from.
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
# expect_saves STEP...: the directory has the checkpoints of these steps, and the last one is the latest.
expect_saves() {
  local found
  found=$(cd "$here/saves" && echo step_*)
  [ "$found" = "$(printf 'step_%010d.h5 ' "$@" | sed 's/ $//')" ] || fail "has '$found', not those of steps $*"
  [ "$(cat "$here/saves/latest")" = "$(printf 'step_%010d.h5' "${@: -1}")" ] || fail "latest is $(cat "$here/saves/latest")"
}
saved() { printf '%s/saves/step_%010d.h5' "$here" "$1"; }

# Steps count, not times of change.
begin clock
epochs 2 --set checkpoint.keep=3
touch -d '+10 minutes' "$(saved 8)"
touch -d '+20 minutes' "$(saved 16)"
epochs 3 --resume --set checkpoint.keep=1
expect_saves 24
epochs 4 --resume
expect_json /resumed_at 24
expect_saves 24 32

# A latest checkpoint that was removed.
begin dangling
epochs 3 --set checkpoint.keep=0
rm "$(saved 24)"
touch -d '+10 minutes' "$(saved 8)"
epochs 2 --resume
expect_json /resumed_at 16
expect_one_error "warning: saves/latest: names step_0000000024.h5, which is not a checkpoint in this directory; taking \
step_0000000016.h5, the newest one that is complete"
truncate -s 3000 "$(saved 16)"
epochs 2 --resume-if-present
expect_json /resumed_at 8
expect_saves 8 16
rm "$here"/saves/step_*
launch run "${tutorial[@]}" --resume-if-present
expect_code 1
expect_one_error "saves/latest: names step_0000000016.h5, which is not a checkpoint in this directory"

# Checkpoints after the step from which a run resumes belong to a branch that it has left. Its losses are not the smallest.
begin branch
validated=(--set data.validation_samples=64 --set training.patience=100)
epochs 4 "${validated[@]}" --set checkpoint.keep=0
worse=("${validated[@]}" --set training.learning_rate=0)
epochs 2 --resume "saves/step_0000000008.h5" "${worse[@]}" --set checkpoint.keep=4
expect_json /best_checkpoint saves/step_0000000008.h5
expect_json /resumed_at 8
[ "$(cat "$here/saves/latest")" = step_0000000016.h5 ] || fail "latest is $(cat "$here/saves/latest")"
# Those of the branch are the oldest: 16, 8 and two of them stay.
[ "$(cd "$here/saves" && echo step_*)" = "step_0000000008.h5 step_0000000016.h5 step_0000000024.h5 step_0000000032.h5" ] ||
  fail "has $(ls "$here/saves")"
# They stay those of the branch when the training has passed their steps.
epochs 5 --resume "${worse[@]}" --set checkpoint.every_steps=1000 --set checkpoint.keep=4
expect_json /best_checkpoint saves/step_0000000008.h5
epochs 6 --resume "${worse[@]}" --set checkpoint.keep=1
expect_saves 8 48

# What changes the numbers of a training is rejected.
begin other-training
epochs 1
saved=saves/step_0000000008.h5
for change in distributed.gradient_reduce_type=sum:'"mean"':'"sum"' numerics.reproducible=true:false:true \
  training.loss=mae:'"mse"':'"mae"'; do
  IFS=: read -r assignment then now <<< "$change"
  launch run "${tutorial[@]}" --resume "$saved" --set "$assignment"
  expect_code 1
  expect_one_error "$saved: was written with ${assignment%=*} = $then, but this run has $now"
done
begin other-grains
fixed=(--set numerics.reproducible=true)
epochs 1 "${fixed[@]}"
for grains in grains model_grains; do
  launch run "${tutorial[@]}" "${fixed[@]}" --resume --set numerics.$grains=2
  expect_code 1
  expect_one_error "$saved: was written with numerics.$grains = "
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
  grep -qxF "tessera: error: checkpoint.directory = $1: must be a directory that all ranks share; the file \`lock\` of \
rank 0 is not there on rank 1" "$err" || fail "another error"
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
    compgen -G "$here/shared/step_*.h5" > /dev/null && break
    sleep 0.01
  done
  ln -sfn ../other "$here/rank_1/saves"
) &
launch_apart run "${tutorial[@]}" --set training.num_epochs=1000000
wait
# The link may change between the check and the save.
if grep -q '^tessera: error: saves/step_[0-9]*.h5.unfinished: cannot be opened: No such file or directory$' "$err"; then
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
launch_apart run "$inputs/tutorial.toml" --resume "$saved"
expect_code 1
grep -qxF "tessera: error: $saved: has other contents on rank 1 than on rank 0" "$err" || fail "another error"
for rank in 0 1; do (cd "$here/rank_$rank" && "$program" checkpoint export "$saved" -o weights > /dev/null); done
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
