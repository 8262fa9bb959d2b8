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
succeeds plan "$inputs/tutorial.toml" --mesh data=3 --tensors --calls --json out.json
expect_files out.json
expect_line " +batch +batch/x +\(32, 4\) +P\('data', None\) +\(11, 4\) on ranks 0-1; \(10, 4\) on rank 2"
expect_line " +per step +data +all_reduce +1 call +1,540 B +gradients"
expect_json /mesh/shape "[3]" /collectives/0/payload_bytes 1540 /memory/1/ranks 2 /memory/1/bytes/total 13512

# If the nodes are given, a plan says which axes and calls cross them.
grep -q -i "nodes" "$out" && fail "speaks of nodes that nobody gave"
expect_json /nodes null
begin plan-of-nodes
succeeds plan "$inputs/hybrid.toml" --mesh data=nodes,fsdp=per_node --set distributed.num_nodes=3 \
  --set distributed.num_processes_per_node=2 --calls --json out.json
expect_line "Nodes: 3 with 2 ranks each; fsdp stays inside a node, data crosses nodes"
expect_line " +per step +data +all_reduce .*, across nodes"
grep -qE "^ +per step +fsdp .*across" "$out" && fail "calls along fsdp cross nodes"
expect_json /nodes/across '["data"]' /nodes/count 3

# By default a plan is one screen, also of a large model. The flags add the other parts.
begin plan-of-a-large-model
succeeds plan "$inputs/transformer_large.toml" --ranks 40 --machine "$inputs/machines/gpu_cluster.toml" --json out.json
[ "$(wc -l < "$out")" -le 50 ] || fail "prints $(wc -l < "$out") lines"
[ "$(wc -c < "$here/out.json")" -le 20000 ] || fail "writes $(wc -c < "$here/out.json") bytes"
for flag in --tensors --calls --schedule "--timeline x"; do
  # shellcheck disable=SC2086 # words
  succeeds plan "$inputs/tutorial.toml" $flag
  # shellcheck disable=SC2086 # words
  rejects "--advise compares plans and takes no" plan "$inputs/tutorial.toml" --advise $flag
done

# The stages of a pipeline need different memory; the timeline is that of the rank that needs most, or of the one asked for.
begin plan-timeline
pipeline=(plan "$inputs/transformer.toml" --mesh pipeline=2,model=2 --set training.microbatches=4)
succeeds "${pipeline[@]}" --json plan.json --timeline out.json
expect_files out.json plan.json
most=$(grep -oP '"total": \K[0-9]+' "$here/plan.json" | sort -n | tail -1)
expect_json /memory/total "$most" /rank 0 /mesh pipeline=2,model=2 /peak/tensors/0/role activation
expect_line "Peak on rank 0: [0-9.]+ [KM]iB of [0-9.]+ [KM]iB in use, in [a-z]+\(.*, m[0-3]\)"
succeeds "${pipeline[@]}" --timeline out.json --timeline-rank 3
expect_json /rank 3
for rank in -1 4; do rejects "--timeline-rank = $rank: must be 0 to 3" "${pipeline[@]}" --timeline out.json --timeline-rank $rank; done
rejects "--timeline-rank requires --timeline" "${pipeline[@]}" --timeline-rank 1

begin plan-of-many
succeeds plan "$inputs/large.toml" --mesh data=100000 --set training.batch_size=200000 \
  --set data.samples=2000000 --tensors
grep -qF "(100000 ranks)" "$out" || fail "does not plan 100000 ranks"

# A plan for a machine does not depend on this build: launches, scratch memory and products are those of its device.
# Scratch memory holds three blocks of 1,024 x 1,024 scores, and 64 columns of queries, keys and values, for 16 heads at once.
begin plan-for-a-gpu
succeeds plan "$inputs/transformer_large.toml" --mesh data=64 --strategy data --json out.json \
  --set model.transformer.blocks=2 --set training.microbatches=4 --machine "$inputs/machines/gpu_cluster.toml"
[ "$(head -1 "$out")" = "Plan for machine gpu_cluster, device gpu" ] || fail "begins with $(head -1 "$out")"
expect_json /device gpu /emulates_products false
expect_json /memory/0/bytes/scratch $((4 * 16 * (3 * 1024 * 1024 + 3 * 1024 * 64)))
grep -q "launches of kernels" "$out" || fail "has no row for launches"
expect_line "  all_reduce on data .* % +[0-9]+ x [0-9.]+ [mu]s" "[0-9.]+ TFLOP/s per rank: MFU [0-9.]+ % of the 700 TFLOP/s that products reach"
expect_json /predicted/calls/0/operation all_reduce /predicted/software/attention fused

