#!/usr/bin/env bash
# demo_contention.sh PROGRAM DRAW: draws what sums over data and messages of the pipeline do to each other at the ports of a stage, and says which
# traffic delays which in a plan of GPT-2 1.5B on 64 ranks (make demo-contention).
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1 draw=$2
run=runs/demo-contention
rm -rf "$run"; mkdir -p "$run"

echo "4 stages of 4 chunks, 16 micro-batches, sums over data of 28 % of 1f1b's step, on paper:"
"$draw" "$run/ports.svg"
echo
echo "GPT-2 1.5B on 64 H200, 8 to a node: 4 stages of 2 chunks, each data group on two nodes"
"$program" plan --simulate --ranks 64 --config configs/gpt2-1.5b.yaml --json "$run/pairs.json" \
  grid.pipeline=4 grid.data=16 reproducible.data=16 schedule.kind=interleaved schedule.chunks=2 device.kind=cuda device.links.ranks_per_node=8 >"$run/plan.txt"
sed -n '2p' "$run/plan.txt"
grep 'hold up' "$run/plan.txt" || echo "nobody is held up for half a percent of the step"
python3 - "$run/pairs.json" <<'PYTHON'
import json, sys
costs = json.load(open(sys.argv[1]))["ports"]
for pair in costs["pairs"]:
    print(f"  {pair['waits']} waits for {pair['holds']}: {pair['waited_ns'] / 1e6:.1f} ms in all, "
          f"costs {pair['cost_ns'] / 1e6:.2f} ms of {costs['time_ns'] / 1e6:.1f} ms")
PYTHON
cat <<END

The picture: $run/ports.svg
Try next:
  more chunks, folded sums:   $program plan --simulate --ranks 64 --config configs/gpt2-1.5b.yaml grid.pipeline=4 grid.data=16 reproducible.data=16 device.kind=cuda schedule.kind=elastic schedule.chunks=4
END
