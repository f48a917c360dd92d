#!/usr/bin/env bash
# The same bits on every layout: all grids of 1, 2, 3, 4 and 8 ranks, and one in a hundred of 16, with every schedule, model, precision, ZeRO,
# sequence parallelism and recomputation, each against one rank; then some with every message sent in two halves, so that a buffer that is
# written while it still leaves is found out.
# test_layouts.sh BUILD [RANKS:ONE_IN ...]
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1; shift
program=$build/tests/test_runtime_parity_mpi
[ $# -gt 0 ] || set -- 1:1 2:1 3:1 4:1 8:1 16:100
failed=0
for wish; do
  MINDPIPE_ALL_LAYOUTS=${wish#*:} tests/run_mpi.sh "${wish%:*}" "$program" --gtest_brief=1 --gtest_filter="Parity.EveryLayout*" || failed=1
done
MINDPIPE_ALL_LAYOUTS=10 OMPI_MCA_btl_vader_eager_limit=128 tests/run_mpi.sh 4 "$program" --gtest_brief=1 || failed=1
exit $failed
