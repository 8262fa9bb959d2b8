# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by scripts/study.sh and by the jobs that `tessera-bench jobs` writes.

# begun RESULTS COMMAND...: prints a line for each round that launches have begun, of references and of the cases that
# COMMAND names with --case=ID, or of all cases. Other jobs may write to the same directory.
begun() {
  local results=$1 word
  local -a names=()
  shift
  for word in "$@"; do
    if [[ $word == --case=* ]]; then names+=(-e "\"begin\":\"${word#--case=}\""); fi
  done
  if ((${#names[@]} == 0)); then names=(-e '"begin":'); else names+=(-e '"begin":"reference-'); fi
  cat "$results"/launches/*.journal 2>/dev/null | grep -oF "${names[@]}"
}

# retry_once COMMAND...: sets `once` to the command without --retry and --give-up, and `lost` to the number of --give-up.
retry_once() {
  local word option=''
  once=()
  for word in "$@"; do
    case $option$word in
      --retry | --give-up) option=$word= && continue ;;
      --retry=*) ;;
      --give-up=*) lost=${word#--give-up=} ;;
      *) once+=("$word") ;;
    esac
    option=''
  done
}

# until_done RESULTS LOST COMMAND...: runs COMMAND, a launch of `tessera-bench run ... -o RESULTS`, until a launch completes,
# and returns its exit code. If a launch ends early in a case, the next launch runs the other cases. After LOST such launches,
# or as many as COMMAND gives with --give-up, the case is recorded as failed. A launch that has begun no case and no reference
# is the last one. After SIGTERM, which schedulers send at the time limit of a job, the shell exits, and the next job continues.
until_done() {
  local results=$1 lost=$2 output before now status restarts=0 told=''
  local -a again=()
  shift 2
  output=$(mktemp)
  trap 'told=1' TERM
  before=$(begun "$results" "$@" | wc -l)
  while :; do
    "$@" "${again[@]}" | tee "$output"
    status=${PIPESTATUS[0]}
    if grep '^RESULT: ' "$output" | grep -qv 'use --resume to run the other cases$'; then break; fi
    if [[ -n $told ]] || ((status == 128 + 15)); then
      rm -f "$output"
      exit $((128 + 15))
    fi
    now=$(begun "$results" "$@" | wc -l)
    if ((now == before)); then break; fi
    before=$now
    # Each case and reference may end LOST launches. More of them have another cause.
    if ((++restarts > lost * $(begun "$results" "$@" | sort -u | wc -l))); then break; fi
    printf -- '-- The launch ended early; going on with the other cases\n'
    retry_once "$@"
    again=(--resume --give-up "$lost")
    set -- "${once[@]}"
  done
  rm -f "$output"
  trap - TERM
  return "$status"
}
