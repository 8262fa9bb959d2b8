#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# References are computed on one rank or on several, for all steps or some, or not at all.
# usage: references_test.sh PROGRAM JSON_GET LAUNCHER...   (of 3 ranks)
program=$1 json_get=$2
shift 2
launcher=("$@")
# shellcheck source=study_support.sh
source "$(dirname "$0")/study_support.sh"

# of_references POINTER: prints the distinct values of all references at this pointer.
of_references() {
  for file in "$here"/results/references/*.json; do "$json_get" "$file" "$1"; done | sort -u
}
expect_all() { [ "$(of_references "$1")" = "$2" ] || fail "$1 is '$(of_references "$1")', expected '$2'"; }

study one_rank
study_run
expect_code 0
expect_result 'PASS 4 ok'
expect_all /ranks 1
expect_all /asked_steps null
expect_all /trials '[]'
grep -qE '^references took .* of the launch' "$out" || fail "the cost of references is not told"
# Another launch that runs everything again computes no reference.
before=$(cat "$here"/results/references/*.json | cksum)
study_run --retry ok
expect_code 0
[ "$(cat "$here"/results/references/*.json | cksum)" = "$before" ] || fail "made again"

# Three ranks give the same losses; a trial compares them with one rank.
study three_ranks
study_run --set verify.ranks=3 --set verify.steps=3
expect_code 0
expect_result 'PASS 4 ok'
expect_all /ranks 3
expect_all /asked_steps 3
expect_all /seconds "$(of_references /seconds)"
expect_all /trials/0/ranks/0 1
expect_all /trials/0/ranks/1 3
for result in "$here"/results/cases/*/result.json; do
  [ "$("$json_get" "$result" /loss/steps)" = 3 ] || fail "compared $("$json_get" "$result" /loss/steps) steps"
  [ "$("$json_get" "$result" /loss/reference_ranks)" = 3 ] || fail "does not say on how many ranks"
  [ "$("$json_get" "$result" /loss/verdict)" = equal ] || fail "verdict $("$json_get" "$result" /loss/verdict)"
done
# A reference with too few steps is computed again.
study_run --set verify.ranks=3 --set verify.steps=4 --retry ok
expect_code 0
expect_all /asked_steps 4

# Ranks whose trial differs from one rank give no reference.
study wrong_trial
study_run --set verify.ranks=3 --set verify.tolerance=1e-15 --set optimizer.kind=sgd --set training.learning_rate=1e-5
expect_code 2
expect_result 'INVALID 4 invalid'
grep -q 'a trial on 3 ranks differs from that on 1: relative difference' "$out" || fail "no reason: $(cat "$out")"

study none
study_run --set verify=false
expect_code 0
expect_result 'UNVERIFIED 4 unverified'
[ ! -e "$here/results/references" ] || fail "references were made"
grep -q "^FOM: .*samples_per_second" "$here"/*/figures_of_merit.txt || fail "no speed"
study_run --resume --set verify=false
expect_result 'UNVERIFIED 4 unverified'
launch run study.toml -o other --set verify=perhaps
expect_code 1
grep -q 'verify = "perhaps"' "$err" || fail "stderr: $(cat "$err")"

# A launch that ended in a reference is counted; with --give-up, the reference is not tried again.
study lost
study_run --case nothing
expect_code 1
study_run
for file in "$here"/results/references/[0-9a-f]*.json; do echo '{"lost": 1}' > "$file"; done
study_run --retry ok --give-up 2
expect_code 0
expect_result 'PASS 4 ok'
for file in "$here"/results/references/[0-9a-f]*.json; do echo '{"lost": 1}' > "$file"; done
study_run --retry ok --give-up 1
expect_code 5
expect_result 'FAIL 4 failed'
grep -q 'launches ended while computing its reference' "$out" || fail "no reason given"
study_run --retry failed
expect_code 0
expect_files results study.toml

conclude
