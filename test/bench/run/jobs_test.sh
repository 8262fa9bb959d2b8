#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Jobs run by fake_scheduler.sh, which checks the requested resources and starts real ranks.
# usage: jobs_test.sh PROGRAM JSON_GET INPUTS LAUNCHER...   (without the number of ranks)
program=$1 json_get=$2 inputs=$3
shift 3
launcher=()
# shellcheck source=study_support.sh
source "$(dirname "$0")/study_support.sh"
results=jobs/results
export FAKE_MPI="$*" FAKE_LOG
mkdir "$work/bin"
for name in sbatch srun flux qsub mpiexec; do
  ln -s "$(cd "$(dirname "$0")" && pwd)/fake_scheduler.sh" "$work/bin/$name"
done

# write_jobs ARGUMENT...: writes jobs, and checks their syntax.
write_jobs() {
  local script
  succeeds jobs study.toml -o jobs --ranks-per-node 2 "$@"
  for script in "$here"/jobs/*.sh; do
    bash -n "$script" || fail "$script does not parse"
    if command -v shellcheck > /dev/null; then shellcheck "$script" || fail "$script"; fi
  done
}

# submit: submits all jobs, and waits until they have run.
submit() {
  : > "$FAKE_LOG"
  (cd / && PATH=$work/bin:$PATH "$here/jobs/submit.sh") > "$out" 2> "$err"
  code=$?
  expect_code 0
}

# only JOB: submits this job.
only() { sed -i -E "s/^for job in [^;]*;/for job in $1;/" "$here/jobs/submit.sh"; }

# expect_log LINE...: checks the requests and the ends of the jobs.
expect_log() {
  diff <(printf '%s\n' "$@") "$FAKE_LOG" > "$work/diff" || fail "$(cat "$work/diff" "$here"/jobs/*.log "$here"/jobs/*.o*)"
}

# rounds: prints the number of rounds of every case, ascending.
rounds() {
  for result in "$here"/jobs/results/cases/*/result.json; do
    "$json_get" "$result" /rounds | grep -o '"at":' | wc -l
  done | sort -n | xargs
}
# A job for each number of ranks, which runs the cases with so many and no others. Afterwards there is nothing to do.
for scheduler in slurm flux pbs; do
  study $scheduler
  FAKE_LOG=$work/$scheduler.log
  write_jobs --scheduler $scheduler --set limits.case_seconds=30.0 --max-time 3
  submit
  expect_log "job ranks-1.sh nodes=1 ranks=1 per_node=1 threads=1 minutes=3" "launch ranks=1" "end ranks-1.sh status=0" \
    "job ranks-2.sh nodes=1 ranks=2 per_node=2 threads=1 minutes=3" "launch ranks=2" "end ranks-2.sh status=0"
  expect_statuses "4 ok"
done
submit
expect_statuses "4 ok"
rounds | grep -qx '2 2 2 2' || fail "a case was run twice: $(rounds)"

# A case that ends its launches costs one restart.
study bad
FAKE_LOG=$work/bad.log
write_jobs --scheduler slurm --set measure.warm_up=20000 --set limits.case_seconds=500.0
only ranks-2.sh
FAKE_BAD=$(id data-data2-b16) submit
grep -c '^launch ranks=2$' "$FAKE_LOG" | grep -qx 2 || fail "restarts: $(cat "$FAKE_LOG")"
expect_statuses "1 failed 1 ok 2 pending"
rounds | grep -qxE '0 [23]' || fail "rounds: $(rounds)"
grep -q '^RESULT: FAIL' "$here"/jobs/ranks-2.*.log || fail "no verdict in the log"

# A launch that is started again gets its own options once.
study again
# shellcheck source=../../../scripts/jobs/until_done.sh
source "$(dirname "$0")/../../../scripts/jobs/until_done.sh"
read -ra ranks <<< "$FAKE_MPI 2"
(cd "$here" && until_done jobs/results 1 "${ranks[@]}" "$program" run study.toml --machine "$machine" -o jobs/results \
  --set limits.case_seconds=4.0 --inject throw@1 --give-up 2 --retry=failed) > "$out" 2> "$err"
