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
  -o DIR        directory for the results (results/NAME, after the study file)

Cases with different numbers of threads per rank run in separate launches, which add to the same results. If a case
crashes or stalls, it is recorded as failed, and another launch runs the other cases.
All other arguments are passed on, for example: scripts/study.sh inputs/strong_scaling.toml --resume
TEXT
}

# waiting_threads SUMMARY: prints the numbers of threads that pending cases need.
waiting_threads() {
  python3 - "$1" <<'PYTHON'
import json, sys
cases = json.load(open(sys.argv[1]))["cases"]
threads = {case["factors"].get("distributed.threads") for case in cases if case["status"] == "pending"}
print(*sorted(threads - {None}))
PYTHON
}

# shellcheck source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
# shellcheck source=jobs/until_done.sh
source "$root/scripts/jobs/until_done.sh"
take_arguments "$@"
input=${input:-$root/inputs/quick_study.toml}
results=${results:-results/$(basename "$input" .toml)}
install_missing dnnl HDF5C Matplotlib
build release tessera_bench_cli

# run_all [option...]: launches the study until a launch completes, and sets status. A case that ended a launch is not
# tried again.
run_all() {
  status=0
  until_done "$results" 1 launch tessera-bench run "$input" -o "$results" "$@" "${options[@]}" || status=$?
}
run_all

# The report shows failed cases as well.
if [[ -f $results/summary.json ]]; then
  for threads in $(waiting_threads "$results/summary.json"); do
    say "Running the cases with $threads threads per rank"
    OMP_NUM_THREADS=$threads run_all --resume
  done
  say "Writing the report to $results/report"
  "$root/scripts/report.py" "$results" || say "No report was written, see above; the results are in $results"
fi
exit "$status"
