#!/usr/bin/env bash
# tidy.sh BUILD JOBS [FOLDER ...]: clang-tidy over the sources of src/ and kernels/ that this build compiles, or of the folders named.
# Prints what it finds and exits 1. What is compiled for several instruction sets is looked at once, GPU kernels are not: nvcc compiles them.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1; jobs=$2; shift 2
[[ $# -gt 0 ]] || set -- src kernels
find "$@" -name '*.cpp' | sort | python3 -c '
import json, os, sys
built = {os.path.relpath(entry["file"]) for entry in json.load(open(sys.argv[1]))}
sys.stdout.writelines(path + "\n" for path in sys.stdin.read().split() if path in built)' "$build/compile_commands.json" >"$build/tidy.files"
echo "clang-tidy looks at $(wc -l <"$build/tidy.files") files" >&2
# Flags that only g++ knows are dropped; a header is judged with the first source that includes it.
xargs -r -a "$build/tidy.files" -n 1 -P "$jobs" clang-tidy -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option \
  --extra-arg=-Wno-ignored-optimization-argument 2> >(grep -vE '^[0-9]+ warnings? (generated|treated as errors?)\.?$|^Suppressed |^Use -header-filter' >&2)
