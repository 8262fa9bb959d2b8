# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by scripts/study.sh and by the jobs that `tessera-bench jobs` writes.

# results_of RESULTS COMMAND...: the references, and the results of the cases that COMMAND names with --case=ID, or of all
# cases. Other jobs may be writing to the same directory.
results_of() {
  local results=$1 word
  local -a files=()
  for word in "${@:2}"; do
    if [[ $word == --case=* ]]; then files+=("$results/cases/${word#--case=}/result.json"); fi
  done
  if ((${#files[@]} == 0)); then files=("$results"/cases/*/result.json); fi
  cat "$results"/references/*.json "${files[@]}" 2>/dev/null
}

# forget_running RESULTS COMMAND...: takes back what the launch has noted of the case that it was in. Its time was over; the
# case has not ended it.
forget_running() {
  local word
  for word in "${@:2}"; do
    if [[ $word != --case=* ]]; then continue; fi
    sed -i 's/^  "status": "running"/  "status": "pending"/' "$1/cases/${word#--case=}/result.json" 2>/dev/null || true
  done
}

# retry_once COMMAND...: sets once to the command without --retry.
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

# until_done RESULTS LOST COMMAND...: runs COMMAND, a launch of `tessera-bench run ... -o RESULTS`, until a launch has
# come to its end. One that ends early has ended in some case; the next one runs the other cases, and records this case
# as failed once LOST launches have ended in it. Nothing is started again when a launch has begun no case and no
# reference. When the launch or this shell is told to stop (SIGTERM), as schedulers do when a job's time is over, the
# shell ends: the next job goes on. Returns the exit code of the last launch.
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
    # Each early end counts against a case or a reference; more of them would have another cause.
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
