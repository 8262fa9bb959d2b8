#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck source-path=SCRIPTDIR
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

# shellcheck source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
o=$root/build no_tag=''
take_options '-o' '--no-tag' "$@"
folder=$(realpath -m "$o")
cd "$root"
git rev-parse --git-dir > /dev/null 2>&1 || die "this is no checkout of git"
version=$(git show HEAD:CMakeLists.txt | sed -n 's/^project(.* VERSION \([0-9.]*\).*/\1/p')
tag=v$version
if [[ -z $no_tag ]]; then
  [[ -z $(git status --porcelain) ]] || die "the working tree has changes: commit them first"
  git show HEAD:.github/CITATION.cff | grep -qx "version: $version" || die ".github/CITATION.cff does not name version $version"
  git show HEAD:.github/CHANGELOG.md | grep -q "^## $version\b" || die ".github/CHANGELOG.md has no section \"## $version\""
  if git rev-parse -q --verify "refs/tags/$tag" > /dev/null; then
    [[ $(git rev-parse "$tag^{commit}") == $(git rev-parse HEAD) ]] || die "the tag $tag exists and is another commit"
  fi
fi

mkdir -p "$folder"
name=tessera-$version
# The same bytes for the same commit, whenever and wherever it is packed.
git archive --prefix="$name/" HEAD | gzip -9 -n > "$folder/$name.tar.gz"
(cd "$folder" && sha256sum "$name.tar.gz" > "$name.tar.gz.sha256")
sha256=$(cut -d ' ' -f 1 "$folder/$name.tar.gz.sha256")
if [[ -z $no_tag ]] && ! git rev-parse -q --verify "refs/tags/$tag" > /dev/null; then git tag -a "$tag" -m "Tessera $version"; fi
echo "$folder/$name.tar.gz"
echo "    version(\"$version\", sha256=\"$sha256\")"
if [[ -z $no_tag ]]; then echo "Publish: git push origin $tag, upload the tarball, and add the line above to the recipe, with url."; fi
