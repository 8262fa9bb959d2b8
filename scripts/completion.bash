# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completes the subcommands, options and values that tessera, tessera-bench and tessera-micro print with --help, also behind
# mpirun.

# Prints the subcommands that a help text lists.
_tessera_subcommands() { sed -nE '/^Subcommands:/,/^$/s/^  ([a-z]+) .*/\1/p' <<<"$1" | tr '\n' ' '; }

_tessera() {
  local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} word help='' words=''
  local -a command=()
  # "--option=value" is three words.
  if [[ $current == = ]]; then
    current=''
  elif [[ $option == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for word in "${COMP_WORDS[@]:0:$COMP_CWORD}"; do
    if [[ -z $help ]]; then
      [[ ${word##*/} =~ ^tessera(-bench|-micro)?$ ]] || continue
    elif [[ " $(_tessera_subcommands "$help")" != *" $word "* ]]; then
      break
    fi
    command+=("$word")
    help=$("${command[@]}" --help 2>/dev/null) || return 0
  done
  if [[ $current == -* ]]; then
    words=$(sed -nE 's/^(benchmark)? +\[?(-[a-z],)?(--[a-z_-]+).*/\3/p' <<<"$help")
  elif [[ $option == -* ]]; then
    words=$(sed -nE "s/^ +(-[a-z],)?$option [^ ]*\{(.*)\}.*/\2/p" <<<"$help" | tr ',' ' ')
  elif [[ -n $help && $option == "${command[-1]}" ]]; then
    words=$(_tessera_subcommands "$help")
  fi
  # shellcheck disable=SC2207 # words have no spaces; zsh has no mapfile
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _tessera tessera tessera-bench tessera-micro mpirun
