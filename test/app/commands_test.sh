#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# plan, info, --print-config, and output that cannot be written.
# usage: commands_test.sh PROGRAM JSON_GET INPUTS RANKS LAUNCHER...
program=$1 json_get=$2 inputs=$3 ranks=$4
shift 4
several=("$@")
launcher=()
# shellcheck source=script_support.sh
source "$(dirname "$0")/script_support.sh"

begin plan
launch plan "$inputs/tutorial.toml" --mesh data=3 --tensors --calls --json out.json
expect_code 0
expect_files out.json
expect_line "Mesh data=3 \(3 ranks\), strategy data"
expect_line " +rank \| +0 +1 +2"
expect_line " +batch +batch/x +\(32, 4\) +P\('data', None\) +\(11, 4\) on ranks 0-1; \(10, 4\) on rank 2"
expect_line " +parameter +layer1/kernel +\(4, 64\) +P\(.*\) +\(4, 64\) on every rank"
expect_line " +moment +layer2/bias.moment2 .*on every rank"
expect_line " +per step +data +all_reduce +1 call +1,540 B +gradients"
expect_line " +activations +5,680 B"
expect_json /mesh/shape "[3]"
expect_json /collectives/0/payload_bytes 1540
expect_json /memory/1/ranks 2
expect_json /memory/1/bytes/total 13512

# If the nodes are given, a plan says which axes and calls cross them.
grep -q -i "nodes" "$out" && fail "speaks of nodes that nobody gave"
expect_json /nodes null
begin plan-of-nodes
launch plan "$inputs/hybrid.toml" --mesh data=nodes,fsdp=per_node --set distributed.num_nodes=3 \
  --set distributed.num_processes_per_node=2 --calls --json out.json
expect_code 0
expect_line "Mesh data=3,fsdp=2 \(6 ranks\), strategy hybrid"
expect_line "Nodes: 3 with 2 ranks each; fsdp stays inside a node, data crosses nodes"
expect_line " +per step +data +all_reduce .*, across nodes"
grep -qE "^ +per step +fsdp .*across" "$out" && fail "calls along fsdp cross nodes"
expect_json /nodes/across '["data"]'
expect_json /nodes/count 3
begin plan-without-nodes
launch plan "$inputs/hybrid.toml" --mesh data=nodes,fsdp=2
expect_code 1
expect_one_error 'distributed.mesh_shape = ["nodes", 2]'

# By default a plan is one screen, also of a large model. The flags add the other parts.
begin plan-of-a-large-model
launch plan "$inputs/transformer_large.toml" --ranks 40 --machine "$inputs/machines/gpu_cluster.toml" --json out.json
expect_code 0
[ "$(wc -l < "$out")" -le 50 ] || fail "prints $(wc -l < "$out") lines"
[ "$(wc -c < "$here/out.json")" -le 20000 ] || fail "writes $(wc -c < "$here/out.json") bytes"
expect_line "1,478,019,200 parameters .*"
expect_line "  ranks? .* needs? most: .* GiB"
expect_line "  fsdp +all_gather +.* B"
for flag in --tensors --calls --schedule; do
  launch plan "$inputs/tutorial.toml" $flag
  expect_code 0
  launch plan "$inputs/tutorial.toml" --advise --machine "$inputs/machines/cpu_cluster.toml" $flag
  expect_code 1
  expect_one_error "--advise compares plans and takes no"
done

begin plan-of-many
launch plan "$inputs/large.toml" --mesh data=100000 --set training.batch_size=200000 \
  --set data.samples=2000000 --tensors
expect_code 0
grep -qF "(100000 ranks)" "$out" || fail "does not plan 100000 ranks"

# A plan for a machine does not depend on this build: launches, scratch memory and products are those of its device.
# Scratch memory holds three blocks of 1,024 x 1,024 scores, and 64 columns of queries, keys and values, for 16 heads at once.
begin plan-for-a-gpu
launch plan "$inputs/transformer_large.toml" --mesh data=64 --strategy data --json out.json \
  --set model.transformer.blocks=2 --set training.microbatches=4 --machine "$inputs/machines/gpu_cluster.toml"
