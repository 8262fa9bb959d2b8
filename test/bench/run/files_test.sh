#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Files of studies, machines, templates and results that are no regular files or cannot be read are errors.
# usage: files_test.sh PROGRAM JSON_GET INPUTS LAUNCHER...   (of 2 ranks)
program=$1 json_get=$2 inputs=$3
shift 3
several=("$@")
launcher=()
# shellcheck source=../../app/script_support.sh
source "$(dirname "$0")/../../app/script_support.sh"

machine=$inputs/machines/gpu_cluster.toml
# study NAME: begins a test with a small study and a FIFO that nobody writes to.
study() {
  begin "$1"
  cp "$(dirname "$0")/small_study.toml" "$here/study.toml"
  mkfifo "$here/fifo"
}
simulate() { launch simulate study.toml --machine "$machine" "$@"; }
# rejects PIECE ARGUMENT...: the command fails at once with one line.
rejects() {
  ends_with 1 "${@:2}"
  expect_one_error "$1"
  ! grep -q unexpected "$err" || fail "$(cat "$err")"
}
no_file='must be a regular file, not a FIFO'

study inputs
rejects "fifo: $no_file" list fifo
rejects "fifo: $no_file" run fifo -o results
rejects "fifo: $no_file" simulate study.toml --machine fifo -o results
jobs=(jobs study.toml --scheduler slurm --ranks-per-node 2 -o jobs)
rejects "--template = fifo: $no_file" "${jobs[@]}" --template fifo
expect_files fifo study.toml

study outputs
rejects "-o = fifo: $no_file" calibrate -o fifo
rejects "-o = fifo: must be a new or empty directory" jobs study.toml --scheduler slurm --ranks-per-node 2 -o fifo
rejects "-o = fifo: cannot be created" simulate study.toml --machine "$machine" -o fifo
mkdir "$here/results"
mv "$here/fifo" "$here/results/summary.json"
rejects "cannot write results/summary.json: $no_file" simulate study.toml --machine "$machine" -o results
[ -p "$here/results/summary.json" ] || fail "replaced the FIFO"
# Links are followed.
rm "$here/results/study.json" "$here/results/summary.json"
ln -s ../summary.json "$here/results/summary.json"
simulate -o results
expect_code 0
[[ -L $here/results/summary.json && -s $here/summary.json ]] || fail "replaced the link"

# No output replaces an input.
study same-file
simulate -o before
for name in study.json cases.csv; do
  rejects "--json = ./before/$name: must be another file than BEFORE = before/$name" compare before before \
    --json "./before/$name"
done
rejects "--json = before/cases/new.json: must be another file than those of BEFORE = before" compare before before \
  --json before/cases/new.json
mkdir "$here/after" "$here/linked"
cp "$machine" "$here/after/summary.json"
rejects "-o = after/summary.json: must be another file than --machine = after/summary.json" \
  simulate study.toml --machine after/summary.json -o after
ln -s ../study.toml "$here/linked/cases.csv"
rejects "-o = linked/cases.csv: must be another file than study = study.toml" run study.toml -o linked
[ "$(cat "$here/linked/cases.csv")" = "$(cat "$(dirname "$0")/small_study.toml")" ] || fail "the study was replaced"
launch compare before before --json before/comparison.json
[ -s "$here/before/comparison.json" ] || fail "no comparison"

# File names need not be UTF-8.
succeeds list study.toml --set checkpoint.directory=$'"\xff"'

# No command waits for results that are FIFOs.
study results
simulate -o before
cp -r "$here/before" "$here/after"
journal=$(ls "$here"/after/launches/*.journal)
rm "$journal"
mv "$here/fifo" "$journal"
rejects ".journal: $no_file" compare before after
rejects ".journal: $no_file" run study.toml -o after --resume --dry-run
launcher=("${several[@]}")
launch run study.toml -o after --resume
launcher=()
expect_code 1
[ "$(grep -c "^tessera: error: .*.journal: $no_file" "$err")" -eq 1 ] || fail "$(cat "$err")"

# Permissions do not stop root: run as another user.
as_user=()
if [ "$(id -u)" -eq 0 ]; then
  as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
chmod 711 "$work"
study permissions
simulate -o results
if "${as_user[@]}" "$program" --version > /dev/null 2>&1; then
  chmod 700 "$here/results"
  [ ${#as_user[@]} -gt 0 ] || chmod 000 "$here/results"
  launcher=("${as_user[@]}")
  rejects "results/study.json: cannot be read: Permission denied" compare results results
  rejects "-o = results: cannot be read: Permission denied" run study.toml -o results --resume
  rejects "-o = results: cannot be read: Permission denied" jobs study.toml --scheduler slurm --ranks-per-node 2 -o results
  rejects "-o = results/jobs: cannot be read: Permission denied" jobs study.toml --scheduler slurm --ranks-per-node 2 \
    -o results/jobs
  rejects "-o = results/machine.toml: cannot be written: Permission denied" calibrate -o results/machine.toml
  launcher=()
  chmod 700 "$here/results"
else
  echo "SKIPPED: permissions: no other user can run $program"
fi

# A command in a working directory that has been removed ends with an error.
study gone
mkdir "$here/working"
(cd "$here/working" && rmdir "$here/working" &&
  timeout 60 "$program" jobs "$here/study.toml" --scheduler slurm --ranks-per-node 2 -o jobs) > "$out" 2> "$err"
code=$?
expect_code 1
expect_one_error "the working directory cannot be used: No such file or directory"

conclude
