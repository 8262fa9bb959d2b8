#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck source-path=SCRIPTDIR
usage() {
  cat <<'TEXT'
usage: scripts/run.sh [--ranks N] [FILE.toml] [options of `tessera run`]

Installs missing dependencies (see scripts/setup.sh), builds Tessera in build/release and runs it with mpirun.

  --ranks N    number of MPI ranks (4)
  FILE.toml    what to run (inputs/tutorial.toml)

All other arguments are passed on, for example: scripts/run.sh --ranks 2 --set training.num_epochs=5
TEXT
}

ranks=4
input=
declare -a options=()
while (($# > 0)); do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --ranks) ranks=${2:-}; shift ;;
    --ranks=*) ranks=${1#*=} ;;
    # A file is an argument of its own; what follows an option belongs to that option.
    *.toml) if ((${#options[@]} == 0)) && [[ -z $input ]]; then input=$1; else options+=("$1"); fi ;;
    *) options+=("$1") ;;
  esac
  shift || { echo "error: --ranks needs a number" >&2; exit 1; }
done
# shellcheck source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
require_ranks "$ranks"
install_missing
build release tessera_cli

declare -a launch=(mpirun -n "$ranks")
if ((ranks > jobs)) && is_open_mpi; then
  launch+=(--oversubscribe)
fi
say "${launch[*]} build/release/bin/tessera run ${input:-inputs/tutorial.toml} ${options[*]}"
exec "${launch[@]}" "$root/build/release/bin/tessera" run "${input:-$root/inputs/tutorial.toml}" \
  "${options[@]}"
