#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A link between hosts has the rate that was asked for, and calibrate measures it.
# usage: link_rate_test.sh HOSTS_SH TESSERA_BENCH LINK_RATE
hosts=$1 bench=$2 link_rate=$3
# shellcheck source=../app/script_support.sh
source "$(dirname "$0")/../app/script_support.sh"

# TCP leaves 1448 bytes of each 1514 to messages. The first 128 kB of 4 MB are not limited.
link=47800000

# expect_link_rate ARGUMENT...: launches the program until it has measured the rate of the link. Other work on the machine
# only lowers what is measured, so the best of five launches counts, and none may exceed the rate.
expect_link_rate() {
  local rate best=0
  for _ in 1 2 3 4 5; do
    rm -f "$here/machine.toml"
    launch "$@"
    expect_code 0
    rate=$(cat "$out")
    if [ "$program" = "$bench" ]; then
      rate=$(sed -n 's/^bytes_per_second = \([0-9.e+]*\) .*/\1/p' "$here/machine.toml" | tail -1)
    fi
    best=$(awk -v a="$best" -v b="$rate" 'BEGIN { printf "%.0f", (a > b ? a : b) }')
    if [ "$best" -ge $((link - link / 10)) ]; then break; fi
    echo "$name: $rate bytes a second, again"
  done
  expect_near "the rate of the link in bytes a second" "$best" $link $((link / 10))
}

begin slow-link
program=$link_rate launcher=("$hosts" 2 1 --rate 400mbit)
expect_link_rate
# The machine file has the rate of the link, with one rank at each end and with two ranks that share it.
program=$bench
for each in 1 2; do
  begin "calibrated-link-$each"
  launcher=("$hosts" 2 $each --rate 400mbit)
  expect_link_rate calibrate -o machine.toml --gemm-size 64
done
program=$link_rate
begin same-host
launcher=("$hosts" 1 2 --rate 400mbit)
launch
awk '{ exit !($1 > 100e6) }' "$out" || fail "$(cat "$out") bytes a second within a host"

conclude