expect_code 0
[ "$(head -1 "$out")" = "Plan for machine gpu_cluster, device gpu" ] || fail "begins with $(head -1 "$out")"
expect_json /device gpu
expect_json /emulates_products false
expect_json /memory/0/bytes/scratch $((4 * 16 * (3 * 1024 * 1024 + 3 * 1024 * 64)))
grep -q "launches of kernels" "$out" || fail "has no row for launches"
begin plan-for-this-build
launch plan "$inputs/tutorial.toml"
grep -qx "Plan for the device of this build, [cg]pu; --machine FILE plans for a machine" "$out" || fail "names no device"

begin plan-launched
launcher=("${several[@]}")
launch plan "$inputs/tutorial.toml" --mesh data=3 --tensors --calls --json out.json
launcher=()
expect_code 0
cmp -s "$out" "$work/plan.out" || fail "$ranks processes print another plan, or more than once"
cmp -s "$here/out.json" "$work/plan/out.json" || fail "$ranks processes write another plan"

begin info
launch info
expect_code 0
for key in version "git revision" build compiler flags Kokkos "Kokkos Kernels" BLAS MPI "MPI thread level" \
  CUDA NCCL HDF5 ranks nodes host processor GPU; do
  expect_line "$key: +[^ ].*"
done

begin info-launched
launcher=("${several[@]}")
launch info
launcher=()
expect_line "ranks: +$ranks"
[ "$(grep -c '^version:' "$out")" -eq 1 ] || fail "was printed more than once"

# The output of --print-config is a file with the same training.
begin round-trip
launch run "$inputs/tutorial.toml" --set training.num_epochs=3 --set schedule.kind=cosine \
  --set schedule.steps=24 --set model.activation=gelu --json out.json
expected=$(json /epoch_losses)
launch run "$inputs/tutorial.toml" --set training.num_epochs=3 --set schedule.kind=cosine \
  --set schedule.steps=24 --set model.activation=gelu --set distributed.mesh_rules.mlp=model \
  --set "distributed.parameter_specs.\"layer1/kernel\"=\"P(None, None)\"" --print-config
expect_code 0
cp "$out" "$work/printed.toml"
grep -qF "parameter_specs = {\"layer1/kernel\" = \"P(None, None)\"}" "$out" || fail "prints no table"
launch run "$work/printed.toml" --json out.json
expect_code 0
expect_json /epoch_losses "$expected"

# A limit on the size of files stands for a full disk. The old file stays.
begin disk-fills-up
echo '"old"' > "$here/out.json"
# The limit does not apply to a pipe.
(cd "$here" && trap '' XFSZ && ulimit -f 1 && exec "$program" plan "$inputs/tutorial.toml" --tensors --json out.json) \
  2> "$err" | cat > "$out"
code=${PIPESTATUS[0]}
expect_code 1
expect_one_error "cannot write out.json: File too large"
expect_files out.json
expect_json "" old

# Output that cannot be printed is an error. Files are written nevertheless.
begin closed-output
(cd "$here" && "$program" run "$inputs/tutorial.toml" --json out.json --quiet <&- >&- 2>&-)
code=$?
expect_code 0
expect_json /steps 160
(cd "$here" && "$program" plan "$inputs/tutorial.toml" >&-) 2> "$err"
code=$?
expect_code 1
expect_one_error "cannot write to standard output: Bad file descriptor"
begin reader-leaves
(cd "$here" && "$program" run "$inputs/tutorial.toml" --json out.json --set training.num_epochs=20000) \
  2> "$err" | head -1 > "$out"
expect_one_error "cannot write to standard output: Broken pipe"
expect_json /steps 160000

# A killed run leaves no file.
begin killed
(cd "$here" && exec "$program" run "$inputs/tutorial.toml" --json out.json --set training.num_epochs=100000000) \
  > "$out" 2> "$err" &
victim=$!
for _ in $(seq 100); do
  grep -q "Training\.\.\." "$out" && break
  sleep 0.1
done
grep -q "Training\.\.\." "$out" || fail "did not begin to train"
sleep 0.2
kill -KILL $victim
wait $victim 2> /dev/null
expect_files

conclude
