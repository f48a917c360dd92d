#!/usr/bin/env bash
# Supernets keep the bits: 300 subnets of 12 blocks with 4 candidates each on all 22 grids of pipeline 1, 2, 3, 4, 5, 8 x tensor 1, 2 x data 1, 2 up to
# 16 ranks, of texts and of pairs, with one and four micro-batches in a data shard, each with a plan of its own, against one after the other; 100 of
# cells and 100 of pictures, with batch norms, on these grids; 150 on 1, 2 and 4 lanes of these grids up to 16 ranks, with one cut and with cuts of
# subnets' own; an audit of 480 subnets on 4 and 8 stages, and on lanes, from their traces; what the other orders do instead; the scores of 64
# networks on all grids up to 8 ranks; and 200 supernets that are drawn with grids, windows and rooms of
# their own. Says in its last line how many runs passed and failed.
# test_supernets.sh BUILD [RANKS ...]
set -uo pipefail
cd "$(dirname "$0")/.."
build=$1; shift
[ $# -gt 0 ] || set -- 1 2 3 4 5 6 8 10 12 16
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export MINDPIPE_ALL_SUBNETS=1 OMP_WAIT_POLICY=passive
broken=0

# try RANKS PROGRAM FILTER: some tests in one mpirun
try() {
  local start=$SECONDS
  tests/run_mpi.sh "$1" "$build/tests/$2" --gtest_brief=1 --gtest_color=no --gtest_filter="$3" 2>&1 |
    grep --line-buffered -v -e '^\[==' -e '^\[  PASSED' -e '^Note:' -e '^$' | tee -a "$logs/all"
  [ "${PIPESTATUS[0]}" = 0 ] || { broken=1; echo "$1 ranks, $3: failed"; }
  echo "$1 ranks, $3: $((SECONDS - start)) s"
}
for ranks; do try "$ranks" test_runtime_mpi 'AllSubnets.*:AllScores.*:RandomRuns.*'; done
for stages in 4 8; do try $stages test_app_mpi 'SubnetTrace.*'; done
for stages in 4 8; do try $stages test_runtime_mpi 'SubnetOrders.*'; done
read -r passed failed < <(awk '/ runs passed, / {passed += $3; failed += $6} END {print passed + 0, failed + 0}' "$logs/all")
echo "$passed runs passed, $failed failed$([ $broken = 0 ] || echo ', and a test failed')"
exit $((broken || failed > 0))