expect_statuses "2 failed 2 ok"
retry_once run --retry failed --give-up 3 a b --retry=ok
[ "${once[*]} $lost" = 'run a b 3' ] || fail "starts '${once[*]}' again after $lost launches"
retry_once run --give-up=4
[ "${once[*]} $lost" = 'run 4' ] || fail "starts '${once[*]}' again after $lost launches"

# A job that runs out of time continues when it is submitted again, and gives up no case.
study limit
FAKE_LOG=$work/limit.log
write_jobs --scheduler slurm --set measure.warm_up=20000 --set limits.case_seconds=500.0
only ranks-1.sh
FAKE_LIMIT=1 submit
grep -qx 'end ranks-1.sh status=143' "$FAKE_LOG" || fail "no time limit: $(cat "$FAKE_LOG")"
grep -c '^launch' "$FAKE_LOG" | grep -qx 1 || fail "a job went on when its time was over: $(cat "$FAKE_LOG")"
submit
expect_statuses "2 ok 2 pending"

# A job for each case; those that ask for more threads get processors for them.
study per_case
FAKE_LOG=$work/per_case.log
two=(--set distributed.threads=2)
write_jobs --scheduler pbs --per-case "${two[@]}"
[ "$(find "$here/jobs" -name 'data-*.sh' | wc -l)" -eq 4 ] || fail "not a job for each case"
case=$(id data-data2-b16 "${two[@]}")
only "$case.sh"
submit
expect_log "job $case.sh nodes=1 ranks=2 per_node=2 threads=2 minutes=3" "launch ranks=2" "end $case.sh status=0"
expect_statuses "1 ok 3 pending"

# With --gpus, a rank has one. The other texts: jobs have the name of the study and whole nodes, ranks have cores, and a dead
# rank ends its job step.
expect_gpus() {
  begin "gpus-$1"
  succeeds jobs "$inputs/quick_study.toml" --scheduler "$1" --ranks-per-node 2 --ranks 8 --strategy fsdp --gpus -o jobs
  for text in "${@:2}"; do
    grep -qF -- "$text" "$here/jobs/ranks-8.sh" || fail "no '$text' in $(head -20 "$here/jobs/ranks-8.sh")"
  done
  succeeds jobs "$inputs/quick_study.toml" --scheduler "$1" --ranks-per-node 2 --ranks 8 --strategy fsdp -o without
  grep -qE 'gpus-per|ngpus' "$here"/without/ranks-*.sh && fail "requests GPUs unasked"
  grep -q -- ' --ranks 8 --strategy fsdp ' "$here"/jobs/ranks-8.sh || fail "launches do not get what was asked for"
}
expect_gpus slurm '#SBATCH --gpus-per-node=2' '#SBATCH --exclusive' '#SBATCH --job-name=quick_study-ranks-8' \
  '#SBATCH --hint=nomultithread' '=(srun --kill-on-bad-exit=1 '
expect_gpus flux '# flux: --gpus-per-slot=1' '--gpus-per-task=1 -o gpu-affinity=off)' '# flux: --exclusive'
expect_gpus pbs ':ompthreads=1:ngpus=2' '#PBS -N quick_study-ranks-8' ':excl'

study wrong
good=(jobs study.toml --scheduler slurm --ranks-per-node 2 -o jobs)
rejects '--scheduler is required' jobs study.toml -o jobs
rejects 'needs --ranks-per-node' jobs study.toml --scheduler slurm -o jobs
rejects '--ranks-per-node: 0 must be a whole number of at least 1' jobs study.toml --scheduler slurm --ranks-per-node 0 -o jobs
rejects '-o = .: must be a new or empty directory' jobs study.toml --scheduler slurm --ranks-per-node 2 -o .
rejects 'must be a path without spaces' jobs study.toml --scheduler slurm --ranks-per-node 2 -o 'a b'
rejects '--max-time = 1: must be at least 3, the minutes that a case may take' "${good[@]}" --max-time 1
printf '#!/bin/sh\n#SBATCH -n @rank@\n@run@\n' > "$here/site.template"
rejects '--template = site.template:2: unknown placeholder @rank@; must be one of @cpus_per_node@,' "${good[@]}" \
  --template site.template
printf '#!/bin/sh\n' > "$here/site.template"
rejects 'must contain @run@' "${good[@]}" --template site.template
rejects '--template = none: cannot be read' "${good[@]}" --template none
expect_files site.template study.toml

conclude
