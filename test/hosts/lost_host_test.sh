#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A host that vanishes ends the launch, and a study goes on from there; a slow link is as slow as it should be.
# usage: lost_host_test.sh HOSTS_SH TESSERA TESSERA_BENCH LINK_RATE INPUTS
hosts=$1 tessera=$2 bench=$3 link_rate=$4 inputs=$5
# shellcheck source=../app/script_support.sh
source "$(dirname "$0")/../app/script_support.sh"

expect_end() {
  [ "$code" -ne 0 ] || fail "exit code 0"
  [ "$code" -ne 124 ] || fail "the launch hung"
}

# How a host may vanish: all of its processes at once, or without a word.
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
  begun="grep -qs '\"running\"' results/cases/*/result.json"
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

# 4 MB in a third of a second; the first 128 kB are free. TCP leaves 1448 bytes of each 1514 to messages.
link=11950000
begin slow-link
program=$link_rate launcher=("$hosts" 2 1 --rate 100mbit)
launch
expect_code 0
expect_near "bytes a second" "$(cat "$out")" $link $((link / 10))
# The machine file has the rate of the link, with one rank at each end of it and with two that share it.
program=$bench
for each in 1 2; do
  begin "calibrated-link-$each"
  launcher=("$hosts" 2 $each --rate 100mbit)
  launch calibrate -o machine.toml --gemm-size 64
  expect_code 0
  expect_near "the rate of the link" "$(sed -n 's/^bytes_per_second = \([0-9.e+]*\) .*/\1/p' "$here/machine.toml" | tail -1)" \
    $link $((link / 10))
done
program=$link_rate
begin same-host
launcher=("$hosts" 1 2 --rate 100mbit)
launch
awk '{ exit !($1 > 100e6) }' "$out" || fail "$(cat "$out") bytes a second within a host"

conclude
