#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A simulated study writes the files of a run, marked as simulated, also for 131,072 ranks.
# usage: simulate_test.sh PROGRAM JSON_GET INPUTS
program=$1 json_get=$2 inputs=$3
launcher=()
# shellcheck source=../../app/script_support.sh
source "$(dirname "$0")/../../app/script_support.sh"
machine=$inputs/machines/gpu_cluster.toml

# Plans of 131,072 ranks, and of references with as many microbatches, are small. Sanitizers reserve more address
# space than there is memory.
address_space=1048576
(ulimit -v $address_space && "$program" --version) > /dev/null 2>&1 || address_space=unlimited
ulimit -S -v $address_space

# A study of up to 131,072 ranks, with its references.
begin study
succeeds simulate "$inputs/simulated.toml" --machine "$machine" -o results
grep -q '^Simulated on machine gpu_cluster: nothing was measured$' "$out" || fail "stdout does not say what it is"
[ ! -e "$here/results/figures_of_merit.txt" ] || fail "figures of merit of nothing"
tail -1 "$out" | grep -qE '^RESULT: PASS 30 ok ' || fail "ended with '$(tail -1 "$out")'"
count=0
for result in "$here"/results/cases/*/result.json; do
  count=$((count + 1))
  [ "$("$json_get" "$result" /simulated)" = gpu_cluster ] || fail "$result is not marked"
  for part in /loss /prediction /memory/measured_bytes; do
    [ "$("$json_get" "$result" $part)" = null ] || fail "$result has $part, which nobody measured"
  done
  awk -v f="$("$json_get" "$result" /compute/flops_per_second)" 'BEGIN { exit !(f > 0) }' ||
    fail "$result has no rate: FLOPs of so many ranks overflow"
done
[ $count -eq 30 ] || fail "$count results"
[ "$("$json_get" "$here"/results/launches/*.json /ranks)" = 131072 ] || fail "not for all ranks"
[ "$(head -1 "$here/results/cases.csv" | tr , '\n' | tail -1)" = simulated ] || fail "cases.csv does not tell"

# Simulated results are neither overwritten nor resumed.
ends_with 1 simulate "$inputs/simulated.toml" --machine "$machine" -o results

begin memory
sed 's/^memory_bytes = .*/memory_bytes = 3_000_000_000/' "$machine" > "$here/small.toml"
succeeds simulate "$inputs/simulated.toml" --machine small.toml -o results --set data.samples=1048576 \
  --set model.transformer.blocks=4
grep -q ' oom ' "$out" || fail "no case is too large"
grep -h '"reason"' "$here"/results/cases/*/result.json | grep -q 'the limit is 2.79 GiB' || fail "no reason given"

# The name of a machine may have characters that names of launches have not.
begin named
sed 's|^name = "gpu_cluster"|name = "../H100@site 80"|' "$machine" > "$here/named.toml"
succeeds simulate "$inputs/quick_study.toml" --machine named.toml -o results
[ "$(cd "$here/results/launches" && echo *)" = 'simulated-___H100_site_80.journal simulated-___H100_site_80.json' ] ||
  fail "has $(find "$here/results/launches")"
[ "$("$json_get" "$here"/results/launches/*.json /simulated/machine)" = '../H100@site 80' ] || fail "the machine has another name"
launch compare results results
grep -q ' +0.0% ' "$out" || fail "compares nothing: $(cat "$out")"

# Counts that would take forever or fill memory are rejected in one line.
begin huge
succeeds jobs "$inputs/quick_study.toml" --scheduler slurm --ranks-per-node 268435456 -o jobs
for count in measure.launches=1099511627776 measure.rounds=1099511627776 measure.checkpoints=4611686018427387904 \
  measure.gemm_size=2147483647 measure.max_steps=4611686018427387904; do
  rejects "must be at most" list "$inputs/quick_study.toml" --set $count
done
for study in strong_scaling strategies; do
  for count in data.samples training.batch_size training.microbatches training.num_epochs verify.steps verify.ranks; do
    launch simulate "$inputs/$study.toml" --machine "$machine" -o "$study-$count" --set $count=2147483647 \
      --set limits.memory_bytes=80000000000
    [ $code -le 3 ] || [ $code -eq 77 ] || fail "exit code $code"
    grep -qE 'unexpected|out of memory: std' "$err" && fail "says $(head -c 300 "$err")"
  done
done

# The command line replaces the ranks and strategies of the grids; the base comes from the installation where it is not
# beside the study.
begin chosen
mkdir -p "$here/prefix/bin" "$here/prefix/share/tessera/inputs" "$here/mine"
cp "$program" "$here/prefix/bin"
cp "$inputs/large.toml" "$here/prefix/share/tessera/inputs"
cp "$inputs/strong_scaling.toml" "$here/mine/study.toml"
rejects 'mine/large.toml' list mine/study.toml
(cd "$here" && prefix/bin/tessera-bench simulate mine/study.toml --machine "$machine" -o results --ranks 8,64,512 \
  --strategy fsdp,zero1) > "$out" 2> "$err" || fail "$(cat "$err")"
[ "$(tail -n +2 "$here/results/cases.csv" | cut -d, -f5,7 | sort -u | xargs)" = \
  "fsdp,512 fsdp,64 fsdp,8 zero1,512 zero1,64 zero1,8" ] || fail "other cases: $(cat "$out")"
[ "$("$json_get" "$here/results/summary.json" /cases/0/baseline_ranks)" = 8 ] || fail "no baseline"
rejects '--strategy = zero4: must be one of data, ' list "$inputs/strong_scaling.toml" --strategy zero4
rejects '--ranks: 0 must be a whole number of at least 1' list "$inputs/strong_scaling.toml" --ranks 8,0
printf '[[grid]]\nmesh = "data=2"\n' > "$here/mesh.toml"
succeeds list mesh.toml --ranks 3
grep -q '^data-data3-' "$out" || fail "the mesh stays: $(cat "$out")"

begin wrong
rejects 'missing.toml' simulate "$inputs/simulated.toml" --machine missing.toml -o results
rejects '--machine is required' simulate "$inputs/simulated.toml" -o results
expect_files

conclude
