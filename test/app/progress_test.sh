#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a run shows and writes while it trains.
# usage: progress_test.sh PROGRAM JSON_GET INPUTS RANKS LAUNCHER...
program=$1 json_get=$2 inputs=$3
shift 4
launcher=("$@")
# shellcheck source=script_support.sh
source "$(dirname "$0")/script_support.sh"

# Long enough for a line, which comes after 0.3 s.
begin line
succeeds run "$inputs/tutorial.toml" --set training.num_epochs=20000 --progress line
# The width is that of a terminal of 80 columns.
tr '\r' '\n' < "$err" | grep -qE "^step [0-9,]+/160,000 \([0-9:]+ left\)  epoch [0-9,]+/20,000  loss [0-9.e-]+  gr" ||
  fail "no line of progress"

begin none
succeeds run "$inputs/tutorial.toml"
[ ! -s "$err" ] || fail "wrote to stderr with TESSERA_PROGRESS=none"

begin unknown
rejects "--progress = dots: must be one of auto, line, log, none" run "$inputs/tutorial.toml" --progress dots

begin metrics
succeeds run "$inputs/tutorial.toml" --set output.metrics=m.jsonl --set output.tensorboard=events
[ "$(wc -l < "$here/m.jsonl")" -eq 20 ] || fail "not one record per epoch"
ls "$here"/events/events.out.tfevents.* > /dev/null || fail "no event file"
grep -qE '"seconds_per_step":[0-9.e-]+,"samples_per_second":[0-9.e+]+,"flops_per_second":[0-9.e+]+}$' "$here/m.jsonl" ||
  fail "speed: $(tail -1 "$here/m.jsonl")"

# A machine of the devices of this build.
device=$("$program" plan "$inputs/tutorial.toml" | sed -n 's/^Plan for the device of this build, \([a-z]*\);.*/\1/p')
sed "s/^device = .*/device = \"$device\"/" "$inputs/machines/cpu_cluster.toml" > "$work/machine.toml"

# A transformer counts tokens, and a machine file gives the rate to which MFU refers. TensorBoard groups tags.
begin tokens
succeeds run "$inputs/transformer.toml" --set output.metrics=m.jsonl --set output.tensorboard=events --set training.num_epochs=1 \
  --set data.samples=64 --machine "$work/machine.toml" --progress log
last=$(grep '"loss"' "$here/m.jsonl" | tail -1)
value() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" <<< "$last"; }
expect_near tokens_per_second "$(value tokens_per_second)" \
  "$(awk -v s="$(value samples_per_second)" 'BEGIN { print 31 * s }')" "$(awk -v s="$(value samples_per_second)" 'BEGIN { print s / 1e3 }')"
expect_near mfu "$(value mfu)" "$(awk -v f="$(value flops_per_second)" 'BEGIN { printf "%.9f", f / 1e12 }')" 1e-6
for tag in loss/loss loss/validation_loss optimizer/gradient_norm optimizer/learning_rate speed/seconds_per_step \
  speed/samples_per_second speed/tokens_per_second speed/mfu; do
  grep -qaF "$tag" "$here"/events/events.out.tfevents.* || fail "TensorBoard lacks the tag $tag"
done

# With --quiet, metrics are the only place for it.
begin quiet-machine
quiet=("$inputs/tutorial.toml" --set training.num_epochs=1 --quiet --machine "$work/machine.toml")
succeeds run "${quiet[@]}" --set output.metrics=m.jsonl
grep -q '"mfu":' "$here/m.jsonl" || fail "no MFU: $(cat "$here/m.jsonl")"
rejects "--machine adds the MFU to progress lines, output.metrics and output.tensorboard; " run "${quiet[@]}"

# A run that cannot begin leaves the metrics of the last one.
begin kept
succeeds run "$inputs/tutorial.toml" --quiet --set output.metrics=m.jsonl
before=$(sha256sum < "$here/m.jsonl")
: > "$here/file"
rejects "output.tensorboard = file: cannot be created: Not a directory" run "$inputs/tutorial.toml" --quiet \
  --set output.metrics=m.jsonl --set output.tensorboard=file
mkdir "$here/events"
(
  exec 9> "$here/events/.lock"
  flock 9
  rejects "output.tensorboard = events: cannot be used: events/.lock: another run writes to it" run "$inputs/tutorial.toml" \
    --quiet --set output.metrics=m.jsonl --set output.tensorboard=events
  exit "$failures"
) || failures=$((failures + 1))
[ "$(sha256sum < "$here/m.jsonl")" = "$before" ] || fail "the metrics changed"

# The machine file is read for the device and the threads of the run.
other=$([ "$device" = cpu ] && echo gpu || echo cpu)
rejects "the plan is for a $device, but machine ${other}_cluster has the device $other" run "$inputs/tutorial.toml" \
  --machine "$inputs/machines/${other}_cluster.toml"
sed 's/^\[machine\]/&\nthreads = 1/' "$work/machine.toml" > "$here/one.toml"
rejects "distributed.threads = 2: machine cpu_cluster describes ranks of 1 threads" run "$inputs/tutorial.toml" \
  --machine one.toml --set distributed.threads=2

begin no-place
rejects "output.metrics = /dev/full: must be a regular file, not a device" run "$inputs/tutorial.toml" \
  --set output.metrics=/dev/full

conclude
