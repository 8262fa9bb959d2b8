#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck source-path=SCRIPTDIR
usage() {
  cat <<'TEXT'
usage: scripts/peers.sh [options of bench/peers/peers.py]

Builds tessera and tessera-bench in build/release, installs PyTorch and JAX in their own Python environment, build/peers,
and measures the same training steps in each of them, in turn, on the same cores. Prints medians and ratios.
With --device cuda it builds in build/cuda instead, for TESSERA_CUDA_ARCH (HOPPER90), and compares with PyTorch alone.

TEXT
  python3 "$root/bench/peers/peers.py" --help | sed '1,/^opt/d'
}

# shellcheck source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  usage
  exit 0
fi
install_missing dnnl HDF5C
preset=release
if [[ " $* " == *" --device cuda "* || " $* " == *" --device=cuda "* ]]; then
  preset=cuda
  use_cuda_kokkos || exit
fi
build "$preset" tessera_cli tessera_bench_cli
peers=$root/build/peers
if [[ ! -x $peers/bin/python ]]; then
  say "Installing PyTorch and JAX in build/peers"
  python3 -m venv "$peers" || die "python3 -m venv does not work here (Debian: python3-venv)"
fi
"$peers/bin/pip" install --quiet --requirement "$root/bench/peers/requirements.txt"
exec "$peers/bin/python" "$root/bench/peers/peers.py" --tessera-bench "$root/build/$preset/bin/tessera-bench" "$@"