# A vendor's peak, and facts about another program.
{ cat "$inputs/machines/gpu_cluster.toml"
  printf '[machine.peak_flops_per_second]\nbfloat16 = 9.89e14\n[software]\nattention = "scores_in_memory"\n'; } > "$here/other.toml"
succeeds plan "$inputs/transformer_large.toml" --mesh data=64 --strategy data --json out.json --machine other.toml
expect_line "[0-9.]+ TFLOP/s per rank: MFU [0-9.]+ % of the vendor's 989 TFLOP/s, [0-9.]+ % of the 700 TFLOP/s that products reach" \
  "Seconds of another program than Tessera: attention = scores_in_memory"

begin plan-for-this-build
succeeds plan "$inputs/tutorial.toml"
expect_line "Plan for the device of this build, [cg]pu; --machine FILE plans for a machine"

begin plan-launched
launcher=("${several[@]}")
succeeds plan "$inputs/tutorial.toml" --mesh data=3 --tensors --calls --json out.json
launcher=()
cmp -s "$out" "$work/plan.out" || fail "$ranks processes print another plan, or more than once"
cmp -s "$here/out.json" "$work/plan/out.json" || fail "$ranks processes write another plan"

begin info
succeeds info
for key in version git_revision build_type compiler cxx_flags kokkos.version kokkos_kernels.version blas mpi.library \
  cuda_version nccl_version hdf5_version world_size nodes rank.host rank.cpu_model rank.gpu; do
  expect_line "$key: +[^ ].*"
done

begin info-launched
launcher=("${several[@]}")
launch info
launcher=()
expect_line "world_size: +$ranks"
[ "$(grep -c '^version:' "$out")" -eq 1 ] || fail "was printed more than once"

# One process as rank 5 of 128. The plan of a rank without samples is executed, too.
begin one-of-many
rank5=(run "$inputs/transformer.toml" --mesh data=16,fsdp=4,model=2 --as-rank 5
  --set data.validation_samples=0)
succeeds "${rank5[@]}" --set training.num_epochs=2 --set output.metrics=m.jsonl --trace trace.json --json out.json
expect_line "One process:  as rank 5; what others would send is made up, so losses are meaningless" "Devices: +128" \
  " +Devices used: +1, as rank 5 of 128" " +Final loss: +[0-9.]+ \(meaningless\)" " +As planned: +yes.*"
expect_json /as_rank 5 /losses_are_meaningless true /provenance/message_backend "mpi (unused: one process as rank 5 of 128)" \
  /measured/traffic "$(json /planned/traffic)" /measured/device_bytes "$(json /planned/device_bytes)" /nodes null
grep -q '"meaningless_loss":' "$here/m.jsonl" || fail "metrics have no meaningless_loss"
grep -q '"loss":' "$here/m.jsonl" && fail "metrics have a loss"
grep -q '"rank 5' "$here/trace.json" || fail "the trace is not that of rank 5"
rejects "--as-rank = 128: must be 0 to 127" "${rank5[@]:0:4}" --as-rank 128
for key in checkpoint.directory=saves output.hashes=h data.validation_samples=8 training.check_replicas_every=1 \
  distributed.backend=mpi; do
  rejects "--as-rank = 5: sends nothing, and has nothing to load, save or compare; unset ${key%=*}" "${rank5[@]}" --set "$key"
done
for flag in "--export x" --resume --resume-if-present; do
  # shellcheck disable=SC2086 # words
  rejects "--as-rank excludes ${flag%% *}" "${rank5[@]}" $flag
done
if [ "$ranks" -gt 1 ]; then
  launcher=("${several[@]}")
  launch "${rank5[@]}"
  launcher=()
  expect_code 1
  grep -qF -- "--as-rank = 5: needs one process, but this launch has $ranks" "$err" || fail "was not rejected"
fi

# The output of --print-config is a file with the same training.
begin round-trip
changed=("$inputs/tutorial.toml" --set training.num_epochs=3 --set schedule.kind=cosine --set schedule.steps=24)
succeeds run "${changed[@]}" --json out.json
expected=$(json /epoch_losses)
succeeds run "${changed[@]}" --set distributed.mesh_rules.mlp=model \
  --set "distributed.parameter_specs.\"layer1/kernel\"=\"P(None, None)\"" --print-config
cp "$out" "$work/printed.toml"
expect_line 'parameter_specs = {"layer1/kernel" = "P\(None, None\)"} .*'
succeeds run "$work/printed.toml" --json out.json
expect_json /epoch_losses "$expected"

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
wait_until grep "Training\.\.\." "$out"
sleep 0.2
kill -KILL $victim || fail "did not train"
wait $victim 2> /dev/null
expect_files

conclude
