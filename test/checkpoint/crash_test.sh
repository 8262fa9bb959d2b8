#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kills trainings, or sends SIGTERM, at every point of a save in turn, with and without checkpoint.async. Each must reach
# the end of an uninterrupted training, bit for bit.
# usage: crash_test.sh PROGRAM TRAININGS RANKS LAUNCHER...
set -u
program=$1 trainings=$2 ranks=$3
shift 3
launcher=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
points=(begun created tensor_written written synced renamed cleaned)

# train DIRECTORY sync|async kill|term POINT TIMES RANK: sets $code; output in $work/WAY.out and .err
train() {
  timeout --kill-after=5 300 ${launcher[@]+"${launcher[@]}"} "$program" "$@" > "$work/$2.out" 2> "$work/$2.err"
  code=$?
}

# fail WAY TEXT
fail() {
  echo "FAILED: $1: $2"
  cat "$work/$1.err"
  exit 1
}

train "$work/whole" sync kill never 0 0
[ $code -eq 0 ] || fail sync "the training that nothing stops ended with code $code"
cp "$work/sync.out" "$work/expected"

# train_on WAY END TRAINING: sets $stops, the number of processes that were stopped
train_on() {
  local way=$1 end=$2 training=$3 point times
  for ((stops = 0;; ++stops)); do
    [ $stops -lt 200 ] || fail "$way" "training $training does not reach its end"
    point=${points[(stops + training) % ${#points[@]}]}
    # The second save, so that each process makes progress; of tensors, those of the first one.
    times=2
    [ "$point" = tensor_written ] && times=$((2 + stops % 18))
    train "$work/$way-$end-$training" "$way" "$end" "$point" $times $((stops % ranks))
    [ $code -eq 0 ] && break
    ! grep -q "tessera: error" "$work/$way.err" || fail "$way" "$end, after $stops stops"
    [ "$end" = kill ] || [ $code -eq 6 ] || fail "$way" "SIGTERM at $point leads to exit code $code"
  done
  cmp -s "$work/$way.out" "$work/expected" || fail "$way" "$end: training $training, stopped $stops times, ends differently"
}

# train_all WAY: kills all trainings, and sends signals to another one.
train_all() {
  local way=$1 total=0
  for ((training = 0; training < trainings; ++training)); do
    train_on "$way" kill $training
    total=$((total + stops))
  done
  [ $total -ge $((${#points[@]} * trainings)) ] || fail "$way" "only $total kills"
  train_on "$way" term 0
  # A process saves after each of its 18 steps. The signal comes in its second save, or when that is published, which may be a step
  # later; ranks agree to stop while they make two more steps. The first four processes thus end after at most 4 + 4 + 4 + 5 steps.
  [ $stops -gt 3 ] || fail "$way" "only $stops signals"
  echo "$way: $total kills in $trainings trainings and $stops signals in another on $ranks ranks"
}

(train_all sync) &
sync=$!
(train_all async) || exit 1
wait $sync
