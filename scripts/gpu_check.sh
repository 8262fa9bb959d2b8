#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs gpu_check/check.py with the programs and the Open MPI of the package that this script is in, or of build/cuda.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ -d $here/inputs && -f $here/../../env.sh ]]; then  # in a package
  # shellcheck source=/dev/null
  source "$here/../../env.sh"
fi
exec python3 -B "$here/gpu_check/check.py" "$@"
