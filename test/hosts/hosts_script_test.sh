#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# hosts.sh separates hosts from each other, and leaves nothing behind, however it ends.
# usage: hosts_script_test.sh HOSTS_SH
hosts=$1
# shellcheck source=../app/script_support.sh
source "$(dirname "$0")/../app/script_support.sh"
launcher=() program=$hosts

# on N RANKS_EACH [OPTIONS] SCRIPT: runs the bash SCRIPT on every rank.
on() {
  launch "${@:1:$#-1}" bash -c "${!#}"
}
sorted() { sort "$out" | xargs; }
expect_sorted() { [ "$(sorted)" = "$1" ] || fail "printed '$(sorted)', expected '$1'"; }

begin apart
mark=hosts_test.$$
on 3 2 "touch /dev/shm/$mark.\$OMPI_COMM_WORLD_RANK
  until [ \$(ls /dev/shm | grep -c $mark) -ge 2 ]; do sleep 0.1; done; sleep 1
  echo \$(hostname) \$(ls /dev/shm | grep -c $mark) \$(ip -o -4 address show scope global | awk '{ print \$4 }')"
expect_code 0
expect_sorted "h1 2 10.0.0.1/24 h1 2 10.0.0.1/24 h2 2 10.0.0.2/24 h2 2 10.0.0.2/24 h3 2 10.0.0.3/24 h3 2 10.0.0.3/24"
begin beside
on 1 1 --beside 'sleep 1; kill -KILL $h1' 'sleep 170'
[ "$code" -ne 0 ] && [ "$code" -ne 124 ] || fail "exit code $code"

for arguments in "2 1" "2 x true" "2 1 --fast true"; do
  begin "usage '$arguments'"
  # shellcheck disable=SC2086
  launch $arguments
  expect_code 2
  expect_one_error "usage: hosts.sh N RANKS_EACH"
done
begin no-privilege
(setpriv --bounding-set=-all --inh-caps=-all "$hosts" 1 1 true) > "$out" 2> "$err"
code=$?
if [ $EUID -eq 0 ]; then expect_code 77 && expect_line "SKIPPED: needs the right to .*"; fi

# Two launches at a time have the same names and addresses and do not meet.
begin side-by-side
(out=$work/other.out err=$work/other.err; on 2 1 "$(printf '%q ' "$hosts") 1 1 bash -c 'hostname; sleep 1'") & first=$!
on 2 1 'hostname; sleep 1'
wait $first
expect_code 0
expect_sorted "h1 h2"

# A launch that is killed leaves nothing behind, as one that ends by itself.
left() {
  ps -eo args | grep -F "$1" | grep -v grep
  ip -o link | grep -E ' (eth0@|h[0-9]+@)' | grep -c master
  ls -d /tmp/ompi.h[0-9]* /dev/shm/*h[12].* /dev/shm/agent 2> /dev/null
}
begin left-after-kill
mark=4711.$$
before=$(left "sleep $mark")
"$hosts" 2 1 bash -c "sleep $mark" > "$out" 2> "$err" &
process=$!
both_sleep() { [ "$(ps -eo args | grep -c "^sleep $mark")" -eq 2 ]; }
wait_until both_sleep
kill -KILL $process
wait $process 2> /dev/null
nothing_left() { [ "$(left "sleep $mark")" = "$before" ]; }
wait_until nothing_left

conclude
