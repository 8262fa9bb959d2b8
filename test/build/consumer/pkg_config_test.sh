#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles and runs an example with pkg-config, after the installation was moved.
# usage: pkg_config_test.sh PREFIX COMPILER...
set -euo pipefail
prefix=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$prefix" "$work/moved"
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$work/moved" -name tessera.pc)")
cp "$work/moved/share/tessera/examples/tutorial.cpp" "$work"
cd "$work"
read -ra flags <<< "$(pkg-config --cflags --libs tessera)"
"$@" tutorial.cpp -o tutorial "${flags[@]}"
./tutorial
