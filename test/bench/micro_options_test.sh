#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What tessera-micro makes of Google Benchmark's options on several ranks.
# usage: micro_options_test.sh PROGRAM JSON_GET LAUNCHER...   (of 2 ranks)
program=$1 json_get=$2
shift 2
launcher=("$@")
# shellcheck source=../train/script_support.sh
source "$(dirname "$0")/../train/script_support.sh"
small=(--iterations 2 --widths 4,4 --batch 2 --bytes 64)

# One report, by rank 0, on the terminal and in the file.
begin output
launch "${small[@]}" --benchmark_filter=tessera/all_reduce --benchmark_out=out.json
expect_code 0
expect_files out.json
[ "$(grep -c '^tessera/all_reduce' "$out")" -eq 1 ] || fail "not one line: $(cat "$out")"
grep -q $'\033' "$out" && fail "colours where no terminal is"
expect_json /benchmarks/0/wrong 0.0
expect_json /benchmarks/0/iterations 2
expect_json /context/mesh data=2
"$json_get" "$here/out.json" /benchmarks/1 > /dev/null 2>&1 && fail "more than one rank reported"

begin interleaving
launch "${small[@]}" --benchmark_enable_random_interleaving=true
expect_code 1
grep -q 'is for one rank' "$err" || fail "no reason given"

begin no_match
launch "${small[@]}" --benchmark_filter=no_such_benchmark
expect_code 1
grep -q 'no benchmark has such a name' "$err" || fail "no reason given"

begin unknown
launch "${small[@]}" --benchmark_fliter=x
expect_code 1

begin list
launch "${small[@]}" --benchmark_list_tests
[ "$(grep -c '^empty_step' "$out")" -eq 1 ] || fail "listed by $(grep -c '^empty_step' "$out") ranks"

conclude
