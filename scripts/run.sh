#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck source-path=SCRIPTDIR
usage() {
  cat <<'TEXT'
usage: scripts/run.sh [--ranks N] [FILE.toml] [options of `tessera run`]

Installs missing dependencies (see scripts/setup.sh), builds the programs in build/release and runs tessera with mpirun.
The ranks share the cores evenly, and each runs one thread per core.

  --ranks N    number of MPI ranks (4)
  FILE.toml    what to run (inputs/tutorial.toml)

All other arguments are passed on, for example: scripts/run.sh --ranks 2 --set training.num_epochs=5
TEXT
}

# shellcheck source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
take_arguments "$@"
install_missing dnnl HDF5C Help2man Matplotlib
build release tessera_install
launch tessera run "${input:-$root/inputs/tutorial.toml}" ${results:+-o "$results"} "${options[@]}"
