#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck source-path=SCRIPTDIR
usage() {
  cat <<'TEXT'
usage: scripts/test.sh [--release-only] [options of ctest]

Installs missing dependencies (see scripts/setup.sh), then builds and runs
  all tests in build/release, and
  the tests on one process and on 2 ranks in build/asan, with address and undefined-behaviour sanitizers.
Prints the test counts of both at the end. The exit code is not 0 if anything failed.

  --release-only    skip build/asan

All other arguments are passed to ctest, for example: scripts/test.sh -R mesh
TEXT
}

presets=(release asan)
declare -a options=()
for argument in "$@"; do
  case $argument in
    -h | --help) usage; exit 0 ;;
    --release-only) presets=(release) ;;
    *) options+=("$argument") ;;
  esac
done

# A selection by the user may be empty in one of the two.
if ((${#options[@]} > 0)); then options+=(--no-tests=ignore); fi

# shellcheck source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
install_missing Matplotlib Chromium PyYAML Help2man
cd "$root"

# Every preset is built and run even after a failure, so that one run shows all of them.
results=
status=0
for preset in "${presets[@]}"; do
  log=build/$preset/ctest.log
  result="the build failed"
  if build "$preset"; then
    say "Testing build/$preset"
    ctest --preset "$preset" -j "$jobs" "${options[@]}" 2>&1 | tee "$log" || status=1
    result=$(grep -E '^[0-9]+% tests passed|^No tests' "$log" || echo "ctest ended early")
  else
    status=1
  fi
  results+=$(printf '\n%-8s %s' "$preset" "$result")
done
echo "$results"
exit "$status"
