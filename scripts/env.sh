#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck source-path=SCRIPTDIR
# Sourced by bash or zsh: `source scripts/env.sh`. This shell then finds the programs of build/release, completes their
# commands and options, and shows their manual pages. Open MPI starts more ranks than there are cores, and starts as root.
_tessera_root=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")/.." && pwd)
case :$PATH: in
  *:$_tessera_root/build/release/bin:*) ;;
  *)
    export PATH=$_tessera_root/build/release/bin:$PATH
    # An empty entry at the end stands for the manual pages of the system.
    export MANPATH=$_tessera_root/build/release/man:${MANPATH:-}
    ;;
esac
if [ -n "${ZSH_VERSION:-}" ]; then autoload -U +X compinit bashcompinit && compinit && bashcompinit; fi
# shellcheck source=completion.bash
. "$_tessera_root/scripts/completion.bash"
unset _tessera_root

# The first variable is for Open MPI 4, the second one for Open MPI 5. Other MPI libraries ignore both.
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
# Containers run commands as root.
if [ "${EUID:-1}" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
