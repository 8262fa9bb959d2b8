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
succeeds run "${tutorial[@]}" --quiet --export arrays --set checkpoint.directory=old --set output.metrics=old.jsonl \
  --set output.hashes=old.hashes
saved=$(saved 8 old)
succeeds checkpoint export "$saved" -o weights
ln -s a.toml "$here/link"
ln "$here/a.toml" "$here/hard"
ln -s missing.json "$here/dangling"
mkdir "$here/saves"
before=$(cd "$here" && find . -type f -exec sha256sum {} + | sort)

# spares_files PIECE ARGUMENT...: one error with PIECE, nothing else, and all files are as they were.
spares_files() {
  rejects "$@"
  [ ! -s "$out" ] || fail "$*: printed $(head -1 "$out")"
  [ "$(cd "$here" && find . -type f -exec sha256sum {} + | sort)" = "$before" ] || fail "$*: changed a file"
}
# one_file USE OTHER ARGUMENT...: the two uses of one file are named.
one_file() { spares_files "$1: must be another file than $2" "${@:3}"; }
run=(run "${tutorial[@]}")
for name in a.toml ./old/../a.toml "$here/a.toml" link hard; do
  one_file "--json = $name" "configuration = a.toml" "${run[@]}" --json "$name"
done
one_file "--json = a.toml" "configuration = a.toml" plan "${tutorial[@]}" --json a.toml
for command in run plan; do
  one_file "--json = machine.toml" "--machine = machine.toml" $command "${tutorial[@]}" --machine machine.toml --json machine.toml
done
one_file "--timeline = a.toml" "configuration = a.toml" plan "${tutorial[@]}" --timeline a.toml
one_file "--timeline = one" "--json = one" plan "${tutorial[@]}" --json one --timeline one
arrays=("${tutorial[@]}" --set data.kind=npy --set data.x=arrays/x.npy --set data.y=arrays/y.npy)
one_file "--export = arrays/x.npy" "data.x = arrays/x.npy" run "${arrays[@]}" --export arrays
one_file "--json = arrays/y.npy" "data.y = arrays/y.npy" plan "${arrays[@]}" --json arrays/y.npy
one_file "output.metrics = arrays/y.npy" "data.y = arrays/y.npy" run "${arrays[@]}" --set output.metrics=arrays/y.npy
one_file "--trace = weights" "checkpoint.init_from = weights" "${run[@]}" --set checkpoint.init_from=weights --trace weights
mkdir "$here/hf"
echo '{}' | tee "$here/hf/config.json" "$here/hf/model.safetensors.index.json" > "$here/hf/model.safetensors"
printf '0F0,1F0,1B0,0B0\n' > "$here/passes.csv"
before=$(cd "$here" && find . -type f -exec sha256sum {} + | sort)
for name in config.json model.safetensors model.safetensors.index.json; do
  one_file "--json = hf/$name" "those of checkpoint.init_from = hf" "${run[@]}" --set checkpoint.init_from=hf --json "hf/$name"
done
one_file "--json = hf/config.json" "checkpoint.init_from = hf/config.json" "${run[@]}" \
  --set checkpoint.init_from=hf/model.safetensors --json hf/config.json
one_file "--json = passes.csv" "distributed.schedule_file = passes.csv" plan "${tutorial[@]}" --mesh pipeline=2 \
  --set distributed.schedule_file=passes.csv --json passes.csv
one_file "--json = $saved" "--resume = $saved" "${run[@]}" --resume "$saved" --json "$saved"
for name in a/step_0000000016.safetensors a/b.unfinished; do
  one_file "output.metrics = saves/$name" "those of checkpoint.directory = saves" "${run[@]}" --set checkpoint.directory=saves \
    --set output.metrics=saves/$name
done
for uses in "--trace one --json one" "--set output.metrics=./one --json one" "--trace one --set output.hashes=./one" \
  "--set output.hashes=one --set output.metrics=./one"; do
  # shellcheck disable=SC2086 # words
  one_file "one" "" "${run[@]}" $uses
done
one_file "--export = out/results.json" "--json = out/results.json" "${run[@]}" --export out --json out/results.json
one_file "output.metrics = missing.json" "--json = dangling" "${run[@]}" --json dangling --set output.metrics=missing.json
one_file "--json = tb/events.out.tfevents.1" "those of output.tensorboard = tb" "${run[@]}" --json tb/events.out.tfevents.1 \
  --set output.tensorboard=tb
one_file "-o = $saved" "checkpoint = $saved" checkpoint export "$saved" -o "$saved"
[ ! -e "$here/out" ] && [ ! -e "$here/tb" ] || fail "made a directory"

# Files of something else are not shortened, whatever they are.
printf '{"step": 1, "loss": 2}\n' > "$here/other.jsonl"
before=$(cd "$here" && find . -type f -exec sha256sum {} + | sort)
for name in machine.toml arrays/x.npy "$saved" weights old.hashes other.jsonl; do
  spares_files "output.metrics = $name: holds something else; choose another file or" "${run[@]}" --set "output.metrics=$name"
done
spares_files "output.hashes = old.jsonl: holds something else; choose another" "${run[@]}" --set output.hashes=old.jsonl
launcher=("${several[@]}")
one_file "--json = hard" "configuration = a.toml" "${run[@]}" --json hard
launcher=()

# The same directories and names are no mistake if the files differ.
: > "$here/empty"
succeeds run "${tutorial[@]}" --quiet --export saves --set checkpoint.directory=saves --json saves/out.json --trace saves/trace \
  --set output.tensorboard=saves --set output.metrics=old.jsonl --set output.hashes=empty
succeeds run "${tutorial[@]}" --quiet --resume "$(saved 8)" --set checkpoint.directory=saves \
  --set training.num_epochs=2 --set output.metrics=old.jsonl
[ "$(wc -l < "$here/old.jsonl")" -eq 2 ] || fail "metrics have $(wc -l < "$here/old.jsonl") lines"
# A training may start from another one's parameters in the same directory, where it replaces nothing.
from=$(saved 8)
before=$(cd "$here" && sha256sum "$from")
succeeds run "${tutorial[@]}" --quiet --set checkpoint.directory=saves --set "checkpoint.init_from=$from"
[ "$(cd "$here" && sha256sum "$from")" = "$before" ] || fail "it replaced $from"

conclude
