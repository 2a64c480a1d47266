#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: run.sh SECONDS [TARGET...]: builds the targets with clang's libFuzzer and the sanitizers,
# and runs each for SECONDS. New inputs are put into BUILD/found/TARGET, a crash into BUILD.
set -euo pipefail
seconds=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD:-$here/../../build-fuzz}
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls "$here/corpus")

if [ ! -f "$build/build.ninja" ]; then
	CC=clang meson setup "$build" "$here/../.." -Dfuzz=true -Db_sanitize=address,undefined \
		-Db_lundef=false -Doptimization=1
fi
ninja -C "$build" "${targets[@]/#/tests/fuzz/fuzz_}"
cd "$build"
for target in "${targets[@]}"; do
	mkdir -p "found/$target"
	"tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
		-print_final_stats=1 "found/$target" "$here/corpus/$target"
done
