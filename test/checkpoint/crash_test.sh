#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trainings that are killed again and again while they save, at every point of it in turn, come to the end that one
# comes to which nobody kills, bit for bit.
# usage: crash_test.sh PROGRAM TRAININGS RANKS LAUNCHER...
set -u
program=$1 trainings=$2 ranks=$3
shift 3
launcher=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
points=(begun created tensor_written written synced renamed latest_written latest_renamed cleaned)

# train DIRECTORY POINT TIMES RANK: sets $code
train() {
  timeout --kill-after=5 60 ${launcher[@]+"${launcher[@]}"} "$program" "$@" > "$work/out" 2> "$work/err"
  code=$?
}

fail() {
  echo "FAILED: $1"
  cat "$work/err"
  exit 1
}

train "$work/whole" never 0 0
[ $code -eq 0 ] || fail "the training that nobody kills ended with code $code"
cp "$work/out" "$work/expected"
total=0
for ((training = 0; training < trainings; ++training)); do
  for ((kills = 0;; ++kills)); do
    [ $kills -lt 200 ] || fail "training $training does not come to its end"
    point=${points[(kills + training) % ${#points[@]}]}
    # The second save, so that each process gets on; of tensors, those of the first one.
    times=2
    [ "$point" = tensor_written ] && times=$((2 + kills % 18))
    train "$work/$training" "$point" $times $((kills % ranks))
    [ $code -eq 0 ] && break
    ! grep -q "tessera: error" "$work/err" || fail "after $kills kills"
  done
  cmp -s "$work/out" "$work/expected" || fail "training $training, killed $kills times, has another end"
  total=$((total + kills))
done
[ $total -gt $((10 * trainings)) ] || fail "only $total kills"
echo "$total kills in $trainings trainings on $ranks ranks: every one went on as if there had been none"
