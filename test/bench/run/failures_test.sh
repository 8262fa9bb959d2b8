#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A study records cases that go wrong, and survives being killed.
# usage: failures_test.sh PROGRAM JSON_GET CHECK_RESULTS LAUNCHER...   (of 2 ranks)
program=$1 json_get=$2 check_results=$3
shift 3
launcher=("$@")
# shellcheck source=study_support.sh
source "$(dirname "$0")/study_support.sh"

# table: prints the columns that must not depend on interruptions of a study.
table() {
  awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i }
           { print $1, $column["status"], $column["ranks"], $column["global_batch"],
                   $column["loss_verdict"], $column["final_loss"], $column["planned_bytes"],
                   $column["measured_bytes"] }' "$here/results/cases.csv"
}

# One rank throws while the other waits for it: the case is recorded, and the other cases can run.
study throws
study_run --inject throw@1 --set limits.case_seconds=5.0 --case "$(id data-data2-b16)"
[ "$code" -ne 0 ] || fail "exit code 0"
expect_result FAIL
expect_reason failed 'rank 1: unexpected: thrown by --inject'
study_ends 1 --resume
expect_result FAIL
expect_statuses "1 failed 3 ok"
study_ends 0 --resume --retry failed
expect_result PASS
expect_statuses "4 ok"
grep -qs '"status":"failed"' "$here"/results/launches/*.journal || fail "the failed round is gone"

# The only rank of a case throws: no rank waits for it, and the launch continues.
study throws_alone
study_run --inject throw@0 --case "$(id data-data1-b16)"
expect_result FAIL
[ "$code" -ne 0 ] || fail "exit code 0"
expect_reason failed 'thrown by --inject'

# A fault on a rank that the launch does not have is rejected.
study no_such_rank
study_ends 1 --inject stall@2
grep -q -- '--inject = @2: the launch has ranks 0 to 1' "$err" || fail "stderr: $(cat "$err")"

# A rank stalls: the watchdog names it.
study stalls
study_ends 5 --inject stall@1 --set limits.case_seconds=4.0 --case "$(id data-data2-b16)"
expect_result FAIL
expect_reason timeout 'missing: rank 1'

# No rank waits for a rank that stalls alone: the time limit of the case ends it.
study stalls_alone
study_ends 5 --inject stall@0 --set limits.case_seconds=2.0 --case "$(id data-data1-b16)"
expect_result FAIL
expect_reason timeout 'warm-up: .*a case at .* has waited'

# A slow case ends by itself, and the study continues.
study slow
study_ends 4 --set training.num_epochs=1000000 --set limits.case_seconds=0.3
expect_statuses "4 timeout"
expect_reason timeout 'limit of 0.3 s'

# A launch removes its checkpoints, and leaves those of another launch of the case.
study checkpoints
printf '[checkpoint]\ndirectory = "saves"\n' >> "$here/study.toml"
case=$(id data-data2-b16)
mkdir -p "$here/saves/$case/other"
touch "$here/saves/$case/other/step_0000000001.safetensors"
study_ends 0 --case "$case"
[ "$(cd "$here/saves/$case" && find . -type f)" = ./other/step_0000000001.safetensors ] || fail "has $(find "$here/saves")"

# Training that diverges is invalid, not slow.
study diverges
study_ends 2 --set training.learning_rate=1e6 --set optimizer.kind=sgd --set training.num_epochs=20
expect_result INVALID
expect_statuses "4 invalid"
expect_reason invalid 'the loss of step [0-9]+ is not finite'
"$check_results" "$here/results" > "$here/check" || fail "$(cat "$here/check")"

# A loss outside the tolerance is invalid. Sums of floats in another order differ by more than 1e-30.
study tolerance
study_ends 2 --set verify.tolerance=1e-30
expect_reason invalid 'relative difference'

# A plan above the memory limit is "oom" without a run.
study memory
study_ends 0 --set limits.memory_bytes=4000
expect_result 'PASS 4 oom'
expect_statuses "4 oom"
expect_reason oom 'needs .* per rank, but the limit is 3.91 KiB'

# A failed allocation ends the case as "oom", and the study continues.
study out_of_memory
sed -i 's/^samples = 64/samples = 4_000_000_000_000/' "$here/study.toml"
study_ends 3
expect_result FAIL
expect_statuses "4 oom"
expect_reason oom 'out of memory'

# A launch that is too small runs the cases that fit, and reports PARTIAL.
study small_launch
several=("${launcher[@]}")
launcher=()
study_ends 77
expect_result PARTIAL
expect_statuses "2 ok 2 pending"
study_ends 0 --resume --dry-run
grep -q '0 of 4 cases would run' "$out" || fail "a dry run of one rank: $(cat "$out")"
launcher=("${several[@]}")
study_ends 0 --resume
expect_statuses "4 ok"
study_ends 1
grep -qF -- 'use --resume to continue' "$err" || fail "nothing says how to continue"

# With two launches per case, a case has the rounds of both, and a third launch runs nothing.
study launches
twice=(--set measure.launches=2)
study_ends 0 "${twice[@]}"
study_ends 0 "${twice[@]}" --resume
for result in "$here"/results/cases/*/result.json; do
  [ "$("$json_get" "$result" /launches)" = 2 ] || fail "$result was not measured by two launches"
  [ "$("$json_get" "$result" /rounds | grep -o '"at":' | wc -l)" -eq 4 ] || fail "$result has not the rounds of both"
