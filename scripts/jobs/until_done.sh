# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by scripts/study.sh and by the jobs that `tessera-bench jobs` writes.

# results_of RESULTS COMMAND...: prints the references, and the results of the cases that COMMAND names with --case=ID, or
# of all cases. Other jobs may write to the same directory.
results_of() {
  local results=$1 word
  local -a files=()
  for word in "${@:2}"; do
    if [[ $word == --case=* ]]; then files+=("$results/cases/${word#--case=}/result.json"); fi
  done
  if ((${#files[@]} == 0)); then files=("$results"/cases/*/result.json); fi
  cat "$results"/references/*.json "${files[@]}" 2>/dev/null
}

# forget_running RESULTS COMMAND...: sets the running case back to pending, because the end of the job stopped it.
forget_running() {
  local word
  for word in "${@:2}"; do
    if [[ $word != --case=* ]]; then continue; fi
    sed -i 's/^  "status": "running"/  "status": "pending"/' "$1/cases/${word#--case=}/result.json" 2>/dev/null || true
  done
}

# retry_once COMMAND...: sets `once` to the command without --retry.
retry_once() {
  local word skip=''
  once=()
  for word in "$@"; do
    if [[ -n $skip ]]; then
      skip=''
    elif [[ $word == --retry ]]; then
      skip=1
    elif [[ $word != --retry=* ]]; then
      once+=("$word")
    fi
  done
}

# until_done RESULTS LOST COMMAND...: runs COMMAND, a launch of `tessera-bench run ... -o RESULTS`, until a launch completes,
# and returns its exit code. If a launch ends early in a case, the next launch runs the other cases. After LOST such launches
# the case is recorded as failed. A launch that has begun no case and no reference is the last one. After SIGTERM, which
# schedulers send at the time limit of a job, the shell exits, and the next job continues.
until_done() {
  local results=$1 lost=$2 output before status restarts=0 told=''
  local -a again=()
  shift 2
  output=$(mktemp)
  trap 'told=1' TERM
  while :; do
    before=$(results_of "$results" "$@" | cksum)
    "$@" "${again[@]}" | tee "$output"
    status=${PIPESTATUS[0]}
    if grep '^RESULT: ' "$output" | grep -qv 'use --resume to run the other cases$'; then break; fi
    if [[ -n $told ]] || ((status == 128 + 15)); then
      rm -f "$output"
      forget_running "$results" "$@"
      exit $((128 + 15))
    fi
    if [[ $(results_of "$results" "$@" | cksum) == "$before" ]]; then break; fi
    # Each case and reference may end LOST launches. More of them have another cause.
    if ((++restarts > lost * $(find "$results" -name result.json -o -path '*/references/*.json' | wc -l))); then break; fi
    printf -- '-- The launch ended early; going on with the other cases\n'
    again=(--resume --give-up "$lost")
    retry_once "$@"
    set -- "${once[@]}"
  done
  rm -f "$output"
  trap - TERM
  return "$status"
}
