#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck source-path=SCRIPTDIR
usage() {
  cat <<'TEXT'
usage: scripts/test.sh [--release-only] [options of ctest]

Installs missing dependencies (see scripts/setup.sh), then builds and runs
  all tests in build/release,
  the serial and 2-rank tests in build/asan, with address and undefined-behaviour sanitizers, and
  if nvcc is installed, for GPUs of TESSERA_CUDA_ARCH (HOPPER90): all tests in build/cuda if there is a GPU; otherwise
  everything compiles and links in build/cuda-compile, and the tests that install, link and start the programs run.
Prints the test counts of each build at the end. The exit code is nonzero if anything failed.

  --release-only    only build/release

All other arguments are passed to ctest, for example: scripts/test.sh -R mesh
TEXT
}

presets=(release asan cuda-compile)
if nvidia-smi -L &>/dev/null; then presets[2]=cuda; fi
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
no_cuda=
if [[ -n $(find_kokkos) ]]; then no_cuda="skipped: for a Kokkos of your own, use the preset cuda"; fi
if ! command -v nvcc >/dev/null; then no_cuda="skipped: no nvcc in PATH"; fi
install_missing dnnl ParallelHDF5 Matplotlib Chromium Iproute2 PyYAML Help2man
cd "$root"

# Every preset is built and run even after a failure, so that one run shows all of them.
results=
status=0
for preset in "${presets[@]}"; do
  log=build/$preset/ctest.log
  result="the build failed"
  if [[ $preset == cuda* && -n $no_cuda ]]; then
    result=$no_cuda
  elif { [[ $preset != cuda* ]] || use_cuda_kokkos; } && build "$preset"; then
    say "Testing build/$preset"
    ctest --preset "$preset" -j "$jobs" "${options[@]}" 2>&1 | tee "$log" || status=1
    result=$(grep -E '^[0-9]+% tests passed|^No tests' "$log" || echo "ctest ended early")
  else
    status=1
  fi
  results+=$(printf '\n%-13s %s' "$preset" "$result")
done
echo "$results"
exit "$status"
