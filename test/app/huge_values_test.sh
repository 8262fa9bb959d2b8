#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Huge integers for every key give a plan or one clear line, quickly and in little memory.
# usage: huge_values_test.sh PROGRAM JSON_GET INPUTS
program=$1 json_get=$2 inputs=$3
launcher=()
# shellcheck source=script_support.sh
source "$(dirname "$0")/script_support.sh"

# Sanitizers reserve more address space than there is memory.
address_space=2000000
(ulimit -v $address_space && "$program" --version) > /dev/null 2>&1 || address_space=unlimited

# plan ARGUMENTS...: expects a plan or one line on stderr.
plan() {
  begin "plan-$((++count))"
  name="plan $*"
  (ulimit -v $address_space && cd "$here" && timeout --kill-after=5 60 "$program" plan "$@" --json plan.json) \
    > "$out" 2> "$err"
  code=$?
  [ "$code" -eq 0 ] || expect_code 1
  if [ "$code" -eq 1 ]; then expect_one_error 'tessera: error: '; fi
  grep -qE 'unexpected|out of memory' "$err" && fail "says $(head -c 300 "$err")"
  rm -f "$here/plan.json"
}
count=0

# file_of KEY: prints the input whose kind of model has the key.
file_of() {
  case $1 in
    model.residual_mlp.*) echo residual ;;
    model.transformer.* | model.vae.* | model.pinn.* | model.fno.*)
      local kind=${1#model.}
      echo "${kind%%.*}"
      ;;
    *) echo tutorial ;;
  esac
}

begin keys
succeeds run "$inputs/tutorial.toml" --print-config
# "section.key" of all keys that are integers or unset by default.
keys=$(awk '/^\[/ { section = substr($1, 2, length($1) - 2) }
            /^[a-z_0-9.]+ = -?[0-9]+ / { print section "." $1 }
            /^# [a-z_]+ is unset/ { print section "." $2 }' "$out")
[ "$(wc -w <<< "$keys")" -gt 40 ] || fail "only $(wc -w <<< "$keys") keys"
for key in $keys training.activation_checkpointing; do
  for value in 2147483647 1099511627776 4611686018427387904; do
    plan "$inputs/$(file_of "$key").toml" --set "$key=$value"
  done
done

# Combinations.
everything=(--set data.samples=2147483647 --set training.batch_size=2147483647)
for microbatches in 1 65536 2147483647; do
  for mesh in data=1 data=2147483647 fsdp=65536 model=2147483647 pipeline=2; do
    plan "$inputs/tutorial.toml" "${everything[@]}" --set training.microbatches=$microbatches --mesh $mesh
  done
done
plan "$inputs/tutorial.toml" --set 'model.widths=[4, 4611686018427387904, 1]'
plan "$inputs/tutorial.toml" --mesh pipeline=2147483647
plan "$inputs/tutorial.toml" --mesh data=2147483647,model=2147483647
plan "$inputs/tutorial.toml" --mesh pipeline=2 --set distributed.virtual_stages=4611686018427387904 \
  --set distributed.schedule=interleaved
plan "$inputs/vae.toml" --set 'model.vae.hidden=[4611686018427387904]'
plan "$inputs/hybrid.toml" --mesh data=nodes,fsdp=per_node --set distributed.world_size=2147483647 \
  --set distributed.num_processes_per_node=1
printf '[model]\nwidths = [%s1]\n' "$(printf '4, %.0s' {1..100000})" > "$work/wide.toml"
plan "$work/wide.toml"

# Messages quote only a part of a very long key or value, and no similar name is searched for it.
long=$(printf 'a%.0s' {1..100000})
printf '[model]\nwidths = [4, 8, 1]\n%s = 1\n' "$long$long$long$long$long$long$long$long$long" > "$work/key.toml"
plan "$work/key.toml"
expect_code 1
[ "$(wc -c < "$err")" -lt 400 ] || fail "an error of $(wc -c < "$err") bytes"
for arguments in "--set model.kind=$long" "--set $long=1" "--mesh $long" "--mesh $long=2" "--strategy $long" "--$long"; do
  # shellcheck disable=SC2086
  plan "$inputs/tutorial.toml" $arguments
  name="plan ${arguments:0:20}"
  expect_code 1
  [ "$(wc -c < "$err")" -lt 700 ] || fail "an error of $(wc -c < "$err") bytes"
done

conclude
