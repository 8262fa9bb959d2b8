#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tutorial end to end: its output, its files, and the published digits.
# usage: run_test.sh PROGRAM JSON_GET INPUTS RANKS LAUNCHER...
program=$1 json_get=$2 inputs=$3 ranks=$4
shift 4
launcher=("$@")
# shellcheck source=script_support.sh
source "$(dirname "$0")/script_support.sh"

begin tutorial
succeeds run "$inputs/tutorial.toml" --json out.json
expect_files out.json
[ ! -s "$err" ] || fail "wrote to stderr"
[ "$(grep -c RESULTS "$out")" -eq 1 ] || fail "the results were not printed once"
expect_line "Distributed Data-Parallel Training" "Kokkos backend: [A-Za-z]+" "Devices: +$ranks" "Model parameters: 385" \
  "Mesh shape: +\($ranks,\)" "Axis names: +\('data',\)" "Strategy: +data" "Training data: x=\(256, 4\), y=\(256, 1\)" \
  " +Devices used: +$ranks" " +Initial loss: +[0-9]+\.[0-9]{6}" " +Final loss: +[0-9]+\.[0-9]{6}" \
  " +Wall time: +[0-9.]+ (ns|us|ms|s)" " +Time per step: +[0-9.]+ (ns|us|ms|s)" " +Samples/s: +[0-9,]+" " +As planned: +yes.*"
[ "$(tail -n 1 "$out")" = "Distributed training complete!" ] || fail "the last line is '$(tail -n 1 "$out")'"
expect_near "the initial loss" "$(awk '/Initial loss/ {print $3}' "$out")" 20.304867 1.1e-5
expect_near "the final loss" "$(awk '/Final loss/ {print $3}' "$out")" 3.199372 1.1e-5

# The file has the same results and their provenance.
expect_json /schema_version 1 /parameters 385 /steps 160 /samples 5120 /as_planned true
expect_near initial_loss "$(json /initial_loss)" 20.304867 1e-5
expect_near final_loss "$(json /final_loss)" 3.199372 1e-5
expect_json /epoch_losses/0 "$(json /initial_loss)" /epoch_losses/19 "$(json /final_loss)"
expect_near "loss of epoch 10" "$(json /epoch_losses/9)" 7.131884 1e-5
"$json_get" "$here/out.json" /epoch_losses/20 > /dev/null 2>&1 && fail "more than 20 epochs"
expect_json /measured/traffic "$(json /planned/traffic)" /measured/device_bytes "$(json /planned/device_bytes)"
if [ "$ranks" -gt 1 ]; then
  expect_json /measured/traffic/0/calls 180 /measured/traffic/0/payload_bytes 247680
else
  expect_json /measured/traffic "[]"
fi
for key in /wall_seconds /stepping_seconds /seconds_per_step /samples_per_second; do
  awk -v v="$(json $key)" 'BEGIN { exit !(v > 0) }' || fail "$key is '$(json $key)'"
done
expect_json /config/model/widths "[4,64,1]" /config/distributed/mesh_shape "[$ranks]"
expect_json /config/distributed/world_size "$ranks" /provenance/world_size "$ranks"
json /provenance/placement | grep -qE "[\",-]$((ranks - 1))\"" || fail "rank $((ranks - 1)) is nowhere: $(json /provenance/placement)"
for key in version git_revision compiler cxx_flags kokkos/backend blas mpi/library; do
  [ -n "$(json "/provenance/$key")" ] || fail "provenance/$key is empty"
done

begin quiet
succeeds run "$inputs/tutorial.toml" --quiet --json out.json --check-collectives \
  --set training.num_epochs=2 --set distributed.overlap=true --set distributed.bucket_bytes=300
expect_silence
expect_files out.json
expect_near final_loss "$(json /final_loss)" 18.196810 1e-5

# Unseen samples in NumPy's format: a header of 128 bytes, then (10, 1, 4) and (10, 1, 1) floats.
begin export
succeeds run "$inputs/tutorial.toml" --json out.json --export arrays --set data.validation_samples=10 \
  --set training.validate_every=8 --set data.shuffle=true
expect_files arrays out.json
expect_line " +Validation loss: +[0-9]+\.[0-9]{6}"
expect_json /validation/samples 10 /validation/epochs "[8,16,20]"
[ "$(ls "$here/arrays" | xargs)" = "prediction.npy results.json x.npy y.npy" ] || fail "exported $(ls "$here/arrays")"
cmp "$here/out.json" "$here/arrays/results.json" || fail "the exported results differ"
[ "$(stat -c %s "$here"/arrays/*.npy | xargs)" = "168 288 168" ] || fail "arrays have other sizes"
grep -qaF "{'descr': '<f4', 'fortran_order': False, 'shape': (10, 1, 4,)}" "$here/arrays/x.npy" ||
  fail "x.npy begins with $(head -c 128 "$here/arrays/x.npy")"

if [ "$ranks" -eq 1 ]; then
  begin tf32
  succeeds run "$inputs/tutorial.toml" --set model.matmul_precision=tf32 --json out.json
  products=$(sed -n 's/^Precision: *tf32 (products: \(.*\))$/\1/p' "$out")
  expect_json /provenance/products "${products:-not printed}"
  begin no-export
  : > "$here/file"
  rejects "--export = file: must be a directory that exists or can be created" run "$inputs/tutorial.toml" --export file
  begin zero1
  succeeds run "$inputs/tutorial.toml" --set model.dtype=float64 --strategy zero1
  expect_line "Distributed Training" "Strategy: +zero1"
fi

# Exit code 2, one line, no results.
begin diverges
ends_with 2 run "$inputs/tutorial.toml" --json out.json --quiet --set optimizer.kind=sgd --set training.learning_rate=1e30
# Launchers add lines about failed processes; MPICH prints them to stdout between lines of "=".
[ "$(grep -c "training diverged: the loss of epoch 1" "$err")" -eq 1 ] ||
  fail "not one line says that training diverged"
! grep -q '^[^=]' "$out" || fail "printed results: $(grep '^[^=]' "$out")"
expect_files

conclude
