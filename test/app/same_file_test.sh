#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No output is written over an input or another output: two uses of one file are rejected before anything is written.
# usage: same_file_test.sh PROGRAM JSON_GET INPUTS RANKS LAUNCHER...
program=$1 inputs=$3
shift 4
several=("$@")
launcher=()
# shellcheck source=script_support.sh
source "$(dirname "$0")/script_support.sh"

begin files
cp "$inputs/tutorial.toml" "$here/a.toml"
cp "$inputs/machines/cpu_cluster.toml" "$here/machine.toml"
tutorial=(a.toml --set training.num_epochs=1)
launch run "${tutorial[@]}" --quiet --export arrays --set checkpoint.directory=old --set output.metrics=old.jsonl \
  --set output.hashes=old.hashes
expect_code 0
saved=$(saved 8 old)
launch checkpoint export "$saved" -o weights
expect_code 0
ln -s a.toml "$here/link"
ln "$here/a.toml" "$here/hard"
ln -s missing.json "$here/dangling"
mkdir "$here/saves"
before=$(cd "$here" && find . -type f -exec sha256sum {} + | sort)

# rejects PIECE ARGUMENT...: one error with PIECE, and all files are as they were.
rejects() {
  local piece=$1
  shift
  launch "$@"
  expect_code 1
  [ "$(grep -c '^tessera: error: ' "$err")" -eq 1 ] || fail "$*: not one error"
  grep -qF -- "$piece" "$err" || fail "$*: stderr lacks '$piece'"
  [ ! -s "$out" ] || fail "$*: printed $(head -1 "$out")"
  [ "$(cd "$here" && find . -type f -exec sha256sum {} + | sort)" = "$before" ] || fail "$*: changed a file"
}
# The configuration and the machine file.
for name in a.toml ./old/../a.toml "$here/a.toml" link hard; do
  rejects "--json = $name: must be another file than configuration = a.toml" run "${tutorial[@]}" --json "$name"
done
for command in run plan; do
  rejects "--json = a.toml: must be another file than configuration = a.toml" $command "${tutorial[@]}" --json a.toml
  rejects "--json = machine.toml: must be another file than --machine = machine.toml" $command "${tutorial[@]}" \
    --machine machine.toml --json machine.toml
done
# Data and weights
arrays=("${tutorial[@]}" --set data.kind=npy --set data.x=arrays/x.npy --set data.y=arrays/y.npy)
rejects "--export = arrays/x.npy: must be another file than data.x = arrays/x.npy" run "${arrays[@]}" --export arrays
rejects "--json = arrays/y.npy: must be another file than data.y = arrays/y.npy" plan "${arrays[@]}" --json arrays/y.npy
rejects "output.metrics = arrays/y.npy: must be another file than data.y = arrays/y.npy" run "${arrays[@]}" \
  --set output.metrics=arrays/y.npy
rejects "--trace = weights: must be another file than checkpoint.init_from = weights" run "${tutorial[@]}" \
  --set checkpoint.init_from=weights --trace weights
# Checkpoints
rejects "--json = $saved: must be another file than --resume = $saved" run "${tutorial[@]}" --resume "$saved" --json "$saved"
for name in a/step_0000000016.safetensors a/b.unfinished; do
  rejects "output.metrics = saves/$name: must be another file than those of checkpoint.directory = saves" \
    run "${tutorial[@]}" --set checkpoint.directory=saves --set output.metrics=saves/$name
done
# Outputs
for name in --trace:--json output.metrics:--json output.hashes:--trace output.hashes:output.metrics; do
  uses=()
  for key in "${name%:*}" "${name#*:}"; do
    case $key in
      --*) uses+=("$key" one) ;;
      *) uses+=(--set "$key=./one") ;;
    esac
  done
  rejects "must be another file than " run "${tutorial[@]}" "${uses[@]}"
done
rejects "--export = out/results.json: must be another file than --json = out/results.json" run "${tutorial[@]}" \
  --export out --json out/results.json
rejects "output.metrics = missing.json: must be another file than --json = dangling" run "${tutorial[@]}" \
  --json dangling --set output.metrics=missing.json
rejects "--json = tb/events.out.tfevents.1: must be another file than those of output.tensorboard = tb" run \
  "${tutorial[@]}" --json tb/events.out.tfevents.1 --set output.tensorboard=tb
rejects "-o = $saved: must be another file than checkpoint = $saved" checkpoint export "$saved" -o "$saved"
[ ! -e "$here/out" ] && [ ! -e "$here/tb" ] || fail "made a directory"

# Files of something else are not shortened, whatever they are.
printf '{"step": 1, "loss": 2}\n' > "$here/other.jsonl"
before=$(cd "$here" && find . -type f -exec sha256sum {} + | sort)
for name in machine.toml arrays/x.npy "$saved" weights old.hashes other.jsonl; do
  rejects "output.metrics = $name: holds something else; choose another file or remove this one" run "${tutorial[@]}" \
    --set "output.metrics=$name"
done
rejects "output.hashes = old.jsonl: holds something else; choose another file or remove this one" run "${tutorial[@]}" \
  --set output.hashes=old.jsonl
launcher=("${several[@]}")
rejects "--json = hard: must be another file than configuration = a.toml" run "${tutorial[@]}" --json hard
launcher=()

# The same directories and names are no mistake if the files differ.
: > "$here/empty"
launch run "${tutorial[@]}" --quiet --export saves --set checkpoint.directory=saves --json saves/out.json --trace saves/trace \
  --set output.tensorboard=saves --set output.metrics=old.jsonl --set output.hashes=empty
expect_code 0
launch run "${tutorial[@]}" --quiet --resume "$(saved 8)" --set checkpoint.directory=saves \
  --set training.num_epochs=2 --set output.metrics=old.jsonl
expect_code 0
[ "$(wc -l < "$here/old.jsonl")" -eq 2 ] || fail "metrics have $(wc -l < "$here/old.jsonl") lines"
# A training may start from another one's parameters in the same directory, where it replaces nothing.
from=$(saved 8)
before=$(cd "$here" && sha256sum "$from")
launch run "${tutorial[@]}" --quiet --set checkpoint.directory=saves --set "checkpoint.init_from=$from"
expect_code 0
[ "$(cd "$here" && sha256sum "$from")" = "$before" ] || fail "it replaced $from"

conclude
