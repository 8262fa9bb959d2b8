#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run --trace: every rank, step, pass, layer and call is in the file, also after an error, and the plan still holds.
# usage: trace_test.sh PROGRAM PYTHON INPUTS LAUNCHER...   (4 ranks)
program=$1 python=$2 inputs=$3 json_get=
shift 3
launcher=("$@")
# shellcheck source=script_support.sh
source "$(dirname "$0")/script_support.sh"

# expect_trace STEPS NAME...: checks the format of trace.json, whose ranks each have these steps and names, and the bytes of
# calls if there is a plan.json.
expect_trace() {
  local steps=$1 plan=-
  shift
  [ ! -e "$here/plan.json" ] || plan=$here/plan.json
  "$python" -B "$(dirname "$0")/check_trace.py" "$here/trace.json" 4 "$steps" "$plan" "$@" > "$work/check" 2>&1 || fail "$(cat "$work/check")"
}

begin pipeline
succeeds run "$inputs/workshop_pipeline.toml" --trace trace.json --trace-steps 2:5 --json out.json
expect_files out.json trace.json
grep -q '"as_planned": true' "$here/out.json" || fail "the plan was not kept"
expect_trace 4 'pass F0' 'pass B0' update gemm
grep -q '"name":"send"' "$here/trace.json" || fail "no message between stages"

begin layers
succeeds run "$inputs/tutorial.toml" --quiet --trace trace.json --trace-steps 1:3 --strategy fsdp
expect_silence
expect_trace 3 'forward layer1/product' 'backward layer2/output' all_gather reduce_scatter

# A call tells its step, tensor or bucket, and payload, also if it is started first and finished later.
for overlap in true false; do
  begin overlap-$overlap
  tutorial=("$inputs/tutorial.toml" --strategy fsdp --mesh fsdp=2,model=2 --set distributed.overlap=$overlap)
  succeeds run "${tutorial[@]}" --quiet --trace trace.json --trace-steps 4:6
  (cd "$here" && "$program" plan "${tutorial[@]}" --calls --json plan.json) > "$out" || fail "has no plan"
  expect_trace 3
  for argument in '"step":4' '"step":6' '"tensor":"layer1"' '"tensor":"layer2"' '"axis":"model"'; do
    grep -qF "$argument" "$here/trace.json" || fail "no call has $argument"
  done
  grep -qF '"step":3' "$here/trace.json" && fail "has another step"
done

begin later_steps
succeeds run "$inputs/tutorial.toml" --quiet --trace trace.json
expect_trace 10
succeeds run "$inputs/tutorial.toml" --quiet --trace trace.json --trace-steps 158:999
expect_trace 3 all_reduce
succeeds run "$inputs/tutorial.toml" --quiet --trace trace.json --trace-steps 500:509
expect_one_error "trace.json: is empty, because the run ended before the steps of --trace-steps"
expect_trace 0

begin diverged
ends_with 2 run "$inputs/tutorial.toml" --quiet --trace trace.json --trace-steps 1:9 --set training.learning_rate=1e38 --set optimizer.kind=sgd
expect_trace 8 all_reduce

# Without a launcher, stderr has only our own line.
launcher=()
begin wrong_file
rejects "--trace = missing/trace.json" run "$inputs/tutorial.toml" --quiet --trace missing/trace.json

# A limit on the size of files stands for a full disk. Training goes on, and the results are there. Open MPI's own files
# would be longer without the variable.
begin disk-fills-up
(cd "$here" && trap '' XFSZ && ulimit -f 20 && export PMIX_MCA_gds="hash" && exec "$program" run "$inputs/tutorial.toml" --quiet \
  --trace trace.json --trace-steps 2:150 --json out.json) \
  2> "$err" | cat > "$out"
code=${PIPESTATUS[0]}
expect_code 1
expect_one_error "cannot write trace.json: File too large"
expect_files out.json
grep -q '"steps": 160' "$here/out.json" || fail "the training was cut short"

begin wrong_steps
for steps in 3:2 0:4 2:x 4; do
  rejects --trace-steps run "$inputs/tutorial.toml" --trace trace.json --trace-steps "$steps"
done
rejects "--trace-steps requires --trace" run "$inputs/tutorial.toml" --trace-steps 1:2
expect_files ""
conclude
