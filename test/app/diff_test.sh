#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Hashes of trainings on different meshes, and what `tessera diff` says of them.
# usage: diff_test.sh PROGRAM INPUTS LAUNCHER...
program=$1 inputs=$2
shift 2
several=("$@")
launcher=()
# shellcheck source=script_support.sh
source "$(dirname "$0")/script_support.sh"
begin diff
cd "$here" || exit 1

# train NAME RANKS OPTION...: trains on another number of ranks than the launcher's.
train() {
  local i
  launcher=("${several[@]}")
  for ((i = 0; i + 1 < ${#launcher[@]}; ++i)); do
    if [[ ${launcher[i]} == -n || ${launcher[i]} == -np ]]; then launcher[i + 1]=$2; fi
  done
  succeeds run "$inputs/transformer.toml" --quiet --set numerics.reproducible=true --set training.num_epochs=2 \
    --set data.samples=64 --set training.batch_size=32 --set model.transformer.vocabulary=32 --set output.hashes="$1" "${@:3}"
  launcher=()
}

# expect CODE TEXT FILE FILE: runs tessera diff
expect() {
  ends_with "$1" diff "$3" "$4"
  cat "$out" "$err" | grep -qF -- "$2" || fail "diff $3 $4 lacks '$2': $(cat "$out" "$err")"
}

OMP_NUM_THREADS=1 train one 1 --mesh data=1
[ "$(wc -l < one)" -eq 4 ] || fail "4 steps must have 4 records"
# Threads that share every kernel, as in other tests, would wait for cores tens of thousands of times.
TESSERA_SERIAL_BELOW=1024 OMP_NUM_THREADS=2 train threads 1 --mesh data=1
expect 0 "the same bits in 4 steps (1 to 4)" one threads
train tensor 2 --mesh model=2 --set distributed.sequence_parallel=true
expect 0 "the same bits" one tensor
train sharded 4 --mesh fsdp=2,model=2 --strategy fsdp --set distributed.reshard_after_forward=false
expect 0 "the same bits" one sharded
train pipeline 4 --mesh pipeline=2,data=2 --set training.microbatches=4 \
  --set distributed.schedule=zero_bubble --set output.hash_every_steps=2
expect 2 "the same bits in 2 steps (2 to 4); 2 steps, from 1 on, in one only" one pipeline

# Ranks that split experts hash all of them. At this rate no parameter changes.
for mesh in data expert; do
  train $mesh 2 --mesh $mesh=2 --strategy data --set numerics.reproducible=false --set model.transformer.experts=4 \
    --set training.learning_rate=1e-30
  grep -o '"block1/fc1/kernel":"[0-9a-f]*"' $mesh >kernel_by_$mesh
done
cmp kernel_by_data kernel_by_expert || fail "experts on one rank and on two must have one hash"

# A training that moves to another mesh leaves no trace.
train moved 2 --mesh data=2 --set checkpoint.directory=saves --set training.num_epochs=1
train moved 4 --mesh fsdp=4 --strategy fsdp --set checkpoint.directory=saves --resume
expect 0 "the same bits in 4 steps" one moved

# Another rate differs from the first step on, another last bit where it is.
train faster 1 --mesh data=1 --set training.learning_rate=0.1
expect 2 "step 1: embedding/table differs first" one faster
sed '3s/"loss":"./"loss":"x/' one >fault
expect 2 "step 3: loss differs first; 1 of " one fault
expect 2 "step 2, the one compared before, is equal" one fault
# A training that ended early is not the same, and names are counted once.
head -n 3 one >short
expect 2 "the same bits in 3 steps (1 to 3); 1 step, from 4 on, in one only" one short
expect 2 "the same bits in 3 steps (1 to 3); 1 step, from 4 on, in one only" short one
sed 's/"hashes":{/"hashes":{"a":"1","b.gradient":"2",/' one >more
names=$(head -n 1 one | grep -o '"[^"]*":"[0-9a-f]*"' | grep -cv '^"hash"')
expect 2 "step 1: b.gradient differs first; 2 of $((names + 2)) hashes differ: b.gradient, a" one more
expect 2 "; 2 of $((names + 2)) hashes differ: b.gradient, a" more one

# Wrong input
echo text >text
: >empty
expect 1 "text:1: is no record of output.hashes" one text
expect 1 "empty: has no records" one empty
expect 1 "missing: " one missing
expect 1 ":1: is no record of output.hashes" one "$(ls saves/*/step_* | tail -n 1)"

conclude
