#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A host that vanishes ends the launch, and the study can be resumed.
# usage: lost_host_test.sh HOSTS_SH TESSERA TESSERA_BENCH INPUTS
hosts=$1 tessera=$2 bench=$3 inputs=$4
# shellcheck source=../app/script_support.sh
source "$(dirname "$0")/../app/script_support.sh"

expect_end() {
  [ "$code" -ne 0 ] || fail "exit code 0"
  [ "$code" -ne 124 ] || fail "the launch hung"
}

# A host vanishes with all its processes, or its link goes down.
declare -A ways=([killed]='kill -KILL $h2' [cut-off]='ip link set h2 down')
for way in "${!ways[@]}"; do
  begin "training-$way"
  program=$tessera
  launcher=("$hosts" 2 2 --beside "until grep -q Training '$out'; do sleep 0.1; done; sleep 1; ${ways[$way]}")
  launch run "$inputs/tutorial.toml" --set training.num_epochs=100000000 --json out.json
  expect_end
  expect_files

  begin "study-$way"
  cp "$(dirname "$0")/../bench/run/small_study.toml" "$here/study.toml"
  program=$bench
  begun="grep -qs '\"begin\":\"data-data2' results/launches/*.journal"
  launcher=("$hosts" 2 1 --beside "until $begun; do sleep 0.1; done; sleep 1; ${ways[$way]}")
  launch run study.toml -o results --inject stall@1
  expect_end
  launcher=("$hosts" 2 1)
  launch run study.toml -o results --resume --give-up 1
  expect_code 5
  grep -q '^RESULT: FAIL 1 failed, 3 ok' "$out" || fail "did not go on: $(tail -1 "$out")"
  grep -qs 'its launch ended during the case' "$here"/results/cases/*/result.json || fail "gives no reason"
  launch run study.toml -o results --retry failed
  expect_code 0
  grep -q '^RESULT: PASS 4 ok' "$out" || fail "did not run it again: $(tail -1 "$out")"
done

conclude
