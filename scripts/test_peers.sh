#!/usr/bin/env bash
# What is compared with PyTorch and transformers as tests/oracle/requirements.txt pins them, in .venv-peers: the models of tests/oracle with those of
# transformers, and every test that asks for an interpreter with such packages. Fails where one of them is skipped.
# test_peers.sh BUILD
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
scripts/bench/peers.sh
export MINDPIPE_PEER_PYTHON=$PWD/.venv-peers/bin/python
export MINDPIPE_PYTHON=$MINDPIPE_PEER_PYTHON PYTHONDONTWRITEBYTECODE=1
"$MINDPIPE_PEER_PYTHON" tests/oracle/check_against_transformers.py

# Ids, merges and answers beside those of tokenizers, tiktoken and sentencepiece.
"$MINDPIPE_PEER_PYTHON" tests/tokenize/compare_with_peers.py "$build/tests/ids_of_texts" "$build/mindpipe-train"

# A test's name is its file's: tests/io/safetensors_test.cpp is io_safetensors.
names=$(grep -lE 'peer_python_with\(|NEEDS_TORCH\(' -r tests --include='*_test.cpp' | sed -e 's,^tests/,,' -e 's,_test\.cpp$,,' -e 's,/,_,g' | sort)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
ctest --test-dir "$build" --verbose --no-tests=error -R "^($(paste -sd '|' <<<"$names"))\$" >"$log" 2>&1 || true
grep -E ': loss |Test +#.*(Passed|Failed)' "$log" || true
count() { grep -cE "$1" "$log" || true; }
passed=$(count '^ *[0-9]+/[0-9]+ Test .* Passed') skipped=$(count '\[  SKIPPED \] .*\(') all=$(wc -w <<<"$names")
echo "$passed of $all files of tests passed ($(xargs <<<"$names")), $skipped tests were skipped"
if [ "$passed" != "$all" ] || [ "$skipped" != 0 ]; then
  cat "$log" >&2
  exit 1
fi
