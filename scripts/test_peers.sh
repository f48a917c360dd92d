#!/usr/bin/env bash
# What is compared with PyTorch and transformers as tests/oracle/requirements.txt pins them, in .venv-peers, and with MindSpore in .venv-mindspore: the
# models of tests/oracle with those of transformers, every test that asks for an interpreter with such packages, and models that transformers writes in
# other types, parts and names than those of tests/golden. Fails where one of them is skipped, unless MindSpore is not made for this Python or processor.
# test_peers.sh BUILD
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
scripts/bench/peers.sh
left_out=$(scripts/bench/peers.sh .venv-mindspore tests/oracle/requirements-mindspore.txt 2>&1 >/dev/null) && left_out=
[ -z "$left_out" ] || echo "MindSpore is left out: $(tail -n 1 <<<"$left_out")"
export MINDPIPE_PEER_PYTHON=$PWD/.venv-peers/bin/python
export PYTHONDONTWRITEBYTECODE=1
"$MINDPIPE_PEER_PYTHON" tests/oracle/check_against_transformers.py

# Ids, merges and answers beside those of tokenizers, tiktoken and sentencepiece.
"$MINDPIPE_PEER_PYTHON" tests/tokenize/compare_with_peers.py "$build/tests/ids_of_texts" "$build/mindpipe-train"

log=$(mktemp) models=$(mktemp -d)
trap 'rm -rf "$log" "$models"' EXIT
count() { grep -cE "$1" "$log" || true; }

# tests REGEX...: the tests of ctest, all of which must pass and none be skipped.
tests() {
  ctest --test-dir "$build" --verbose --no-tests=error -R "^($(paste -sd '|' <<<"$*" | tr ' ' '|'))\$" >"$log" 2>&1 || true
  grep -E '(: loss |MindSpore: |after two steps|shards: ).*away|Test +#.*(Passed|Failed)' "$log" || true
  local passed skipped all
  passed=$(count '^ *[0-9]+/[0-9]+ Test .* Passed') skipped=$(count '\[  SKIPPED \] .*\(') all=$(count '^test [0-9]+$')
  echo "$passed of $all files of tests passed ($*), $skipped tests were skipped"
  [ "$passed" = "$all" ] && [ "$skipped" = 0 ] || { cat "$log" >&2; exit 1; }
}

# A test's name is its file's: tests/io/safetensors_test.cpp is io_safetensors.
names=$(grep -lE 'peer_python_with\(|NEEDS_TORCH\(' -r tests --include='*_test.cpp' | sed -e 's,^tests/,,' -e 's,_test\.cpp$,,' -e 's,/,_,g' | sort)
MINDPIPE_PYTHON=$MINDPIPE_PEER_PYTHON tests $names
[ -n "$left_out" ] || tests app_mindspore

tests 'app_golden_models_mpi_[124]'
for how in '--dtype float32 --part 1MB --times 16' '--dtype bfloat16 --part 1MB --times 16' '--dtype bfloat16 --part 12KB --bare' '--dtype float32 --bare'; do
  echo "models that transformers writes, $how"
  # shellcheck disable=SC2086
  "$MINDPIPE_PEER_PYTHON" tests/oracle/golden_models.py "$models" $how
  MINDPIPE_GOLDEN_MODELS=$models "$build/tests/test_app" --gtest_brief=1 \
    --gtest_filter='GoldenModels.HaveThe*:GoldenModels.ContinueTexts*:GoldenModels.AreWrittenBackBitForBit'
  MINDPIPE_GOLDEN_MODELS=$models tests 'app_golden_models_mpi_[124]'
  rm -rf "${models:?}"/*
done
