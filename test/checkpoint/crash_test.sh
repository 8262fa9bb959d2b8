#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kills trainings, or sends SIGTERM, at every point of a save in turn, with and without checkpoint.async. Each must come to
# the end of an uninterrupted training, bit for bit.
# usage: crash_test.sh PROGRAM TRAININGS RANKS LAUNCHER...
set -u
program=$1 trainings=$2 ranks=$3
shift 3
launcher=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
points=(begun created tensor_written written synced renamed latest_written latest_renamed cleaned)

# train DIRECTORY sync|async kill|term POINT TIMES RANK: sets $code
train() {
  timeout --kill-after=5 60 ${launcher[@]+"${launcher[@]}"} "$program" "$@" > "$work/out" 2> "$work/err"
  code=$?
}

fail() {
  echo "FAILED: $1"
  cat "$work/err"
  exit 1
}

train "$work/whole" sync kill never 0 0
[ $code -eq 0 ] || fail "the training that nobody stops ended with code $code"
cp "$work/out" "$work/expected"

# train_on WAY END TRAINING: sets $stops, how often it took a new process
train_on() {
  local way=$1 end=$2 training=$3 point times
  for ((stops = 0;; ++stops)); do
    [ $stops -lt 200 ] || fail "$way, $end: training $training does not come to its end"
    point=${points[(stops + training) % ${#points[@]}]}
    # The second save, so that each process gets on; of tensors, those of the first one.
    times=2
    [ "$point" = tensor_written ] && times=$((2 + stops % 18))
    train "$work/$way-$end-$training" "$way" "$end" "$point" $times $((stops % ranks))
    [ $code -eq 0 ] && break
    ! grep -q "tessera: error" "$work/err" || fail "$way, $end: after $stops stops"
    [ "$end" = kill ] || [ $code -eq 6 ] || fail "$way: SIGTERM at $point leads to exit code $code"
  done
  cmp -s "$work/out" "$work/expected" || fail "$way, $end: training $training, stopped $stops times, has another end"
}

for way in sync async; do
  total=0
  for ((training = 0; training < trainings; ++training)); do
    train_on $way kill $training
    total=$((total + stops))
  done
  [ $total -gt $((10 * trainings)) ] || fail "$way: only $total kills"
  train_on $way term 0
  [ $stops -gt 3 ] || fail "$way: only $stops signals"
  echo "$way: $total kills in $trainings trainings and $stops signals in another on $ranks ranks:" \
    "every one went on as if there had been none"
done
