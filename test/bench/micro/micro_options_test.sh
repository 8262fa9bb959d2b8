#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tessera-micro on 2 ranks: its report, its own flags and those of Google Benchmark.
# usage: micro_options_test.sh PROGRAM JSON_GET LAUNCHER...
program=$1 json_get=$2
shift 2
launcher=("$@") several=("$@")
# shellcheck source=../../app/script_support.sh
source "$(dirname "$0")/../../app/script_support.sh"
small=(--iterations 2 --widths 4,4 --batch 2 --bytes 64)

# Rank 0 reports once, on the terminal and in the file. A wrong element on one rank is an error of its benchmark; the
# other benchmarks run.
begin output
ends_with 2 "${small[@]}" --benchmark_filter='tessera/broadcast|^gemm_bf|^gemm_f|empty_step' --inject-wrong 1 \
  --benchmark_out=out.json --benchmark_enable_random_interleaving=false
grep -q '^tessera: error: 1 benchmarks ended with an error' "$err" || fail "gives no reason"
expect_files out.json
[ "$(grep -c '^empty_step' "$out")" -eq 1 ] || fail "not one line: $(cat "$out")"
grep -q '^Run on ' "$err" || fail "does not say where it runs: $(cat "$err")"
grep -q $'\033' "$out" && fail "uses colours without a terminal"
expect_json /context/mesh data=2
for at in 0 1 2 3 4 5; do
  [[ $(json /benchmarks/$at/name) == gemm_* ]] || fail "benchmark $at is $(json /benchmarks/$at/name)"
  [[ $(json /benchmarks/$at/label) =~ ^(oneDNN|cuBLAS|emulated)$ ]] || fail "product $at has label $(json /benchmarks/$at/label)"
  json /benchmarks/$at/flops_per_second | grep -q '^[0-9]' || fail "product $at has no rate"
done
expect_json /benchmarks/6/iterations 2
expect_json /benchmarks/7/error_message '1 elements are wrong'
"$json_get" "$here/out.json" /benchmarks/8 > /dev/null 2>&1 && fail "more than one rank reported"

# Bad flags give one error line for all ranks.
mkfifo "$work/fifo"
for bad in --benchmark_fliter=x --benchmark_repetitions=many '--benchmark_filter=(' --benchmark_min_time=1 \
  --benchmark_min_warmup_time=1 --benchmark_enable_random_interleaving --mesh=data=7 --benchmark_out=missing/out.json \
  "--benchmark_out=$work/fifo" --benchmark_filter=no_such_benchmark --inject-wrong=2 --iterations=0 --batch=1.5 \
  BENCHMARK_MIN_WARMUP_TIME=1 BENCHMARK_OUT=missing/out.json; do
  begin "bad_${bad//\//_}"
  # Ranks have to agree on what one of them finds after MPI has started.
  launcher=()
  if [[ $bad =~ out|mesh|wrong ]]; then launcher=("${several[@]}"); fi
  if [[ $bad == --* ]]; then
    launch "${small[@]}" "$bad"
    flag=$(cut -d= -f1 <<< "${bad#--mesh=}")
  else
    export "${bad?}"
    launch "${small[@]}"
    unset "${bad%%=*}"
    flag=--$(tr '[:upper:]' '[:lower:]' <<< "${bad%%=*}")
  fi
  expect_code 1
  [ "$(grep -c '^tessera: error: ' "$err")" -eq 1 ] || fail "not one line"
  grep '^tessera: error: ' "$err" | grep -qF -- "$flag" || fail "stderr lacks '$flag'"
done

# Google Benchmark itself rejects what it knows, before MPI starts.
launcher=("${several[@]}")
begin bad_format
launch "${small[@]}" --benchmark_format=xml
grep -q 'benchmark_format=<console' "$out" || fail "does not print the flags"
grep -qi 'finalize\|abort' "$err" && fail "MPI had started: $(cat "$err")"

# The names of all benchmarks, which need no memory to be listed.
begin list
succeeds --benchmark_list_tests
expect_count() {
  local found
  found=$(grep -cE -- "$1" "$out")
  [ "$found" -eq "$2" ] || fail "$found names match '$1', expected $2"
}
expect_count '^empty_step' 1
expect_count '^gemm/forward/m:1024/n:4096/k:4096/' 1
for products in gemm gemm_tf32 gemm_bfloat16 gemm_float16; do expect_count "^$products/" 9; done
expect_count '^layer/.*/(forward|backward)/' 14
expect_count '^loss/' 2
expect_count '^optimizer/(sgd|adam)/n:25175040' 2
for operation in all_reduce reduce_scatter reduce_scatter_in_place all_gather broadcast all_to_all \
  ping_pong; do
  expect_count "^tessera/$operation/axis:data/bytes:1024/" 1
  expect_count "^tessera/$operation/axis:data/bytes:67108864/" 1
done

conclude
