#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The ranks of each host take the GPUs of that host, from the first one on, in any order of all ranks.
# usage: gpus_test.sh HOSTS_SH PROBE
hosts=$1 program=$2
# shellcheck source=../app/script_support.sh
source "$(dirname "$0")/../app/script_support.sh"
launcher=("$hosts" 2 2)

begin own-of-each-host
FAKE_GPUS=a,b launch gpus
expect_code 0
expect_line "GPUs a b a b"
# Ranks in turn: 0 and 2 are on the first host.
begin in-turn
FAKE_GPUS=a,b OMPI_MCA_rmaps_base_mapping_policy=node launch gpus
expect_code 0
expect_line "GPUs a a b b"

# If both ranks of the second host have one GPU, all ranks of both hosts fail with one message.
begin too-few-on-one-host
program=$here/probe
cat > "$program" <<SCRIPT
#!/bin/sh
FAKE_GPUS=a,b
[ "\$(hostname)" = h1 ] || FAKE_GPUS=a
export FAKE_GPUS
$2 "\$@" || echo "\$(hostname) ended with \$?"
SCRIPT
chmod +x "$program"
launch gpus  # mpirun would kill the others when the first rank ends with a code
[ "$(sort "$out" | uniq -c | awk '{ print $2, $1, $5 }' | xargs)" = "h1 2 1 h2 2 1" ] || fail "$(cat "$out")"
error='ranks 0 and 1 of a node with 2 ranks share one GPU: start one rank per GPU'
[ "$(grep -c "$error" "$err")" -eq 1 ] || fail "is not told once"
TESSERA_ALLOW_SHARED_GPU=1 launch gpus
expect_code 0
expect_line "GPUs a b a a"

conclude
