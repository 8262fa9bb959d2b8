#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck source-path=SCRIPTDIR
usage() {
  cat <<'TEXT'
usage: scripts/bench_smoke.sh [--quick] [--ranks N] [options of tessera-smoke]

Installs what is missing (see scripts/setup.sh), builds in build/release and measures in one launch: the
tutorial, the step of a large network, alone and on all ranks, and all-reduces beside plain MPI. Prints a
table of medians with goals and ratios; bench/README.md says how each number is made.

  --quick      5 measurements of each kind (30)
  --ranks N    number of MPI ranks (2)

All other arguments are passed on, for example: scripts/bench_smoke.sh --set training.batch_size=512
TEXT
}

ranks=2
declare -a options=()
while (($# > 0)); do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --quick) options+=(--steps 5) ;;
    --ranks) ranks=${2:-}; shift ;;
    --ranks=*) ranks=${1#*=} ;;
    *) options+=("$1") ;;
  esac
  shift || { echo "error: --ranks needs a number" >&2; exit 1; }
done
# shellcheck source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
require_ranks "$ranks"
install_missing
build release tessera_smoke

# One core for each rank where there are enough: a rank that wanders loses its caches.
declare -a launch=(mpirun -n "$ranks")
if is_open_mpi; then
  if ((ranks <= jobs)); then launch+=(--bind-to core); else launch+=(--oversubscribe --bind-to none); fi
elif ((ranks <= jobs)) && [[ $(mpirun --version 2>&1) == *HYDRA* ]]; then
  launch+=(-bind-to core)
fi
say "${launch[*]} build/release/bin/tessera-smoke ${options[*]}"
exec "${launch[@]}" "$root/build/release/bin/tessera-smoke" --inputs "$root/inputs" "${options[@]}"
