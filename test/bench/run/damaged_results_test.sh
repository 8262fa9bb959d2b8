#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Edited or truncated results make every command end with one line that names file and key.
# usage: damaged_results_test.sh PROGRAM DAMAGE_RESULTS LAUNCHER...   (of 2 ranks)
program=$1 damage_results=$2
shift 2
several=("$@")
launcher=("${several[@]}")
# shellcheck source=../../app/script_support.sh
source "$(dirname "$0")/../../app/script_support.sh"

begin sound
sed 's/^rounds = .*/rounds = 6/' "$(dirname "$0")/small_study.toml" > "$here/study.toml"
succeeds run study.toml -o results
"$damage_results" "$here/results" "$here/study.toml" > "$here/damages" 2>&1 ||
  fail "$(grep -av ' rejected$' "$here/damages" | head -20; tail -1 "$here/damages")"
tail -1 "$here/damages"

# expect_named FILE PIECE: one error, which all ranks agree on, names the file of $here/results, and a line of a journal.
expect_named() {
  expect_code 1
  [ "$(grep -c '^tessera: error: ' "$err")" -eq 1 ] || fail "not one error"
  grep '^tessera: error: ' "$err" | sed -E 's/(\.journal):[0-9]+:/\1:/' | grep -qF -- "results/$1: $2" || fail "does not name $1 and $2"
  if grep -q 'unexpected:' "$err"; then fail "something unexpected"; fi
}

# damage FILE SED: a copy of the sound results in $here, with one file edited.
damage() {
  rm -rf "$here/results"
  cp -r "$work/sound/results" "$here/results"
  sed -i "$2" "$here/results/$1"
}

# All ranks agree on the error. damage_results has tried every reader.
begin damaged
cp "$work/sound/study.toml" "$here"
cp -r "$work/sound/results" "$here/before"
cd "$here/before" || exit 1
journal=$(echo launches/*.journal)
cd - > /dev/null || exit 1
# resume: continues with the results in a launch of 2 ranks.
resume() {
  launcher=("${several[@]}")
  launch run study.toml -o results --resume --set measure.launches=2
}
damage "$journal" 's/"status":"ok"/"status":3/'
resume
expect_named "$journal" 'result.status = 3: must be a text'
launcher=()
damage study.json 's/"case_seconds": .*/"case_seconds": "long",/'
launch compare before results
expect_named study.json 'limits.case_seconds = "long": must be a number'
echo '[]' > "$here/results/study.json"
launch compare before results
expect_named study.json 'must hold a JSON object'

# The exit codes of compare, which scripts rely on.
begin compared
cp -r "$work/sound/results" "$here/before"
launcher=()
succeeds compare before before --json out.json
expect_line '4 indistinguishable'
grep -q '"regressed": false' "$here/out.json" || fail "$(cat "$here/out.json")"
damage "$journal" '0,/"status":"ok"/s//"status":"failed"/; 0,/"exit_code":0/s//"exit_code":5/'
ends_with 2 compare before results --json out.json
grep -q '"regressed": true' "$here/out.json" || fail "$(cat "$here/out.json")"
succeeds compare results before
damage study.json ''
sed -i 's/"label": "/&another /' "$here"/results/study.json
sed -i 's/"label":"/&another /' "$here/results/$journal"
rejects "before and results have no case in common" compare before results
damage study.json ''
sed -i 's/"batch_size":/&1/' "$here/results/$journal"
ends_with 1 compare before results
expect_line '4 different work'
expect_one_error "no case can be compared"

conclude
