#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck source-path=SCRIPTDIR
usage() {
  cat <<'TEXT'
usage: scripts/site.sh [-o DIR]

Makes a static site of the READMEs and of the comments in headers, with one navigation and a search, and checks that all
links on it lead somewhere. Needs Doxygen 1.9 and Python 3.9.

  -o DIR    folder of the site (build/site); index.html is its first page
TEXT
}

# shellcheck source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
o=$root/build/site
take_options '-o' '' "$@"
site=$(realpath -m "$o")
command -v doxygen >/dev/null || die "Doxygen is not installed"
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
if [[ -d $site && ! -f $site/index.html && -n $(ls -A "$site") ]]; then die "$site holds something else than a site"; fi

cd "$root"
python3 -B scripts/site/pages.py prepare . "$pages/pages"
doxygen - <<DOXYFILE
PROJECT_NAME = Tessera
PROJECT_NUMBER = $(sed -n 's/^project(.*VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
OUTPUT_DIRECTORY = $pages
INPUT = $pages/pages src/tessera
FILE_PATTERNS = *.md *.hpp
RECURSIVE = YES
EXCLUDE_PATTERNS = */detail/* */pages/files/* */src/tessera/*.md
USE_MDFILE_AS_MAINPAGE = $pages/pages/page_readme.md
IMAGE_PATH = $pages/pages
STRIP_FROM_PATH = src
STRIP_FROM_INC_PATH = src
JAVADOC_AUTOBRIEF = YES
EXTRACT_ALL = YES
WARN_IF_UNDOCUMENTED = NO
WARN_AS_ERROR = FAIL_ON_WARNINGS
MACRO_EXPANSION = YES
PREDEFINED = KOKKOS_INLINE_FUNCTION=
BUILTIN_STL_SUPPORT = YES
GENERATE_LATEX = NO
GENERATE_TREEVIEW = YES
DISABLE_INDEX = YES
HTML_EXTRA_STYLESHEET = $root/scripts/site/site.css
HAVE_DOT = NO
QUIET = YES
DOXYFILE
rm -rf "$site"
mkdir -p "$(dirname "$site")"
cp -r "$pages/html" "$site"
if [[ -d $pages/pages/files ]]; then cp -r "$pages/pages/files" "$site"; fi
python3 -B scripts/site/pages.py check "$site"
echo "The site is in $site/index.html"
