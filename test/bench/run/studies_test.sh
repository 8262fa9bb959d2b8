#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the small variant of a study of inputs/: every case passes, and the files are as described.
# usage: studies_test.sh PROGRAM CHECK_RESULTS STUDY LAUNCHER...
program=$1 check_results=$2 study=$3
shift 3
launcher=("$@")
# shellcheck source=../../app/script_support.sh
source "$(dirname "$0")/../../app/script_support.sh"

begin "$(basename "$study" .toml)"
# Most of the time of a small study goes into measuring the machine: one does, and those of types that the file leaves out.
machine=(--machine "$(dirname "$study")/machines/cpu_cluster.toml")
case $study in */quick_study.toml | */gpu_steps.toml | */precision.toml) machine=() ;; esac
succeeds run "$study" --small --trace --fom -o results ${machine[@]+"${machine[@]}"}
grep -qE '^RESULT: PASS ' "$out" || fail "the study did not pass: $(tail -20 "$out")"
[ "$(tail -1 "$out" | cut -d' ' -f1)" = RESULT: ] || fail "RESULT is not the last line"
"$check_results" "$here/results" || fail "the results are not as described"

# Every line that begins with FOM follows the grammar.
number='[-+]?([0-9]*\.)?[0-9]+([eE][-+]?[0-9]+)?'
wrong=$(grep '^FOM' "$out" | grep -vE "^FOM: [A-Za-z0-9_.-]+ $number [A-Za-z0-9_/%]+$")
[ -z "$wrong" ] || fail "figures of merit that nobody can read: $wrong"
[ "$(grep -c '^FOM: .*samples_per_second ' "$out")" -ge 2 ] || fail "hardly a figure of merit"
grep '^FOM' "$out" | cmp - "$here/results/figures_of_merit.txt" || fail "the file has other figures of merit"
wide=$(sed '/^speed and eff/,$d' "$out" | awk 'length > 100')
[ -z "$wide" ] || fail "lines wider than 100 columns: $wide"

# cases.csv has a row for each case.
[ "$(wc -l < "$here/results/cases.csv")" -eq "$(($(ls "$here/results/cases" | wc -l) + 1))" ] ||
  fail "cases.csv has $(wc -l < "$here/results/cases.csv") lines for $(ls "$here/results/cases" | wc -l) cases"
[ "$(head -1 "$here/results/steps.csv")" = id,round,step,seconds ] || fail "steps.csv has another header"
[ "$(find "$here/results" -name '*.partial-*' | wc -l)" -eq 0 ] || fail "temporary files are left"

# Every measured case has a trace with its steps.
for result in "$here"/results/cases/*/result.json; do
  grep -q '"status": "ok"' "$result" || continue
  grep -q '"name": *"step"' "$(dirname "$result")/trace.json" || fail "no trace beside $result"
done

# A second run runs nothing, and ends with the same result. One study shows it.
[[ $study == */quick_study.toml ]] || conclude
first=$(grep '^RESULT' "$out")
succeeds run "$study" --small -o results --resume
if grep -q '^FOM' "$out"; then fail "figures of merit without --fom"; fi
[ "$(grep '^RESULT' "$out")" = "$first" ] || fail "resumed: $(grep '^RESULT' "$out"), before: $first"
if grep -qE ' round [0-9]+/' "$err"; then fail "a finished study ran something again"; fi

conclude
