#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bad input gives one line on stderr from one rank and exit code 1 on all ranks, and leaves no files. Unit tests check the
# rules of the configuration; here are one of them and what depends on the launch.
# usage: bad_input_test.sh PROGRAM INPUTS RANKS LAUNCHER...   (LAUNCHER starts RANKS processes)
program=$1 inputs=$2 ranks=$3
shift 3
several=("$@")
launcher=()
# shellcheck source=script_support.sh
source "$(dirname "$0")/script_support.sh"

# Every process writes its output and exit code to its own files and ends with 0, so that the launcher neither stops the
# others nor prints anything.
cat > "$work/process.sh" <<'SCRIPT'
logs=$1
shift
# shellcheck disable=SC2086 # words
if [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}}" = 0 ]; then set -- "$@" ${ON_FIRST:-}; fi
"$@" > "$logs/out.$$" 2> "$logs/err.$$"
echo $? > "$logs/code.$$"
SCRIPT

# launch ARGUMENT...: starts all ranks, which must end with the same $code. $out and $err have what all of them print.
launch() {
  local logs=$work/$name.logs codes
  mkdir "$logs"
  (cd "$here" && timeout --kill-after=5 120 "${several[@]}" bash "$work/process.sh" "$logs" "$program" "$@") \
    > "$logs/launcher" 2>&1 || fail "the launch failed: $(cat "$logs/launcher")"
  cat "$logs"/out.* > "$out"
  cat "$logs"/err.* > "$err"
  codes=$(cat "$logs"/code.* | sort | uniq -c | xargs)
  code=${codes##* }
  [ "$codes" = "$ranks $code" ] || fail "exit codes (count code): '$codes', expected one of $ranks ranks"
}

# bad NAME PIECE ARGUMENT...: one rank prints a line with PIECE, and nothing is written.
bad() {
  begin "$1"
  rejects "${@:2}"
  [ ! -s "$out" ] || fail "wrote to stdout: $(cat "$out")"
  expect_files
}
# bad_tutorial NAME PIECE ARGUMENT...: `tessera run` of the tutorial with these arguments.
bad_tutorial() { bad "$1" "$2" run "$inputs/tutorial.toml" --json out.json "${@:3}"; }

ln -s loop.toml "$work/loop.toml"
{ printf 'a.%.0s' {1..50000} && echo 'a = 1'; } > "$work/deep.toml"
long_name=$(printf 'a%.0s' {1..300})

bad no-command "a command is required"
bad missing-file "missing.toml: cannot be read" run missing.toml --json out.json
bad long-name "$long_name: cannot be read" run "$long_name" --json out.json
bad endless-link "loop.toml: cannot be read: Too many levels of symbolic links" run "$work/loop.toml"
bad deep-key "deep.toml:1: more than 1000 dots" run "$work/deep.toml"
bad_tutorial unknown-key "did you mean training.batch_size?" --set training.batchsize=3
# Options that one rank only has, as people write them for the rank that prints.
for option in "--json a.json" --quiet --print-config "--set model.seed=3"; do
  ON_FIRST=$option bad "on-first${option%% *}" "${option%% *} is given on rank 0 but not on rank 1" run "$inputs/tutorial.toml"
done
bad_tutorial mesh-too-large "distributed.mesh_shape = [$((ranks + 1))]" --mesh data=$((ranks + 1))
bad_tutorial no-device '; must be auto or mpi' --set distributed.backend=nccl
bad_tutorial threads 'distributed.threads = 64: must equal the number of threads per rank, which is' \
  --set distributed.threads=64
bad_tutorial other-world "distributed.world_size = $((ranks + 1))" --ranks-expected $((ranks + 1))
# The number of ranks is right, but they run on one node.
bad_tutorial other-nodes "distributed.num_nodes = $ranks: must equal the number of nodes of this launch, 1" \
  --set distributed.num_nodes="$ranks" --set distributed.num_processes_per_node=1
bad_tutorial other-processes "distributed.num_processes_per_node = 1: must equal the number of ranks on every node" \
  --set distributed.num_processes_per_node=1
bad no-such-directory "nowhere/out.json" run "$inputs/tutorial.toml" --json nowhere/out.json
bad result-link "loop.toml: cannot be written: Too many levels" run "$inputs/tutorial.toml" --json "$work/loop.toml"
bad long-result-name "cannot be written: File name too long" run "$inputs/tutorial.toml" --json "$long_name"
bad no-result-name "the argument after --json is empty" run "$inputs/tutorial.toml" --json ""
bad no-strategy "--strategy= has no value" run "$inputs/tutorial.toml" --strategy=

# --print-config does not check the launch. A launch of the right shape is accepted.
begin print-nodes
succeeds run "$inputs/tutorial.toml" --print-config --set distributed.num_nodes="$ranks"
begin right-nodes
succeeds run "$inputs/tutorial.toml" --set training.num_epochs=1 --set distributed.num_nodes=1 \
  --set distributed.num_processes_per_node="$ranks"

conclude
