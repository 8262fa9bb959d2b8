#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Cases with one and with two threads per rank take a launch each, and have the same losses.
# usage: threads_test.sh PROGRAM JSON_GET CHECK_RESULTS LAUNCHER...   (of 2 ranks)
program=$1 json_get=$2 check_results=$3
shift 3
launcher=("$@")
# shellcheck source=study_support.sh
source "$(dirname "$0")/study_support.sh"

# with_threads NUMBER ARGUMENT...: runs a launch with so many threads per rank.
with_threads() {
  export OMP_NUM_THREADS=$1
  launch run study.toml -o results "${@:2}"
}
study threads
sed -i 's/^global_batch = .*/global_batch = 16\nthreads = [1, 2]/' "$here/study.toml"
with_threads 1
expect_code 77
expect_result "PARTIAL 2 ok, 2 pending"
with_threads 2 --resume
expect_code 0
expect_result "PASS 4 ok"
"$check_results" "$here/results" > "$here/check" || fail "$(cat "$here/check")"
for result in "$here"/results/cases/*/result.json; do
  document=$here/results/launches/$("$json_get" "$result" /launch).json
  threads=$("$json_get" "$result" /factors/distributed.threads)
  [ "$("$json_get" "$document" /provenance/kokkos/concurrency)" = "$threads" ] || fail "$result: not on $threads threads"
  [ "$("$json_get" "$result" /loss/verdict)" = equal ] || fail "$result: verdict $("$json_get" "$result" /loss/verdict)"
done
[ "$(find "$here/results/launches" -name '*.json' | wc -l)" -eq 2 ] || fail "not two launches"

conclude
