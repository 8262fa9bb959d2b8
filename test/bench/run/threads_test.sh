#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Cases with one and with two threads per rank take a launch each, and have the same losses.
# usage: threads_test.sh PROGRAM JSON_GET CHECK_RESULTS LAUNCHER...   (of 2 ranks)
program=$1 json_get=$2 check_results=$3
shift 3
launcher=("$@")
# shellcheck source=../../app/script_support.sh
source "$(dirname "$0")/../../app/script_support.sh"

# study_run THREADS ARGUMENT...: runs a launch with so many threads per rank.
study_run() {
  export OMP_NUM_THREADS=$1
  shift
  launch run study.toml -o results "$@"
}
# expect_last PATTERN: checks the RESULT line.
expect_last() { tail -1 "$out" | grep -qE "^RESULT: $1" || fail "ended with '$(tail -1 "$out")', expected $1"; }

begin threads
sed 's/^global_batch = .*/global_batch = 16\nthreads = [1, 2]/' "$(dirname "$0")/small_study.toml" > "$here/study.toml"
study_run 1
expect_code 77
expect_last "PARTIAL 2 ok, 2 pending"
study_run 2 --resume
expect_code 0
expect_last "PASS 4 ok"
"$check_results" "$here/results" > "$here/check" || fail "$(cat "$here/check")"
for result in "$here"/results/cases/*/result.json; do
  document=$here/results/launches/$("$json_get" "$result" /launch).json
  threads=$("$json_get" "$result" /factors/distributed.threads)
  [ "$("$json_get" "$document" /provenance/kokkos/concurrency)" = "$threads" ] || fail "$result: not on $threads threads"
  [ "$("$json_get" "$result" /loss/verdict)" = equal ] || fail "$result: verdict $("$json_get" "$result" /loss/verdict)"
done
[ "$(find "$here/results/launches" -name '*.json' | wc -l)" -eq 2 ] || fail "not two launches"

conclude
