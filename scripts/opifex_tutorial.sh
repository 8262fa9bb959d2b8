#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck source-path=SCRIPTDIR
usage() {
  cat <<'TEXT'
usage: scripts/opifex_tutorial.sh

Runs the tutorial with TF32 matrix products on one rank, and shows its output beside the output that the distributed
tutorial of Opifex publishes. Empty lines and the lines that only Tessera prints are left out. A `|` marks lines that differ:
only the back end may, and the exit code is 1 if another line does.
TEXT
}
case ${1:-} in
  '') ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 1 ;;
esac
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=env.sh
source "$root/scripts/env.sh"

# label_of: prints each line up to its colon.
label_of() { sed 's/:.*/:/'; }

rule='============================================================'
published=$rule"
Distributed Data-Parallel Training
$rule
JAX backend:  gpu
Devices:      1
Model parameters: 385
Mesh shape:   (1,)
Axis names:   ('data',)
Strategy:     data
Trainer created with distributed config
Training data: x=(256, 4), y=(256, 1)
Training...
$rule
RESULTS
$rule
  Devices used:    1
  Initial loss:    20.304531
  Final loss:      3.199348
$rule
Distributed training complete!"
output=$(tessera run "$root/inputs/tutorial.toml" --set model.matmul_precision=tf32)
# Lines of ours with a label of the page.
ours=$(awk 'NR == FNR { known[$0]; next } { label = $0; sub(/:.*/, ":", label) } label in known' \
  <(label_of <<<"$published"; echo "Kokkos backend:") - <<<"$output")

printf '%-50s  %s\n' "Opifex, published" "Tessera, this run"
diff --side-by-side --width=100 --expand-tabs <(echo "$published") <(echo "$ours") || true
if [[ $(grep -v backend: <<<"$published") != "$(grep -v backend: <<<"$ours")" ]]; then
  echo "Other lines than that of the back end differ."
  exit 1
fi
echo "All lines are equal but that of the back end."
