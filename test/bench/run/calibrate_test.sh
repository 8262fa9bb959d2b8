#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# calibrate writes a machine file of the ranks of a launch; simulate and run predict by it.
# usage: calibrate_test.sh PROGRAM JSON_GET STUDY RANKS LAUNCHER...
program=$1 json_get=$2 study=$3 ranks=$4
shift 4
launcher=("$@")
# shellcheck source=../../app/script_support.sh
source "$(dirname "$0")/../../app/script_support.sh"

begin machine
succeeds calibrate -o here.toml --gemm-size 64
for key in name memory_bytes memory_bytes_per_second kernel_seconds function_seconds product_overlap overlap \
  float32 float64 bfloat16 float16 latency_seconds rendezvous_seconds bytes_per_second; do
  grep -qE "^$key = (\"here\"|[0-9.e+-]+)( |\$)" "$here/here.toml" || fail "$key is missing: $(cat "$here/here.toml")"
done
[ "$(grep -cE '^[0-9]+ = (0\.[0-9]+|1\.0)$' "$here/here.toml")" -ge 6 ] || fail "has no table of sides: $(cat "$here/here.toml")"
grep -qE '^device = "[cg]pu" ' "$here/here.toml" || fail "does not tell the device"
[ "$(grep '^ranks = ' "$here/here.toml" | tail -1 | tr -dc 0-9)" = "$ranks" ] || fail "not of $ranks ranks"
"$program" simulate "$study" --machine "$here/here.toml" -o "$here/results" > "$out" || fail "cannot be simulated"
grep -q '^Simulated on machine here' "$out" || fail "simulated something else: $(head -1 "$out")"

# An existing file is kept.
before=$(cksum < "$here/here.toml")
ends_with 1 calibrate -o here.toml --gemm-size 64
grep -q -- '-o = here.toml: exists' "$err" || fail "stderr: $(cat "$err")"
[ "$(cksum < "$here/here.toml")" = "$before" ] || fail "the file was changed"
ends_with 1 calibrate -o none/here.toml --gemm-size 64
ends_with 1 calibrate -o other.toml --gemm-size 0
expect_files here.toml results

# run predicts each case as simulate does, and names the machine.
begin given_machine
machine=$work/machine/here.toml
succeeds run "$study" --machine "$machine" -o results
count=0
for result in "$here"/results/cases/*/result.json; do
  count=$((count + 1))
  simulated=$work/machine/results/cases/$(basename "$(dirname "$result")")/result.json
  predicted=$("$json_get" "$result" /prediction/step_seconds)
  [ "$predicted" = "$("$json_get" "$simulated" /step_seconds/median)" ] || fail "$result predicts $predicted, unlike $simulated"
  [ "$("$json_get" "$result" /prediction/machine)" = here ] || fail "$result does not name the machine"
  [ "$("$json_get" "$result" /step_seconds/median)" != "$predicted" ] || fail "$result measured what was predicted"
done
[ $count -eq 4 ] || fail "$count results"
"$json_get" "$here"/results/launches/*.json /machines/0/file | grep -qF 'memory_bytes_per_second' ||
  fail "the launch has no machine file"
# A machine file with too few ranks for a case is rejected.
sed "s/^ranks = $ranks/ranks = 1/" "$machine" > "$here/small.toml"
ends_with 1 run "$study" --machine small.toml -o smaller
grep -qx 'tessera: error: mesh = data=2: needs 2 ranks; machine here has 1' "$err" || fail "stderr: $(cat "$err")"
[ ! -e "$here/smaller" ] || fail "results were written all the same"
ends_with 1 run "$study" --machine missing.toml -o smaller
grep -q '^tessera: error: missing.toml: cannot be read' "$err" || fail "stderr: $(cat "$err")"

# Without a file, run measures the machine with the ranks of each case; simulate takes the file that it kept.
begin measured_machine
succeeds run "$study" -o results
for n in 0 1; do
  [ "$("$json_get" "$here"/results/launches/*.json /machines/$n/machine)" = measured-2-ranks ] || continue
  "$json_get" "$here"/results/launches/*.json /machines/$n/file > "$here/measured.toml"
done
"$program" simulate "$study" --machine "$here/measured.toml" -o "$here/simulated" > "$out" || fail "cannot be simulated"
for case in "$here"/results/cases/data-data2-*; do
  [ "$("$json_get" "$case/result.json" /prediction/step_seconds)" = \
    "$("$json_get" "$here/simulated/cases/${case##*/}/result.json" /step_seconds/median)" ] || fail "$case is not predicted as simulated"
done

launcher=()
begin one_rank
ends_with 1 calibrate -o here.toml
grep -q 'calibrate needs 2 ranks or more' "$err" || fail "stderr: $(cat "$err")"
expect_files

conclude
