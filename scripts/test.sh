#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck source-path=SCRIPTDIR
usage() {
  cat <<'TEXT'
usage: scripts/test.sh [--only PART] [options of ctest]

Installs missing dependencies (see scripts/setup.sh), then builds and runs
  release: all tests, in build/release,
  asan: the serial and 2-rank tests with address and undefined-behaviour sanitizers, in build/asan,
  cuda, if nvcc is installed, for GPUs of TESSERA_CUDA_ARCH (HOPPER90): all tests in build/cuda if there is a GPU;
    otherwise the library and the programs compile, link and start in build/cuda-compile.
It prints what runs and how long is left, and the test counts of each part at the end. The exit code is nonzero if
anything failed.

  --only PART       release, asan, cuda, or style: the tests of release that need no build (format, clang-tidy,
                    documentation, shape of the sources)
  --release-only    the same as --only release

All other arguments are passed to ctest, for example: scripts/test.sh --only release -R mesh
TEXT
}

cuda='cuda-compile'
if nvidia-smi -L &>/dev/null; then cuda='cuda'; fi
parts=(release asan "$cuda")
declare -a options=()
while (($# > 0)); do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --release-only) parts=(release) ;;
    --only)
      case ${2:-} in
        release | asan | style) parts=("$2") ;;
        cuda) parts=("$cuda") ;;
        *) echo "error: --only '${2:-}': must be release, asan, cuda or style" >&2; exit 1 ;;
      esac
      shift ;;
    *) options+=("$1") ;;
  esac
  shift
done

# The user's selection may be empty in one of the parts.
if ((${#options[@]} > 0)); then options+=(--no-tests=ignore); fi

# shellcheck source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
no_cuda=
if [[ -n $(find_kokkos) ]]; then no_cuda="skipped: for a Kokkos of your own, use the preset cuda"; fi
if ! command -v nvcc >/dev/null; then no_cuda="skipped: no nvcc in PATH"; fi
install_missing dnnl HDF5C Matplotlib Pandas Chromium Iproute2 Help2man Patchelf ClangFormat ClangTidy Doxygen
cd "$root"
asked=" ${parts[*]} "
if [[ -n $no_cuda ]]; then mapfile -t parts < <(printf '%s\n' "${parts[@]}" | grep -v '^cuda'); fi

# Seconds of the steps: those of the last run here, which build/test_times has, or else those of two cores.
declare -A seconds=([release.build]=270 [release.tests]=480 [asan.build]=220 [asan.tests]=130 [style.tests]=80
  [cuda.build]=700 [cuda.tests]=900 [cuda-compile.build]=300 [cuda-compile.tests]=40)
mkdir -p build
times=build/test_times
if [[ -f $times ]]; then
  while read -r step value; do seconds[$step]=$value; done <"$times"
fi
todo=()
for part in "${parts[@]}"; do
  if [[ $part != style ]]; then todo+=("$part.build"); fi
  todo+=("$part.tests")
done

# minutes_left SECONDS: how long the steps of todo take, if the first one has run for so long.
minutes_left() {
  local step sum=0
  for step in "${todo[@]}"; do sum=$((sum + seconds[$step])); done
  local of_first=${seconds[${todo[0]}]}
  echo "$(((sum - ($1 < of_first ? $1 : of_first) + 59) / 60)) min left"
}

# run_step COMMAND...: runs the command as the first step of todo, says every minute how long is left, and notes the
# time if it succeeds. The times of a part of the tests are not noted.
run_step() {
  local begin=$SECONDS step=${todo[0]} status=0 clock
  say "$step: $(minutes_left 0)"
  (while sleep 60 >/dev/null 2>&1; do say "$step: $(minutes_left $((SECONDS - begin)))"; done) &
  clock=$!
  "$@" || status=$?
  kill "$clock"
  wait "$clock" 2>/dev/null || true
  if ((status == 0 && ${#options[@]} == 0)); then seconds[$step]=$((SECONDS - begin)); fi
  todo=("${todo[@]:1}")
  return "$status"
}

# shellcheck disable=SC2317 # run_step calls these
build_part() {
  case $1 in
    # Without a GPU only what users run is compiled: the tests could not run.
    cuda-compile) use_cuda_kokkos && build "$1" tessera_install ;;
    cuda) use_cuda_kokkos && build "$1" ;;
    *) build "$1" ;;
  esac
}

# test_part PRESET LOG [option...]: two tests run at a time for each core, because many mostly wait.
# shellcheck disable=SC2317
test_part() {
  ctest --preset "$1" -j "$((2 * jobs))" "${@:3}" "${options[@]}" 2>&1 | tee "$2"
}

trap 'jobs -p | xargs -r kill' EXIT

# Every part runs even after a failure, so that one run shows all of them.
results=
status=0
for part in "${parts[@]}"; do
  preset=$part
  selection=()
  if [[ $part == style ]]; then
    preset=release
    selection=(-L '^style$')
    build release tessera_build_info
  elif ! run_step build_part "$part"; then
    results+=$(printf '\n%-13s the build failed' "$part")
    todo=("${todo[@]:1}")
    status=1
    continue
  fi
  log=build/$preset/ctest.log
  run_step test_part "$preset" "$log" "${selection[@]}" || status=1
  results+=$(printf '\n%-13s %s' "$part" "$(grep -E '^[0-9]+% tests passed|^No tests' "$log" || echo "ctest ended early")")
done
if [[ -n $no_cuda && $asked == *" $cuda "* ]]; then results+=$(printf '\n%-13s %s' "$cuda" "$no_cuda"); fi
for step in "${!seconds[@]}"; do echo "$step ${seconds[$step]}"; done >"$times"
echo "$results"
exit "$status"
