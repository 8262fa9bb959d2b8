#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every file of inputs/ is planned whole; those that are not for a cluster also run small on one process and on 4 ranks,
# where the calls must be those of its strategy.
# usage: inputs_test.sh PROGRAM JSON_GET INPUTS 4 LAUNCHER...
program=$1 json_get=$2 inputs=$3 ranks=$4
shift 4
several=("$@")
launcher=()
# shellcheck source=script_support.sh
source "$(dirname "$0")/script_support.sh"

# expect_traffic AXIS:OPERATION...: the ledger counted calls of each of these.
expect_traffic() {
  local traffic call
  traffic=$(json /measured/traffic)
  for call in "$@"; do
    grep -qE "\"axis\":\"${call%:*}\",\"calls\":[0-9]+,\"operation\":\"${call#*:}\"" <<< "$traffic" ||
      fail "no ${call#*:} on ${call%:*} in $traffic"
  done
}

# train OPTION...: runs the input, made small, and expects the loss of one rank.
train() {
  launcher=("${several[@]}")
  succeeds run "$inputs/$input.toml" --json out.json ${small[@]+"${small[@]}"} "$@"
  launcher=()
  expect_line " +Devices used: +$ranks"
  expect_near "the final loss on $ranks ranks $*" "$(json /final_loss)" "$expected" 2e-5
}

# An input | keys that make it smaller | its mesh on one process | a mesh on which it sends all that it may | what it then sends
little="data.samples=64 data.validation_samples=16 training.num_epochs=2"
table="
tutorial          |                       |                |                | data:all_reduce
large             | model.widths=[16,32,32,16] training.batch_size=32 data.samples=128 | | | data:all_reduce
fsdp              |                       |                |                | fsdp:reduce_scatter fsdp:all_gather
hybrid            |                       |                | data=2,fsdp=2  | fsdp:reduce_scatter fsdp:all_gather data:all_reduce
tensor            |                       |                | data=2,model=2 | model:reduce_scatter model:all_gather data:all_reduce
residual          |                       |                | fsdp=2,model=2 | fsdp:reduce_scatter fsdp:all_gather
                                                               model:reduce_scatter model:all_gather model:all_reduce
moe               | $little               |                | fsdp=2,expert=2 | expert:all_to_all fsdp:reduce_scatter fsdp:all_gather
transformer       | $little               |                | fsdp=2,model=2 | fsdp:reduce_scatter fsdp:all_gather
                                                               model:reduce_scatter model:all_gather
llama             | $little data.file=$inputs/gpu_steps.toml model.transformer.context=15 | | fsdp=2,model=2
                                                             | fsdp:reduce_scatter fsdp:all_gather
                                                               model:reduce_scatter model:all_gather
mixtral           | $little data.file=$inputs/gpu_steps.toml model.transformer.context=15 | | fsdp=2,expert=2
                                                             | expert:all_to_all fsdp:reduce_scatter fsdp:all_gather
long_context      | model.transformer.context=15 model.transformer.width=16 model.transformer.inner_width=16 | |
                                                             | context:send context:receive context:all_reduce
pinn              | $little training.batch_size=16 training.validate_every=1 | | | data:reduce_scatter data:all_gather
fno               | $little training.batch_size=16 |       | data=2,model=2 | data:all_reduce model:all_reduce
fno_large         | $little training.batch_size=16 model.fno.grid=8 model.fno.modes=3 model.fno.width=4
                    | fsdp=1,model=1 | | fsdp:reduce_scatter fsdp:all_gather model:all_reduce
vae               | $little training.batch_size=16 model.vae.hidden=[32,16] | | | fsdp:reduce_scatter fsdp:all_gather
vae_large         | $little training.batch_size=16 model.vae.hidden=[32,16] model.vae.input_width=64 model.vae.latent=4
                      distributed.mesh_shape=[2,2] | fsdp=1,model=1 | | fsdp:reduce_scatter fsdp:all_gather model:all_reduce
workshop_pipeline |                       | pipeline=1     |                | pipeline:send pipeline:receive
"
rows=$(sed -z 's/\n  */ /g' <<< "$table")
for file in "$inputs"/*.toml; do
  grep -q '^\[\[grid\]\]' "$file" && continue  # a study: test/bench runs those
  input=$(basename "$file" .toml)
  begin "input-$input"
  succeeds plan "$file"
  row=$(grep "^$input *|" <<< "$rows")
  [[ -n $row || $input == *_large || $input == *[0-9]b ]] ||
    fail "say in inputs_test.sh how inputs/$input.toml is made small, and what it sends"
  [ -n "$row" ] || continue
  IFS='|' read -r _ keys alone mesh traffic <<< "$row"
  alone=$(xargs <<< "$alone") mesh=$(xargs <<< "$mesh") small=()
  [ -z "$alone" ] || alone="--mesh $alone"
  for key in $keys; do small+=(--set "$key"); done
  # shellcheck disable=SC2086 # words
  succeeds run "$file" --json out.json ${small[@]+"${small[@]}"} $alone
  expect_json /measured/traffic "[]"
  expected=$(json /final_loss)
  train
  [ -z "$mesh" ] || train --mesh "$mesh"
  # shellcheck disable=SC2086 # words
  expect_traffic $traffic
done

conclude
