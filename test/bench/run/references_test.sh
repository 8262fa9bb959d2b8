#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# References are computed on one rank or on the smallest mesh that fits, for all steps or some, or not at all.
# usage: references_test.sh PROGRAM JSON_GET LAUNCHER...   (of 3 ranks)
program=$1 json_get=$2
shift 2
launcher=("$@")
# shellcheck source=study_support.sh
source "$(dirname "$0")/study_support.sh"

# losses: prints the lines of the journals that have losses of references.
losses() { cat "$here"/results/launches/*.journal | grep '"end":"reference-.*"losses"'; }
# expect_meshes TEXT: checks the meshes that computed references.
expect_meshes() {
  [ "$(losses | grep -o '"mesh":"[^"]*"' | sort -u | xargs)" = "$1" ] || fail "meshes: $(losses | grep -o '"mesh":[^,]*')"
}

study one_rank
# Without a limit of memory, every reference fits on one rank.
study_ends 1 --set verify.ranks=3
grep -qxF 'tessera: error: verify.ranks = 3: needs limits.memory_bytes, which tells what fits on one rank' "$err" || fail "no error"
[ ! -e "$here/results" ] || fail "left something behind"
study_ends 0 --set verify.ranks=3 --set limits.memory_bytes=3200000
expect_result 'PASS 4 ok'
expect_meshes mesh:data=1
[ "$(losses | wc -l)" -eq 2 ] || fail "$(losses | wc -l) references of two batches"
# Another launch that runs everything again computes no reference.
study_ends 0 --retry ok
[ "$(losses | wc -l)" -eq 2 ] || fail "made again"
# A reference of another program is not used, nor is one for which a case was invalid and is tried again.
sed -i '/"end":"reference-/s/"steps":\[[^]]*\]/"steps":[7,7,7,7,7,7,7,7]/' "$here"/results/launches/*.journal
cp -r "$here/results" "$here/other"
study_ends 2 --retry ok
expect_result 'INVALID 4 invalid'
[ "$(losses | wc -l)" -eq 2 ] || fail "made again"
for _ in 1 2; do study_ends 0 --retry invalid,ok; done
expect_result 'PASS 4 ok'
[ "$(losses | wc -l)" -eq 4 ] || fail "$(losses | wc -l) references, of which two count no longer"
rm -r "$here/results"
mv "$here/other" "$here/results"
sed -i 's/"compiler": "/&old /' "$here"/results/launches/*.json
for _ in 1 2; do study_ends 0 --retry ok; done
expect_result 'PASS 4 ok'
[ "$(losses | wc -l)" -eq 4 ] || fail "$(losses | wc -l) references, of which two are of another program"
# A reference with too few steps is computed again.
study few_steps
study_ends 0 --set verify.steps=3
for result in "$here"/results/cases/*/result.json; do
  [ "$("$json_get" "$result" /loss/steps)" = 3 ] || fail "compared $("$json_get" "$result" /loss/steps) steps"
  [ "$("$json_get" "$result" /loss/reference_mesh)" = data=1 ] || fail "does not say on which mesh"
  [ "$("$json_get" "$result" /loss/verdict)" = equal ] || fail "verdict $("$json_get" "$result" /loss/verdict)"
done
study_ends 0 --set verify.steps=4 --retry ok
[ "$(losses | wc -l)" -eq 4 ] || fail "$(losses | wc -l) references"

# What does not fit on one rank is held against the smallest mesh that fits, which is named.
study smallest_mesh
wide=(--set 'model.widths=[8,256,256,256,256,256,1]' --set limits.memory_bytes=3200000 --set verify.ranks=3)
sed -i 's/^ranks = .*/ranks = 3/; s/^global_batch = .*/global_batch = 16\nstrategy = "fsdp"/' "$here/study.toml"
study_ends 0 "${wide[@]}"
expect_result 'PASS 1 ok'
expect_meshes mesh:fsdp=2
grep -qx 'losses of what does not fit on one rank are held against fsdp=2' "$out" || fail "does not name it: $(cat "$out")"

study none
study_ends 0 --set verify=false
expect_result 'UNVERIFIED 4 unverified'
[ -z "$(losses)" ] || fail "references were made"
grep -q "^FOM: .*samples_per_second" "$here"/*/figures_of_merit.txt || fail "no speed"
ends_with 1 run study.toml -o other --set verify=perhaps
grep -q 'verify = "perhaps"' "$err" || fail "stderr: $(cat "$err")"

# A launch that ended in a reference is counted; with --give-up, the reference is not tried again.
study lost
study_run
sed -i '/"end":"reference-/d' "$here"/results/launches/*.journal
study_ends 0 --retry ok --give-up 2
expect_result 'PASS 4 ok'
sed -i '/"end":"reference-/d' "$here"/results/launches/*.journal
study_ends 5 --retry ok --give-up 1
expect_result 'FAIL 4 failed'
grep -q 'launches ended while computing its reference' "$out" || fail "no reason given"
study_ends 0 --retry failed
expect_files results study.toml

conclude
