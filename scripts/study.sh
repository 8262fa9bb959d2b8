#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck source-path=SCRIPTDIR
usage() {
  cat <<'TEXT'
usage: scripts/study.sh [--ranks N] [STUDY.toml] [-o DIR] [options of `tessera-bench run`]

Installs missing dependencies (see scripts/setup.sh), builds tessera-bench in build/release, runs a study and
writes a report on its results.

  --ranks N     number of MPI ranks (4)
  STUDY.toml    study to run (inputs/quick_study.toml)
  -o DIR        directory for the results (results/ plus the name of the study)

All other arguments are passed on, for example: scripts/study.sh inputs/strong_scaling.toml --resume
TEXT
}

ranks=4
study=
results=
declare -a options=()
while (($# > 0)); do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --ranks) ranks=${2:-}; shift ;;
    --ranks=*) ranks=${1#*=} ;;
    -o | --output) results=${2:-}; shift ;;
    *.toml) if ((${#options[@]} == 0)) && [[ -z $study ]]; then study=$1; else options+=("$1"); fi ;;
    *) options+=("$1") ;;
  esac
  shift || { echo "error: the last option needs a value" >&2; exit 1; }
done
# shellcheck source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
require_ranks "$ranks"
study=${study:-$root/inputs/quick_study.toml}
results=${results:-results/$(basename "$study" .toml)}
install_missing Matplotlib
build release tessera_bench_cli

# One core per rank if there are enough: a rank that migrates loses its caches.
declare -a launch=(mpirun -n "$ranks")
if is_open_mpi; then
  if ((ranks <= jobs)); then launch+=(--bind-to core); else launch+=(--oversubscribe --bind-to none); fi
fi
say "${launch[*]} build/release/bin/tessera-bench run $study -o $results ${options[*]}"
status=0
"${launch[@]}" "$root/build/release/bin/tessera-bench" run "$study" -o "$results" "${options[@]}" || status=$?

# Failed cases belong in the report as well.
if [[ -f $results/summary.json && -x $root/scripts/report.py ]]; then
  "$root/scripts/report.py" "$results" || say "No report was written, see above; the results are in $results"
fi
exit "$status"
