#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck source-path=SCRIPTDIR
usage() {
  cat <<'TEXT'
usage: scripts/test.sh [--only PART] [options of ctest]

Installs missing dependencies (see scripts/setup.sh), then builds and runs
  release: all tests, in build/release,
  asan: the unit tests on 1 and 2 ranks with address and undefined-behaviour sanitizers, in build/asan,
  cuda, if nvcc is installed, for GPUs of TESSERA_CUDA_ARCH (HOPPER90): all tests in build/cuda if there is a GPU;
    otherwise all device code compiles, and the command links and starts, in build/cuda-compile.
While the tests of a part run, the next parts are built with the processor time that they leave; their output is in
build/PART.log. Test counts of each part are printed at the end. The exit code is nonzero if anything failed.

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
install_missing dnnl HDF5C Matplotlib Pandas Chromium Iproute2 Help2man Patchelf ClangFormat ClangTidy Doxygen PythonProtobuf
cd "$root"
asked=" ${parts[*]} "
if [[ -n $no_cuda ]]; then mapfile -t parts < <(printf '%s\n' "${parts[@]}" | grep -v '^cuda'); fi

build_part() {
  case $1 in
    style) build release tessera_build_info ;;
    cuda*) use_cuda_kokkos && build "$1" ;;
    *) build "$1" ;;
  esac
}

# Builds parts one after another in the background, in a process group of its own, which ends with the script. The exit
# code of each build is a line of the file descriptor $builds.
build_beside_tests() {
  set -m
  coproc builder {
    renice -n 19 -p "$BASHPID" >/dev/null
    set +e
    for part in "$@"; do
      (set -e; build_part "$part") >"build/$part.log" 2>&1
      echo $?
    done
  }
  set +m
  # shellcheck disable=SC2154  # set by coproc, and forgotten when the builder ends
  builders=$builder_PID
  exec {builds}<&"${builder[0]}"
  trap 'kill -- "-$builders" 2>/dev/null || true' EXIT
}

# test_part PRESET LOG [option...]: two tests run at a time for each core, because many mostly wait.
test_part() {
  ctest --preset "$1" -j "$((2 * jobs))" "${@:3}" "${options[@]}" 2>&1 | tee "$2"
}

# Every part runs even after a failure, so that one run shows all of them.
results=
status=0
build_part "${parts[0]}" && built=0 || built=$?
if ((${#parts[@]} > 1)); then build_beside_tests "${parts[@]:1}"; fi
for ((i = 0; i < ${#parts[@]}; ++i)); do
  part=${parts[i]}
  if ((i > 0)); then
    say "Waiting for the build of $part; see build/$part.log"
    read -r built <&"$builds" || built=1
  fi
  if ((built != 0)); then
    if ((i > 0)); then tail -n 40 "build/$part.log"; fi
    results+=$(printf '\n%-13s the build failed' "$part")
    status=1
    continue
  fi
  preset=$part
  selection=()
  case $part in
    style) preset=release selection=(-L '^style$') ;;
    cuda*) use_cuda_kokkos ;;
  esac
  log=build/$preset/ctest.log
  say "Testing $part"
  test_part "$preset" "$log" "${selection[@]}" || status=1
  results+=$(printf '\n%-13s %s' "$part" "$(grep -E '^[0-9]+% tests passed|^No tests' "$log" || echo "ctest ended early")")
done
if [[ -n $no_cuda && $asked == *" $cuda "* ]]; then results+=$(printf '\n%-13s %s' "$cuda" "$no_cuda"); fi
echo "$results"
exit "$status"
