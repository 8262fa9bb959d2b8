#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Uses the installed inputs, report, manual pages and completion.
# usage: installed_test.sh PREFIX CLONE HELP2MAN_FOUND DEVICES   (DEVICES: Kokkos_DEVICES)
set -uo pipefail
prefix=$1 clone=$2 has_manual=$3 devices=$4 status=0
share=$prefix/share

fail() {
  echo "FAILED $*"
  status=1
}

# expect TEXT PIECE: fails unless the output of a command has the piece.
expect() { [[ $1 == *"$2"* ]] || fail "lacks '$2': $1"; }

expect "$("$prefix/bin/tessera" plan "$share/tessera/inputs/tutorial.toml" 2>&1)" "Memory per rank"
# A path of the repository leads to the installed file.
for command in "tessera plan" "tessera-bench list"; do
  # shellcheck disable=SC2086 # a program and its subcommand
  expect "$(cd "$prefix/bin" && ./${command% *} ${command#* } inputs/quick_study.toml 2>&1)" \
    "the installation has $share/tessera/inputs/quick_study.toml"
done
# Without its packages it names them.
expect "$("$prefix/bin/tessera-report" --help 2>&1)" "report"
for script in npz.py thicket.py; do [[ -x $share/tessera/$script ]] || fail "no $script"; done
[[ -f $share/tessera/report/page.css ]] || fail "the style sheet of the report is missing"

# Nothing needs the clone.
if grep -rFH "$clone/" "$prefix"/lib*/cmake "$prefix"/lib*/pkgconfig; then fail "the installation names the clone"; fi

# Without CUDA in Kokkos nothing needs the libraries of GPUs.
if [[ $devices != *CUDA* ]]; then
  for file in "$prefix"/bin/tessera{,-bench,-micro} "$prefix"/lib*/libtessera.so; do
    if [[ -f $file ]] && readelf -d "$file" | grep -E 'NEEDED.*(nccl|cuda|cublas)'; then fail "$file needs libraries of GPUs"; fi
  done
  if grep -E 'nccl|cudart' "$prefix"/lib*/cmake/tessera/tesseraTargets*.cmake; then fail "the package needs libraries of GPUs"; fi
fi

if [[ $has_manual == TRUE || $has_manual == 1 ]]; then
  for page in "tessera run" "tessera-bench compare"; do
    manual=$(<"$share/man/man1/${page/ /-}.1") || fail "no manual page of $page"
    # shellcheck disable=SC2086 # a program and its subcommand
    for option in $("$prefix/bin/"$page --help | sed -nE 's/^ +(-[a-z],)?(--[a-z-]+).*/\2/p'); do
      expect "$manual" "${option//-/\\-}"
    done
  done
fi

# complete_words WORD...: prints the words that bash offers for the last one; programs get their place.
complete_words() {
  local -a words=("$@")
  local i
  for i in "${!words[@]}"; do if [[ -f $prefix/bin/${words[i]} ]]; then words[i]=$prefix/bin/${words[i]}; fi; done
  COMP_WORDS=("${words[@]}") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _tessera
  echo "${COMPREPLY[*]}"
}
# Links between installed pages lead to installed files.
while IFS=: read -r page link; do
  [[ -e $(dirname "$page")/$link ]] || fail "$page links to $link, which is not installed"
done < <(grep -rHoE "\]\([^)#: ]+" "$share/doc/tessera" --include="*.md" | sed "s/](//" | grep -E "\.(md|txt|cpp|png)$")

# shellcheck source=/dev/null
source "$share/bash-completion/completions/tessera"
# expect_words WORDS COMMAND WORD...: fails unless bash offers these words for the last one.
expect_words() {
  local offered
  offered=$(complete_words "${@:2}")
  [[ $offered == "$1" ]] || fail "completes '${*:2}' with '$offered', not with '$1'"
}
expect_words "info" tessera in
expect_words "show" tessera checkpoint s
expect_words "show verify export" tessera checkpoint ""
expect_words "--strategy" tessera run --st
expect_words "zero1 zero2" tessera run --strategy z
expect_words "zero1 zero2" mpirun -n 4 tessera plan --strategy = z
expect_words "fsdp" tessera run tutorial.toml --strategy = fs
expect_words "tessera pytorch huggingface" tessera checkpoint export --names ""
expect_words "slurm" tessera-bench jobs --scheduler s
# Files are left to bash.
expect_words "" tessera run "$share/tessera/inp"
expect_words "" tessera checkpoint show ""
expect_words "" mpirun -n 4 ./other --
exit $status
