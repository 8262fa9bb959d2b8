# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the end-to-end tests, which set `program`, `json_get` and `launcher` (may be empty).
set -u
work=$(mktemp -d)
failures=0
finish() {
  chmod -R u+w "$work"
  rm -rf "$work"
}
trap finish EXIT

fail() {
  echo "FAILED ${name:-}: $1"
  if [ -s "${err:-}" ]; then sed 's/^/  stderr: /' "$err"; fi
  failures=$((failures + 1))
}

# begin NAME: makes an empty directory $here, and $out and $err outside of it for the output.
begin() {
  name=$1 here=$work/$1 out=$work/$1.out err=$work/$1.err
  mkdir "$here"
  : > "$out"
  : > "$err"
}

# launch ARGUMENTS...: runs the program under the launcher in $here. Sets $code.
launch() {
  (cd "$here" && timeout --kill-after=5 180 ${launcher[@]+"${launcher[@]}"} "$program" "$@") > "$out" 2> "$err"
  code=$?
}

# saved STEP [DIRECTORY]: prints the path of a checkpoint, relative to $here; of several trainings, that of the last name.
saved() { (cd "$here" && compgen -G "${2:-saves}/*/$(printf 'step_%010d.safetensors' "$1")" | tail -n 1); }

expect_code() { [ "$code" -eq "$1" ] || fail "exit code $code, expected $1"; }

# expect_files NAME...: the program left these files in $here.
expect_files() {
  local found
  found=$(ls -A "$here" | xargs)
  [ "$found" = "$*" ] || fail "left '$found', expected '$*'"
}

# expect_line REGEX...: each matches a whole line of stdout.
expect_line() {
  local line
  for line in "$@"; do grep -qxE -- "$line" "$out" || fail "no line '$line' in
$(cat "$out")"; done
}

expect_silence() {
  [ ! -s "$out" ] || fail "wrote to stdout: $(head -3 "$out")"
  [ ! -s "$err" ] || fail "wrote to stderr"
}

# expect_one_error PIECE: stderr is one line, which contains PIECE. Launchers add lines of their own.
expect_one_error() {
  local ours=.
  if [ -n "${launcher[*]-}" ]; then ours='^tessera: (error|warning): '; fi
  [ "$(grep -cE -- "$ours" "$err")" -eq 1 ] || fail "not one error"
  grep -qF -- "$1" "$err" || fail "stderr lacks '$1'"
}

# ends_with CODE ARGUMENT...; succeeds ARGUMENT...: launches the program, which ends with this exit code.
ends_with() {
  launch "${@:2}"
  expect_code "$1"
}
succeeds() { ends_with 0 "$@"; }

# rejects PIECE ARGUMENT...: the program prints one error with PIECE and ends with exit code 1.
rejects() {
  ends_with 1 "${@:2}"
  expect_one_error "$1"
}

# expect_near WHAT VALUE WANTED TOLERANCE
expect_near() {
  awk -v v="$2" -v w="$3" -v t="$4" \
    'BEGIN { exit !(v ~ /^-?[0-9]/ && v - w <= t && w - v <= t) }' || fail "$1 is '$2', expected $3"
}

# wait_until COMMAND...: waits until the command succeeds, for at most 120 s.
wait_until() {
  local end=$((SECONDS + 120))
  until "$@" > /dev/null; do
    if ((SECONDS > end)); then fail "waited in vain for: $*" && return; fi
    sleep 0.01
  done
}

# json POINTER: prints the value in $here/out.json.
json() { "$json_get" "$here/out.json" "$1" 2>&1; }
# expect_json [POINTER VALUE]...
expect_json() {
  local value
  while (($# > 0)); do
    value=$(json "$1")
    [ "$value" = "$2" ] || fail "$1 is '$value', expected '$2'"
    shift 2
  done
}

conclude() {
  [ $failures -eq 0 ] && echo "all passed"
  exit $((failures > 0))
}
