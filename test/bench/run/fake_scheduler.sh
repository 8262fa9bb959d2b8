#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stands in for sbatch, srun, flux, qsub and mpiexec, by the name that it is called with. A job is run at once, on the
# processors that are there. $FAKE_LOG gets a line with the requests of each job and launch; a launch must fit into its
# job. Environment:
#   FAKE_LOG    a file
#   FAKE_MPI    the command that starts ranks, without their number
#   FAKE_LIMIT  if set, a job's time is over once so many of its cases have been begun
#   FAKE_BAD    if set, the launcher kills ranks that run this case
set -u
die() { echo "fake ${0##*/}: $*" >&2 && exit 90; }

# value NAME ARGUMENT...: prints VALUE of the argument --NAME=VALUE.
value() {
  local name=$1 argument
  shift
  for argument in "$@"; do if [[ $argument == --$name=* ]]; then echo "${argument#*=}" && return; fi; done
  die "no --$name in: $*"
}

# directives PATTERN FILE: prints the text after the pattern in the lines before the first command.
directives() { sed -n "/^[^#]/q; s/^$1 *//p" "$2"; }

begun_cases() { cat results/launches/*.journal 2> /dev/null | grep -o '"begin":"data[^"]*"' | sort -u | wc -l; }

# run_job FILE NODES RANKS PER_NODE THREADS MINUTES LOG: checks the requests and runs the job.
run_job() {
  local file=$1 nodes=$2 ranks=$3 per_node=$4 threads=$5 minutes=$6 log=$7
  ((nodes * per_node >= ranks && (nodes - 1) * per_node < ranks)) || die "$ranks ranks on $nodes nodes of $per_node"
  ((minutes > 0 && threads > 0)) || die "$minutes minutes, $threads threads"
  [[ -d ${log%/*} ]] || die "no directory for $log"
  echo "job ${file##*/} nodes=$nodes ranks=$ranks per_node=$per_node threads=$threads minutes=$minutes" >> "$FAKE_LOG"
  local before
  before=$(begun_cases)
  # The script runs from another place, and all processes of a job get a signal at the end of its time, as with real schedulers.
  cp "$file" "$FAKE_LOG.script"
  FAKE_RANKS=$ranks FAKE_THREADS=$threads FAKE_RESULTS=$PWD/results setsid bash "$FAKE_LOG.script" > "$log" 2>&1 &
  local job=$! status=0
  if [[ -n ${FAKE_LIMIT:-} ]]; then
    while kill -0 $job 2> /dev/null && (($(begun_cases) - before < FAKE_LIMIT)); do sleep 0.02; done
    kill -TERM -- "-$job" 2> /dev/null
  fi
  wait $job || status=$?
  echo "end ${file##*/} status=$status" >> "$FAKE_LOG"
}

# kill_in_bad_case LAUNCHER: kills its ranks once they run the case. The ranks of Hydra are children of its proxy.
kill_in_bad_case() {
  local before
  # begun: prints how often launches have begun the case.
  begun() { cat "$FAKE_RESULTS"/launches/*.journal 2> /dev/null | grep -c "\"begin\":\"$FAKE_BAD\""; }
  before=$(begun)
  while kill -0 "$1" 2> /dev/null; do
    if [[ $(begun) != "$before" ]]; then
      pkill -KILL -P "$(pgrep -d, -P "$1")" && return
      pkill -KILL -P "$1" && return
    fi
    sleep 0.005
  done
}

# run_ranks NUMBER COMMAND...: starts the ranks.
run_ranks() {
  local number=$1 mpi
  shift
  [[ $number == "${FAKE_RANKS:-}" ]] || die "$number ranks in a job of ${FAKE_RANKS:-none}"
  [[ $OMP_NUM_THREADS == "$FAKE_THREADS" ]] || die "$OMP_NUM_THREADS threads in a job of $FAKE_THREADS"
  echo "launch ranks=$number" >> "$FAKE_LOG"
  read -r -a mpi <<< "$FAKE_MPI"
  if [[ -n ${FAKE_BAD:-} ]]; then kill_in_bad_case $$ & fi
  exec "${mpi[@]}" "$number" "$@"
}

# launch ARGUMENT...: starts the ranks of --ntasks=N; the command follows the options.
launch() {
  local ranks
  ranks=$(value ntasks "$@") || exit
  while [[ ${1:-} == --* ]]; do shift; done
  run_ranks "$ranks" "$@"
}

case ${0##*/} in
  sbatch)
    mapfile -t given < <(directives '#SBATCH' "$1")
    ranks=$(value ntasks "${given[@]}") && log=$(value output "${given[@]}") || exit
    run_job "$1" "$(value nodes "${given[@]}")" "$ranks" "$(value ntasks-per-node "${given[@]}")" \
      "$(value cpus-per-task "${given[@]}")" "$(value time "${given[@]}")" "${log/\%j/$$}"
    ;;
  flux)
    kind=$1
    shift
    case $kind in
      run) launch "$@" ;;
      batch)
        mapfile -t given < <(directives '# flux:' "$1")
        ranks=$(value nslots "${given[@]}") && nodes=$(value nodes "${given[@]}") && time=$(value time-limit "${given[@]}") &&
          log=$(value output "${given[@]}") || exit
        [[ $time == *m ]] || die "time limit $time"
        run_job "$1" "$nodes" "$ranks" $(((ranks + nodes - 1) / nodes)) "$(value cores-per-slot "${given[@]}")" "${time%m}" \
          "${log/'{{id}}'/$$}"
        ;;
      *) die "flux $kind" ;;
    esac
    ;;
  srun) launch "$@" ;;
  qsub)
    mapfile -t given < <(directives '#PBS' "$1")
    IFS=' :=' read -r _ _ nodes _ cpus _ per_node _ threads < <(printf '%s\n' "${given[@]}" | grep '^-l select')
    IFS=' :=' read -r _ _ hours minutes _ < <(printf '%s\n' "${given[@]}" | grep '^-l walltime')
    log=$(printf '%s\n' "${given[@]}" | sed -n 's/^-o //p')
    ((cpus == per_node * threads)) || die "$cpus processors for $per_node ranks of $threads threads"
    ranks=$(sed -n 's/^launcher=(mpiexec -n \([0-9]*\))$/\1/p' "$1")
    run_job "$1" "$nodes" "$ranks" "$per_node" "$threads" $((10#$hours * 60 + 10#$minutes)) "$log/${1##*/}.o$$"
    ;;
  mpiexec)
    [[ $1 == -n ]] || die "$*"
    run_ranks "${@:2}"
    ;;
  *) die "unknown name" ;;
esac
