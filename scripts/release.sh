#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
usage() {
  cat <<'TEXT'
usage: scripts/release.sh [-o DIR] [--no-tag]

Makes a release of the last commit: DIR/tessera-VERSION.tar.gz with its checksum in DIR/tessera-VERSION.tar.gz.sha256, and the
tag vVERSION. VERSION is that of CMakeLists.txt, which CITATION.cff, CHANGELOG.md and the working tree must agree with. Prints
the line for Spack's recipe, and what is left to do for whoever publishes it: nothing is uploaded.

  -o DIR      folder of the tarball (build)
  --no-tag    only the tarball, of any commit
TEXT
}
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$root/build
with_tag=1
while (($# > 0)); do
  case $1 in
    -h | --help) usage && exit ;;
    -o) folder=$(realpath -m "${2:?-o needs a folder}") && shift 2 ;;
    --no-tag) with_tag=0 && shift ;;
    *) usage >&2 && exit 1 ;;
  esac
done
fail() { echo "scripts/release.sh: $1" >&2 && exit 1; }
cd "$root"
git rev-parse --git-dir > /dev/null 2>&1 || fail "this is no checkout of git"
version=$(git show HEAD:CMakeLists.txt | sed -n 's/^project(.* VERSION \([0-9.]*\).*/\1/p')
tag=v$version
if ((with_tag)); then
  [[ -z $(git status --porcelain) ]] || fail "the working tree has changes: commit them first"
  git show HEAD:.github/CITATION.cff | grep -qx "version: $version" || fail ".github/CITATION.cff does not name version $version"
  git show HEAD:.github/CHANGELOG.md | grep -q "^## $version\b" || fail ".github/CHANGELOG.md has no section \"## $version\""
  if git rev-parse -q --verify "refs/tags/$tag" > /dev/null; then
    [[ $(git rev-parse "$tag^{commit}") == $(git rev-parse HEAD) ]] || fail "the tag $tag exists and is another commit"
  fi
fi

mkdir -p "$folder"
name=tessera-$version
# The same bytes for the same commit, whenever and wherever it is packed.
git archive --prefix="$name/" HEAD | gzip -9 -n > "$folder/$name.tar.gz"
(cd "$folder" && sha256sum "$name.tar.gz" > "$name.tar.gz.sha256")
sha256=$(cut -d ' ' -f 1 "$folder/$name.tar.gz.sha256")
if ((with_tag)) && ! git rev-parse -q --verify "refs/tags/$tag" > /dev/null; then git tag -a "$tag" -m "Tessera $version"; fi
echo "$folder/$name.tar.gz"
echo "    version(\"$version\", sha256=\"$sha256\")"
if ((with_tag)); then echo "Publish: git push origin $tag, upload the tarball, and add the line above to the recipe, with url."; fi
