# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completes the subcommands and options that tessera, tessera-bench and tessera-micro print with --help.
_tessera() {
  local current=${COMP_WORDS[COMP_CWORD]} subcommand='' help words=''
  if ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} != -* ]]; then subcommand=${COMP_WORDS[1]}; fi
  help=$("${COMP_WORDS[0]}" ${subcommand:+"$subcommand"} --help 2>/dev/null) || return 0
  if [[ $current == -* ]]; then
    words=$(sed -nE 's/^(benchmark)? +\[?(-[a-z],)?(--[a-z_-]+).*/\3/p' <<<"$help")
  elif ((COMP_CWORD == 1)); then
    words=$(sed -nE '/^Subcommands:/,/^$/s/^  ([a-z]+) .*/\1/p' <<<"$help")
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _tessera tessera tessera-bench tessera-micro
