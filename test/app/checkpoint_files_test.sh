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
export TESSERA_TIMEOUT_SECONDS=20
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