done
"$check_results" "$here/results" > "$here/check" || fail "$(cat "$here/check")"
study_run "${twice[@]}" --resume
if grep -qE ' round [0-9]+/' "$err"; then fail "a third launch ran something"; fi

# rounds CASE: prints the number of its rounds.
rounds() { "$json_get" "$here/results/cases/$1/result.json" /rounds | grep -o '"at":' | wc -l; }
# begin_other ARGUMENT...: starts a launch of one rank, and waits until it has begun a round.
begin_other() {
  (cd "$here" && exec "$program" run study.toml --machine "$machine" -o results "${shared[@]}" "$@") > "$here/other.out" 2>&1 &
  job=$!
  until grep -qs '"begin":"data' "$here"/results/launches/*.journal; do
    kill -0 $job 2> /dev/null || { fail "the other launch ended: $(cat "$here/other.out")" && break; }
    sleep 0.02
  done
}
shared=(--set measure.warm_up=500000 --set limits.case_seconds=500.0)
small=$(id data-data1-b16)
launcher=()

# Two launches at once in one place, on the same case: it has the rounds of both, whichever ends last. One that would give
# the case up while the other runs it does no harm.
study same_case
begin_other --case "$small"
study_ends 0 "${shared[@]}" --resume --case "$small"
wait $job
[ "$(rounds "$small")" -eq 4 ] || fail "the case has $(rounds "$small") rounds of 4"
[ "$("$json_get" "$here/results/cases/$small/result.json" /launches)" = 2 ] || fail "not of two launches"
study given_up_at_once
begin_other --case "$small"
study_ends 5 "${shared[@]}" --resume --give-up 1 --case "$small"
expect_reason failed 'launches that ended during it: 1'
wait $job
expect_statuses "1 ok 3 pending"
[ "$(rounds "$small")" -eq 2 ] || fail "the case has $(rounds "$small") rounds of 2"

# A full disk ends the launch with one line, and nothing is lost. A limit on the size of files stands for it; Open MPI's own
# files would be longer without the variable.
study full
(cd "$here" && trap '' XFSZ && ulimit -f 12 && export PMIX_MCA_gds=hash && exec "$program" run study.toml --machine "$machine" -o results) > "$out" 2> "$err"
code=$?
[ $code -ne 0 ] || fail "wrote everything"
[ "$(grep -c '^tessera: error: .*: File too large$' "$err")" -eq 1 ] || fail "says $(cat "$err")"
study_ends 77 --resume
expect_statuses "2 ok 2 pending"

# Results need no locks. A line of which only a part was written, and results that are damaged, are written anew.
study torn
study_run --case "$small"
journal=$(ls "$here"/results/launches/*.journal)
size=$(stat -c %s "$journal")
truncate -s $((size - 10)) "$journal"
rm "$here/results/summary.json"
echo '{' > "$here/results/cases/$small/result.json"
study_run --resume --dry-run --case "$small"
grep -q "^$small.* run" "$out" || fail "the torn round does not count as begun: $(cat "$out")"
study_ends 0 --resume --case "$small"
expect_statuses "1 ok 3 pending"
[ "$(rounds "$small")" -eq 3 ] || fail "the case has $(rounds "$small") rounds of 3"

# The study may change between launches: measured cases that it no longer has stay, and others are left out.
study changed
study_run
sed -i 's/^global_batch = .*/global_batch = [16, 8]/' "$here/study.toml"
study_run --resume
expect_statuses "3 ok 2 pending"
[ "$(rounds "$small")" -eq 2 ] || fail "a case that stayed was run again"
sed -i 's/^global_batch = .*/global_batch = [16, 32]/' "$here/study.toml"
before=$(cat "$here"/results/launches/*.journal | grep -c '"end"')
study_run --resume
expect_statuses "3 ok 2 pending"
[ "$(cat "$here"/results/launches/*.journal | grep -c '"end"')" -eq "$before" ] || fail "something ran again"

launcher=("${several[@]}")

# Launches may run different ranks. Other settings would be another work under the same name.
study ranks
study_ends 0 --ranks 1
study_ends 0 --ranks 2 --resume --strategy zero1
expect_statuses "4 ok"
[ "$(cut -d, -f5,7,"$(head -1 "$here/results/cases.csv" | tr , '\n' | grep -nx baseline_ranks | cut -d: -f1)" \
  "$here/results/cases.csv" | sort -u | xargs)" = "data,1,1 strategy,ranks,baseline_ranks zero1,2,1" ] || fail "other cases"
cp -r "$here/results" "$here/before"
for set in model.widths=[8,32,1] data.samples=128; do
  study_ends 1 --ranks 2 --resume --set "$set"
  grep -q "^tessera: error: ${set%=*} = .*: must be .*, as in the results of results, or -o another directory$" "$err" ||
    fail "stderr: $(cat "$err")"
done
diff -r "$here/before" "$here/results" || fail "the results changed"

# A study that is killed at random points and resumed ends with the same table as an undisturbed one.
longer=(--set measure.warm_up=10000 --set limits.case_seconds=500.0)
study whole
begun=$(date +%s.%N)
study_run "${longer[@]}"
whole=$(awk -v a="$begun" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')
expect_code 0
expected=$(table)
study killed
attempt=0
begun_cases() { cat "$here"/results/launches/*.journal 2> /dev/null | grep -o '"begin":"data[^"]*"' | sort -u | wc -l; }
finished() {
  [ "$(cd "$here" && "$program" run study.toml -o results "${longer[@]}" --dry-run 2> /dev/null | grep -cE ' keep( |$)')" -eq 4 ]
}
until finished; do
  attempt=$((attempt + 1))
  [ $attempt -le 60 ] || { fail "not finished after 60 launches" && break; }
  (cd "$here" && exec setsid ${launcher[@]+"${launcher[@]}"} "$program" run study.toml --machine "$machine" -o results "${longer[@]}" --resume) \
    > "$out" 2> "$err" &
  job=$!
  # Kills the launch at a random time after one or two further cases have begun. Later launches live longer, so that the
  # study ends.
  target=$(($(begun_cases) + 1 + RANDOM % 2))
  while [ "$(begun_cases)" -lt $target ] && kill -0 $job 2> /dev/null && [ "$(begun_cases)" -lt 4 ]; do
    sleep 0.02
  done
  sleep "$(awk -v r=$RANDOM -v n=$attempt -v all="$whole" 'BEGIN { print all * n * r / 32768 / 20 }')"
  kill -KILL -- "-$job" 2> /dev/null
  wait $job 2> /dev/null
  for file in $(find "$here/results" -name '*.json' 2> /dev/null); do
    "$json_get" "$file" "" > /dev/null 2>&1 || fail "$file is no whole document"
  done
done
echo "finished after $attempt kills"
study_ends 0 "${longer[@]}" --resume
[ "$(table)" = "$expected" ] || fail "the tables differ: $(diff <(echo "$expected") <(table))"
[ "$(wc -l <<< "$expected")" -eq 5 ] || fail "not all cases are in the table"
"$check_results" "$here/results" > "$here/check" || fail "$(cat "$here/check")"

conclude
