#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every file of inputs/ is planned whole; those that are not for a cluster also run small on one process and on
# several. On 4 ranks the calls must be those of its strategy.
# usage: inputs_test.sh PROGRAM JSON_GET INPUTS RANKS LAUNCHER...
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
  launch run "$file" --json out.json ${small[@]+"${small[@]}"} "$@"
  launcher=()
  expect_code 0
  expect_line " +Devices used: +$ranks"
  expect_near "the final loss on $ranks ranks $*" "$(json /final_loss)" "$expected" 2e-5
}

for file in "$inputs"/*.toml; do
  grep -q '^\[\[grid\]\]' "$file" && continue  # a study: test/bench runs those
  input=$(basename "$file" .toml)
  # The files for a pipeline and for clusters say on how many ranks they run.
  [[ $ranks -ne 4 && $input =~ _(pipeline|large)$ ]] && continue
  small=() alone=() mesh=()  # smaller than the file; on one process; a mesh on which it sends all that it may
  case $input in
    tutorial) traffic=(data:all_reduce) ;;
    large)
      small=(--set 'model.widths=[16, 32, 32, 16]' --set training.batch_size=32 --set data.samples=128)
      traffic=(data:all_reduce)
      ;;
    fsdp) traffic=(fsdp:reduce_scatter fsdp:all_gather) ;;
    hybrid)
      mesh=(--mesh "data=2,fsdp=2")
      traffic=(fsdp:reduce_scatter fsdp:all_gather data:all_reduce)
      ;;
    tensor)
      mesh=(--mesh "data=2,model=2")
      traffic=(model:reduce_scatter model:all_gather data:all_reduce)
      ;;
    residual)
      mesh=(--mesh "fsdp=2,model=2")
      traffic=(fsdp:reduce_scatter fsdp:all_gather model:reduce_scatter model:all_gather model:all_reduce)
      ;;
    moe)
      small=(--set data.samples=64 --set data.validation_samples=16 --set training.num_epochs=2)
      mesh=(--mesh "fsdp=2,expert=2")
      traffic=(expert:all_to_all fsdp:reduce_scatter fsdp:all_gather)
      ;;
    transformer)
      small=(--set data.samples=64 --set data.validation_samples=16 --set training.num_epochs=2)
      mesh=(--mesh "fsdp=2,model=2")
      traffic=(fsdp:reduce_scatter fsdp:all_gather model:reduce_scatter model:all_gather)
      ;;
    long_context)
      small=(--set model.transformer.context=15 --set model.transformer.width=16 --set model.transformer.inner_width=16)
      traffic=(context:send context:receive context:all_reduce)
      ;;
    pinn)
      small=(--set data.samples=64 --set data.validation_samples=16 --set training.batch_size=16 --set training.num_epochs=2
        --set training.validate_every=1)
      traffic=(data:reduce_scatter data:all_gather)
      ;;
    fno | fno_large)
      small=(--set data.samples=32 --set data.validation_samples=16 --set training.num_epochs=2
             --set training.batch_size=16)
      mesh=(--mesh "data=2,model=2")
      traffic=(data:all_reduce model:all_reduce)
      if [[ $input == fno_large ]]; then
        small+=(--set model.fno.grid=8 --set model.fno.modes=3 --set model.fno.width=4)
        alone=(--mesh "fsdp=1,model=1")
        mesh=()
        traffic=(fsdp:reduce_scatter fsdp:all_gather model:all_reduce)
      fi
      ;;
    vae)
      small=(--set 'model.vae.hidden=[32, 16]' --set data.samples=64 --set data.validation_samples=16
             --set training.batch_size=16 --set training.num_epochs=2)
      traffic=(fsdp:reduce_scatter fsdp:all_gather)
      ;;
    vae_large)
      small=(--set model.vae.input_width=64 --set 'model.vae.hidden=[32, 16]' --set model.vae.latent=4
             --set data.samples=64 --set training.batch_size=16 --set training.num_epochs=2
             --set 'distributed.mesh_shape=[2, 2]')
      alone=(--mesh "fsdp=1,model=1")
      traffic=(fsdp:reduce_scatter fsdp:all_gather model:all_reduce)
      ;;
    workshop_pipeline)
      alone=(--mesh "pipeline=1")
      traffic=(pipeline:send pipeline:receive)
      ;;
    *_large)  # for a cluster
      begin "input-$input"
      launch plan "$file"
      expect_code 0
      continue
      ;;
    *) fail "inputs/$input.toml: say in inputs_test.sh how it is made small, and what it sends" && continue ;;
  esac
  begin "input-$input"
  launch plan "$file"
  expect_code 0
  launch run "$file" --json out.json ${small[@]+"${small[@]}"} ${alone[@]+"${alone[@]}"}
  expect_code 0
  expect_json /measured/traffic "[]"
  expected=$(json /final_loss)
  launcher=("${several[@]}")
  train
  [ "$ranks" -eq 4 ] || continue
  [ ${#mesh[@]} -eq 0 ] || train "${mesh[@]}"
  expect_traffic "${traffic[@]}"
done

conclude
