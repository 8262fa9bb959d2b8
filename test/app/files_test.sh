#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks files that are not regular, unreadable or behind links, as inputs and outputs, and a full standard output.
# usage: files_test.sh PROGRAM JSON_GET INPUTS RANKS LAUNCHER...
program=$1 json_get=$2 inputs=$3
shift 4
several=("$@")
launcher=()
# shellcheck source=script_support.sh
source "$(dirname "$0")/script_support.sh"

tutorial=("$inputs/tutorial.toml" --set training.num_epochs=2)
# The nodes are in a directory of the test, because a mistake would destroy those of the system. Devices need root.
make_nodes() {
  mkfifo "$here/fifo"
  mkdir "$here/directory"
  ln -s fifo "$here/link"
  kinds=(fifo:FIFO link:FIFO directory:directory)
  if mknod "$here/zero" c 1 5 2> /dev/null; then kinds+=(zero:device); fi
}
expect_nodes() {
  [[ -p $here/fifo && -L $here/link && -d $here/directory ]] || fail "a node was replaced"
  [ "${#kinds[@]}" -eq 3 ] || [ -c "$here/zero" ] || fail "the device was replaced"
}
# rejects_node NODE PIECE ARGUMENT...: the program prints one error at once and nothing else.
rejects_node() {
  rejects "$2: must be a regular file, not a ${1#*:}" "${@:3}"
  [ ! -s "$out" ] || fail "$* printed $(head -1 "$out")"
}

begin outputs
make_nodes
succeeds run "${tutorial[@]}" --quiet --set checkpoint.directory=saves
saved=$(saved 16)
for kind in "${kinds[@]}"; do
  node=${kind%:*}
  rejects_node "$kind" "--json = $node" plan "${tutorial[@]}" --json "$node"
  rejects_node "$kind" "--timeline = $node" plan "${tutorial[@]}" --json out.json --timeline "$node"
  rejects_node "$kind" "-o = $node" checkpoint export "$saved" -o "$node"
done
rejects_node fifo:FIFO "--json = fifo" run "${tutorial[@]}" --json fifo
mkdir "$here/arrays"
mkfifo "$here/arrays/prediction.npy"
rejects_node fifo:FIFO "--export = arrays/prediction.npy" run "${tutorial[@]}" --export arrays
rm "$here/$saved"
mkfifo "$here/$saved"
rejects_node fifo:FIFO "$saved" run "${tutorial[@]}" --quiet --set checkpoint.directory=saves --resume
expect_nodes
[[ -p $here/$saved && -p $here/arrays/prediction.npy ]] || fail "a FIFO was replaced"

# A limit on the size of files stands for a full disk. The old file stays.
begin file-size-limit
echo '"old"' > "$here/out.json"
launcher=(bash -c 'ulimit -f 1 && exec "$@"' limit)
rejects "cannot write out.json: File too large" plan "${tutorial[@]}" --tensors --json out.json
rejects "cannot write out.json: File too large" plan "${tutorial[@]}" --timeline out.json
expect_files out.json
expect_json "" old
launcher=(bash -c 'ulimit -f 6 && exec "$@"' limit)
rejects "cannot write out.json: File too large" plan "${tutorial[@]}" --tensors --json out.json --timeline small.json
expect_files out.json small.json
rm "$here/small.json"
launcher=(bash -c 'ulimit -f 20000 && exec "$@"' limit)
large=(run "${tutorial[@]}" --quiet --set 'model.widths=[4,600000,1]' --set training.num_epochs=1 --set data.samples=64
  --set checkpoint.directory=saves)
rejects ".unfinished: cannot be written: File too large" "${large[@]}"
grep -q 'error: saves/.*/step_0000000002.safetensors' "$err" || fail "the file is not named"
ends_with 1 "${large[@]}" --set checkpoint.every_steps=1 --set checkpoint.on_failure=continue --json out.json
[ "$(grep -c 'File too large; continuing without this checkpoint' "$err")" -eq 1 ] || fail "not one warning"
expect_json /steps 2 /failed_checkpoints 2
[ -z "$(ls -A "$here/saves")" ] || fail "left $(ls -A "$here/saves")"
launcher=()

begin links
mkdir "$here/far"
for name in out.json model.safetensors arrays/x.npy; do
  mkdir -p "$here/$(dirname $name)"
  ln -s "$here/far/$(basename $name)" "$here/$name"
done
for _ in first again; do
  succeeds run "${tutorial[@]}" --quiet --json out.json --export arrays --set checkpoint.directory=saves
  succeeds checkpoint export "$(saved 16)" -o model.safetensors
done
for name in out.json model.safetensors arrays/x.npy; do
  [ -L "$here/$name" ] || fail "replaced the link $name"
done
[ "$(cd "$here/far" && echo *)" = "model.safetensors out.json x.npy" ] || fail "wrote $(ls "$here/far")"
expect_json /steps 16

begin inputs
make_nodes
for kind in "${kinds[@]}"; do
  node=${kind%:*}
  rejects_node "$kind" "$node" plan "$node"
  rejects_node "$kind" "$node" plan "${tutorial[@]}" --machine "$node"
  rejects_node "$kind" "$node" checkpoint verify "$node"
