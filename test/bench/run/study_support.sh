# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# Helpers of the tests that run test/bench/run/small_study.toml. Sourced after `program` is set.
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../app/script_support.sh
source "$tests/../../app/script_support.sh"
results=results  # the results directory in $here

# study NAME: begins a test with the small study in $here.
study() {
  begin "$1"
  cp "$tests/small_study.toml" "$here/study.toml"
}

# study_run ARGUMENTS...: runs it on a machine from a file, which saves the time to measure this one.
machine=$(cd "$tests/../../../inputs/machines" && pwd)/cpu_cluster.toml
study_run() { launch run study.toml -o results --machine "$machine" "$@"; }
# study_ends CODE ARGUMENTS...: runs it, and checks its exit code.
study_ends() {
  study_run "${@:2}"
  expect_code "$1"
}

# id CASE [OPTION...]: prints the whole id of a case of $here/study.toml.
id() { "$program" list "$here/study.toml" "${@:2}" | awk -v case="$1-" 'index($1, case) == 1 { print $1 }'; }

# statuses: prints the number of cases with each status: "3 ok 1 failed".
statuses() {
  tail -n +2 "$here/$results/cases.csv" | cut -d, -f3 | sort | uniq -c | awk '{ printf "%s%s %s", s, $1, $2; s = " " }'
}
expect_statuses() { [ "$(statuses)" = "$1" ] || fail "statuses '$(statuses)', expected '$1'"; }
# expect_result PATTERN: checks the beginning of the RESULT line.
expect_result() { tail -1 "$out" | grep -qE "^RESULT: $1" || fail "ended with '$(tail -1 "$out")', expected $1"; }
# expect_reason STATUS PATTERN: a case with this status has a reason that matches.
expect_reason() {
  grep -l "\"status\": \"$1\"" "$here"/results/cases/*/result.json | xargs grep -h '"reason"' | grep -qE -- "$2" ||
    fail "no $1 case has the reason $2"
}
