#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A machine file of the ranks of a launch, which simulate takes, and of which it has enough ranks.
# usage: calibrate_test.sh PROGRAM STUDY RANKS LAUNCHER...
program=$1 study=$2 ranks=$3
shift 3
launcher=("$@")
# shellcheck source=../../app/script_support.sh
source "$(dirname "$0")/../../app/script_support.sh"

begin machine
launch calibrate -o here.toml --gemm-size 64
expect_code 0
for key in name memory_bytes memory_bytes_per_second kernel_seconds overlap float32 float64 bfloat16 float16 \
  latency_seconds bytes_per_second; do
  grep -qE "^$key = (\"here\"|[0-9.e+-]+)( |\$)" "$here/here.toml" || fail "$key is missing: $(cat "$here/here.toml")"
done
[ "$(grep '^ranks = ' "$here/here.toml" | tail -1 | tr -dc 0-9)" = "$ranks" ] || fail "not of $ranks ranks"
"$program" simulate "$study" --machine "$here/here.toml" -o "$here/results" > "$out" || fail "cannot be simulated"
grep -q '^Simulated on machine here' "$out" || fail "simulated something else: $(head -1 "$out")"

# What is there is kept.
before=$(cksum < "$here/here.toml")
launch calibrate -o here.toml --gemm-size 64
expect_code 1
grep -q -- '-o = here.toml: exists' "$err" || fail "stderr: $(cat "$err")"
[ "$(cksum < "$here/here.toml")" = "$before" ] || fail "the file was changed"
launch calibrate -o none/here.toml --gemm-size 64
expect_code 1
launch calibrate -o other.toml --gemm-size 0
expect_code 1
expect_files here.toml results

launcher=()
begin one_rank
launch calibrate -o here.toml
expect_code 1
grep -q 'calibrate needs 2 ranks or more' "$err" || fail "stderr: $(cat "$err")"
expect_files

conclude
