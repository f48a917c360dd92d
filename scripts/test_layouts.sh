#!/usr/bin/env bash
# The same bits on every layout: all grids of 1, 2, 3, 4 and 8 ranks, and one in a hundred of 16, with every schedule, model, precision, ZeRO,
# sequence parallelism and recomputation, each against one rank, with pictures of 197 rows and a cut before and behind every block of small models;
# then some with every message sent in two halves, so that a buffer that is written while it still leaves is found out; at last 200 pairs of grids,
# the first of which saves a run and the second goes on with it. Says how far it is, and in the last line how many passed, failed and were skipped.
# test_layouts.sh BUILD [RANKS:ONE_IN ...]
set -uo pipefail
cd "$(dirname "$0")/.."
build=$1; shift
[ $# -gt 0 ] || set -- 1:1 2:1 3:1 4:1 8:1 16:100
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
runs=0 broken=0

# try RANKS PROGRAM FILTER [VARIABLE=VALUE ...]: many layouts in one mpirun
try() {
  local start=$SECONDS log=$logs/$((++runs))
  env "${@:4}" tests/run_mpi.sh "$1" "$build/tests/$2" --gtest_brief=1 --gtest_color=no --gtest_filter="$3" 2>&1 |
    grep --line-buffered -v -e '^\[==' -e '^\[  PASSED' | tee "$log"
  local code=${PIPESTATUS[0]}
  [ "$code" = 0 ] || broken=1
  grep -q " layouts passed, " "$log" || echo "$1 ranks: 0 layouts passed, 1 failed, 0 skipped (ended early with exit code $code)" | tee -a "$log"
  echo "$1 ranks: $((SECONDS - start)) s"
}
for wish; do try "${wish%:*}" test_runtime_mpi 'Parity.EveryLayout*:Parity.RowsThat*:Parity.ACutMay*' MINDPIPE_ALL_LAYOUTS="${wish#*:}"; done
try 4 test_runtime_mpi 'Parity.EveryLayout*' MINDPIPE_ALL_LAYOUTS=10 OMPI_MCA_btl_vader_eager_limit=128
try 16 test_runtime_checkpoint_mpi 'Checkpoint.LoadedOnAnotherGrid*' MINDPIPE_PAIRS=200
read -r passed failed skipped < <(awk '/ layouts passed, / {passed += $3; failed += $6; skipped += $8} END {print passed + 0, failed + 0, skipped + 0}' "$logs"/*)
echo "$passed passed, $failed failed, $skipped skipped"
exit $((broken || failed > 0))
