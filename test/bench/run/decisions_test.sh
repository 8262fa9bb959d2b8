#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A launch skips the cases that the list skips, and writes nothing before all input is checked.
# usage: decisions_test.sh PROGRAM CHECK_RESULTS INPUTS LAUNCHER...   (of 2 ranks)
program=$1 check_results=$2 inputs=$3
shift 3
launcher=("$@")
tests=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../../app/script_support.sh
source "$(dirname "$0")/../../app/script_support.sh"

# Most models lack the key model.transformer.blocks: the launch records their cases as skipped, and runs the others.
begin skipped
wrong=(--small --set model.transformer.blocks=1)
listed=$("$program" list "$inputs/models.toml" "${wrong[@]}" | grep -c ' skipped$')
succeeds run "$inputs/models.toml" "${wrong[@]}" -o results
[ "$listed" -eq 9 ] || fail "the list skips $listed cases"
[ "$(grep -l '"status": "skipped"' "$here"/results/cases/*/result.json | wc -l)" -eq "$listed" ] ||
  fail "the launch does not skip those of the list"
[ "$(grep -l '"status": "ok"' "$here"/results/cases/*/result.json | wc -l)" -eq 3 ] || fail "the others are not ok"
"$check_results" "$here/results" > "$here/check" || fail "$(cat "$here/check")"

# Errors come before anything is written, so that the corrected command starts anew.
begin refused
machine=$inputs/machines/gpu_cluster.toml
sed '/^\[\[network\]\]/,$d' "$machine" > "$here/one_rank.toml"
: > "$here/no_machine.toml"
for file in missing no_machine one_rank; do
  ends_with 1 run "$tests/small_study.toml" -o results --machine "$file.toml"
  grep -q '^tessera: error: ' "$err" || fail "no error with $file"
  expect_files no_machine.toml one_rank.toml
done
succeeds run "$tests/small_study.toml" -o results --machine "$machine"

conclude
