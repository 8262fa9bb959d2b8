#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program finds its hosts, and chooses meshes and threads by them.
# usage: topology_test.sh HOSTS_SH TESSERA JSON_GET INPUTS
hosts=$1 program=$2 json_get=$3 inputs=$4
# shellcheck source=../app/script_support.sh
source "$(dirname "$0")/../app/script_support.sh"

one_rank() {
  launcher=()
  launch run "$inputs/hybrid.toml" --mesh data=1,fsdp=1 --json out.json
  json /final_loss
}

# A replica on each host, its shards inside; on one rank each, and on one host with all.
for shape in "2 2" "4 1" "1 4"; do
  read -r count each <<< "$shape"
  begin "hybrid-$count-$each"
  expected=$(one_rank)
  launcher=("$hosts" "$count" "$each")
  launch run "$inputs/hybrid.toml" --mesh data=nodes,fsdp=per_node --json out.json
  expect_code 0
  expect_line "Mesh shape: +\($count, $each\)"
  expect_near "the final loss" "$(json /final_loss)" "$expected" 2e-5
  expect_json /as_planned true
  expect_json /nodes/count "$count"
  expect_json /nodes/ranks_each "$each"
  expect_json /config/distributed/mesh_shape "[$count,$each]"
  [ "$count" -eq 1 ] || expect_json /nodes/across '["data"]'
  [ "$each" -eq 1 ] || expect_json /nodes/inside '["fsdp"]'
  expect_json /provenance/placement/0/hosts/h1 "0$([ "$each" -eq 1 ] || echo "-$((each - 1))")"
  json "/provenance/placement/0/hosts/h$count" | grep -qE '^([0-9]-)?3$' || fail "rank 3 is not on h$count"
done
expect_json /provenance/nodes "1 with 4 ranks"
grep -q "^Nodes:" "$out" && fail "speaks of nodes on one"

begin other-axes
launcher=("$hosts" 2 2)
launch run "$inputs/hybrid.toml" --mesh fsdp=nodes,data=per_node
expect_code 0
expect_line "Nodes: 2 with 2 ranks each; data stays inside a node, fsdp crosses nodes"
begin info
launch info
expect_line "nodes: +2 with 2 ranks each"
begin other-nodes
launch run "$inputs/hybrid.toml" --set distributed.num_nodes=4
expect_code 1
grep -qF "must equal the number of nodes of this launch, 2" "$err" || fail "does not tell the nodes"

# The default mesh has its shards inside hosts.
begin automatic-mesh
sed '/mesh_/d' "$inputs/hybrid.toml" > "$here/hybrid.toml"
launch run hybrid.toml --json out.json
expect_code 0
expect_line "Mesh shape: +\(2, 2\)"
expect_line "Nodes: 2 with 2 ranks each; fsdp stays inside a node, data crosses nodes"

# Ranks share only the processors of their own host.
unset OMP_NUM_THREADS
for shape in "2 1" "1 2"; do
  read -r count each <<< "$shape"
  begin "threads-$count-$each"
  launcher=("$hosts" "$count" "$each")
  launch info
  cores=$(lscpu -p=CORE,SOCKET | grep -v '^#' | sort -u | wc -l)
  wanted=$((cores / each > 0 ? cores / each : 1))
  grep -q "^kokkos.backend: *Serial" "$out" || expect_line "kokkos.concurrency: +$wanted"
done

conclude
