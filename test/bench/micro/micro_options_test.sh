#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What tessera-micro makes of Google Benchmark's options on several ranks.
# usage: micro_options_test.sh PROGRAM JSON_GET LAUNCHER...   (of 2 ranks)
program=$1 json_get=$2
shift 2
launcher=("$@")
# shellcheck source=../../app/script_support.sh
source "$(dirname "$0")/../../app/script_support.sh"
small=(--iterations 2 --widths 4,4 --batch 2 --bytes 64)

# One report, by rank 0, on the terminal and in the file.
begin output
launch "${small[@]}" --benchmark_filter=tessera/all_reduce --benchmark_out=out.json
expect_code 0
expect_files out.json
[ "$(grep -c '^tessera/all_reduce' "$out")" -eq 1 ] || fail "not one line: $(cat "$out")"
grep -q 'built as DEBUG' "$err" && fail "warns of what slows nothing down"
grep -q '^Run on ' "$err" || fail "leaves out where it runs: $(cat "$err")"
grep -q $'\033' "$out" && fail "colours where no terminal is"
expect_json /benchmarks/0/wrong 0.0
expect_json /benchmarks/0/iterations 2
expect_json /context/mesh data=2
"$json_get" "$here/out.json" /benchmarks/1 > /dev/null 2>&1 && fail "more than one rank reported"

# Products of 16 bits, and what multiplies them.
for type in bfloat16 float16; do
  begin "gemm_$type"
  launch "${small[@]}" --benchmark_filter="^gemm_$type/" --benchmark_out=out.json
  expect_code 0
  for at in 0 1 2; do
    label=$("$json_get" "$here/out.json" "/benchmarks/$at/label")
    [[ $label =~ ^(oneDNN|cuBLAS|emulated)$ ]] || fail "product $at is labelled '$label'"
    "$json_get" "$here/out.json" "/benchmarks/$at/flops_per_second" > /dev/null || fail "product $at has no rate"
  done
done

# expect_refusal PIECE: one line of the program itself; launchers add theirs.
expect_refusal() {
  expect_code 1
  [ "$(grep -c '^tessera: error: ' "$err")" -eq 1 ] || fail "not one line"
  grep '^tessera: error: ' "$err" | grep -qF -- "$1" || fail "stderr lacks '$1'"
  grep -qi 'improper\|usage' "$err" "$out" && fail "ended by Google Benchmark"
}

mkfifo "$work/fifo"
# What is bad is told once, and all ranks end alike.
for bad in --benchmark_fliter=x --benchmark_format=xml --benchmark_out_format=xml \
  --benchmark_color=blue --benchmark_repetitions=0 --benchmark_time_unit=year '--benchmark_filter=(' \
  --benchmark_min_time=1 --benchmark_min_warmup_time=1 --benchmark_list_tests=perhaps --mesh=data=7 \
  --benchmark_out=missing/out.json "--benchmark_out=$work/fifo" --benchmark_enable_random_interleaving \
  --benchmark_enable_random_interleaving=true --benchmark_filter=no_such_benchmark \
  --inject-wrong=2 --directory=/dev/null/x; do
  begin "bad_${bad//\//_}"
  launch "${small[@]}" "$bad"
  expect_refusal "$(cut -d= -f1 <<< "${bad#--mesh=}")"
done

# Variables count as flags do.
for variable in BENCHMARK_FORMAT=xml BENCHMARK_MIN_WARMUP_TIME=1 BENCHMARK_MIN_TIME=1 \
  BENCHMARK_ENABLE_RANDOM_INTERLEAVING=true; do
  begin "$variable"
  export "${variable?}"
  launch "${small[@]}" --benchmark_filter=empty_step
  unset "${variable%%=*}"
  expect_refusal "${variable##*=}"
done

begin no_interleaving
launch "${small[@]}" --benchmark_filter=empty_step --benchmark_enable_random_interleaving=false
expect_code 0
export BENCHMARK_ENABLE_RANDOM_INTERLEAVING=false
launch "${small[@]}" --benchmark_filter=empty_step
unset BENCHMARK_ENABLE_RANDOM_INTERLEAVING
expect_code 0

# A result that is wrong on one rank is one on all of them; what comes after it runs all the same.
begin wrong
launch "${small[@]}" --benchmark_filter='tessera/broadcast|empty_step' --inject-wrong 1 --benchmark_out=out.json
expect_code 2
grep -q '^tessera: error: 1 benchmarks ended with an error' "$err" || fail "no reason given"
expect_json /benchmarks/0/error_occurred true
expect_json /benchmarks/0/error_message '1 elements are wrong'
expect_json /benchmarks/1/iterations 2

# The names of all that is measured by default, and nothing of its memory.
begin list
launch --benchmark_list_tests
expect_code 0
expect_count() {
  local found
  found=$(grep -cE -- "$1" "$out")
  [ "$found" -eq "$2" ] || fail "$found names match '$1', expected $2"
}
expect_count '^empty_step' 1
expect_count '^communicator/axis:data/ranks:2/' 1
expect_count '^gemm/forward/m:1024/n:4096/k:4096/' 1
for products in gemm gemm_tf32 gemm_bfloat16 gemm_float16; do expect_count "^$products/" 9; done
expect_count '^(scores|modes)/(gemm|blas|kokkos_batched)/' 6
expect_count '^layer/.*/(forward|backward)/' 14
expect_count '^optimizer(_limit)?/adam/n:25175040' 2
for operation in all_reduce reduce_scatter reduce_scatter_in_place all_gather broadcast all_to_all \
  ping_pong; do
  expect_count "^(tessera|mpi)/$operation/axis:data/bytes:1024/" 2
  expect_count "^tessera/$operation/axis:data/bytes:67108864/" 1
done

conclude