done
node=fifo:FIFO
rejects_node $node fifo run "${tutorial[@]}" --resume fifo
rejects_node $node "data.x = fifo" run "${tutorial[@]}" --set data.kind=npy --set data.x=fifo --set data.y=fifo
rejects_node $node "data.file = fifo" run "$inputs/vae.toml" --set data.kind=idx --set data.file=fifo
rejects_node $node "data.file = fifo" run "${tutorial[@]}" --set data.kind=hdf5 --set data.file=fifo --set data.x=x --set data.y=y
mkdir -p "$here/saves/one"
mkfifo "$here/saves/one/step_0000000008.safetensors"
rejects_node $node saves/one/step_0000000008.safetensors run "${tutorial[@]}" --set checkpoint.directory=saves --resume
expect_nodes
# On several ranks, one of them reports the error and none waits.
launcher=("${several[@]}")
rejects "fifo: must be a regular file" run fifo
launcher=()

# Permissions do not stop root: run as another user.
as_user=()
if [ "$(id -u)" -eq 0 ]; then
  as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
chmod 711 "$work"
begin permissions
launch run "${tutorial[@]}" --quiet --set checkpoint.directory=saves
if "${as_user[@]}" "$program" --version > /dev/null 2>&1; then
  # may_not MODE PIECE ARGUMENT...: with this mode of the directory.
  may_not() {
    chmod "$1" "$here/saves"
    launcher=("${as_user[@]}")
    rejects "${@:2}"
    launcher=()
    chmod 700 "$here/saves"
  }
  resumed=(run "${tutorial[@]}" --set checkpoint.directory=saves)
  for flag in --resume --resume-if-present; do
    may_not 000 "checkpoint.directory = saves: cannot be read: Permission denied" "${resumed[@]}" $flag
    may_not 444 "checkpoint.directory = saves: cannot be read: Permission denied" "${resumed[@]}" $flag
    may_not 111 "checkpoint.directory = saves: cannot be read: Permission denied" "${resumed[@]}" $flag
  done
  saved=$(saved 16)
  may_not 000 "$saved: cannot be read: Permission denied" checkpoint show "$saved"
  may_not 555 "--json = saves/out.json: must be in a writable directory" run "${tutorial[@]}" --json saves/out.json
  may_not 000 "--json = saves/out.json: cannot be written: Permission denied" run "${tutorial[@]}" --json saves/out.json
  may_not 555 "-o = saves/model.safetensors: must be in a writable directory" checkpoint export "$saved" \
    -o saves/model.safetensors
else
  echo "SKIPPED: permissions: no other user can run $program"
fi
# A dangling link is no checkpoint.
ln -s nowhere "$here/$(dirname "$(saved 16)")/step_0000000099.safetensors"
succeeds run "${tutorial[@]}" --quiet --set checkpoint.directory=saves --resume --json out.json
expect_json /resumed_at 16

# Names of files may be any bytes.
begin names
succeeds run "${tutorial[@]}" --quiet --set checkpoint.directory=$'"\xff"' --json $'out\xfe.json'
[ -s "$here/"$'out\xfe.json' ] || fail "wrote $(ls "$here")"

# A full standard output does not prevent the files.
begin full-output
launcher=(bash -c 'exec "$@" > /dev/full' full)
full="cannot write to standard output: No space left on device"
rejects "$full" run "${tutorial[@]}" --json out.json --export arrays --set checkpoint.directory=saves
expect_files arrays out.json saves
expect_json /steps 16
cmp "$here/out.json" "$here/arrays/results.json" || fail "the exported results differ"
[ -s "$here/arrays/prediction.npy" ] || fail "lacks predictions"
[ -n "$(saved 16)" ] || fail "lacks the last checkpoint"
for argument in info --help; do rejects "$full" $argument; done
for options in "" "--advise --machine $inputs/machines/cpu_cluster.toml --mesh data=4"; do
  rm "$here/out.json"
  # shellcheck disable=SC2086
  rejects "$full" plan "$inputs/tutorial.toml" $options --json out.json
  [ -s "$here/out.json" ] || fail "plan $options: no file"
done
launcher=()
# If one file cannot be written, the others are written and the results are printed.
begin one-file-fails
mkdir "$here/gone"
(cd "$here" && exec timeout 200 "$program" run "$inputs/tutorial.toml" --set training.num_epochs=10000000 \
  --set checkpoint.directory=saves --set checkpoint.every_steps=100000000 --set output.metrics=metrics.jsonl \
  --set output.every_steps=10000 --json gone/out.json --export arrays) > "$out" 2> "$err" &
process=$!
wait_until test -s "$here/metrics.jsonl"
rmdir "$here/gone"
kill -TERM $process
wait $process
code=$?
expect_code 1
expect_one_error "cannot write gone/out.json: must be in an existing directory"
expect_line " +Final loss: .*"
[ "$(cd "$here/arrays" && echo *)" = "prediction.npy results.json x.npy y.npy" ] || fail "wrote $(ls "$here/arrays")"

conclude
