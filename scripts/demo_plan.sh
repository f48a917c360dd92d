#!/usr/bin/env bash
# demo_plan.sh PROGRAM: measures this machine, finds the best layout of a small model on two ranks by what was measured, draws it on a page, and
# runs the best two to see (make demo-plan). Everything is below runs/demo-plan.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1 folder=runs/demo-plan
settings=(--config configs/demo.yaml grid=auto device.threads=1 run.dir="$folder/run")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
rm -rf "$folder"; mkdir -p "$folder"
on_two() { mpirun --oversubscribe --bind-to none -n 2 "$program" "$@" 2>"$folder/log" || { cat "$folder/log" >&2; exit 1; }; }

echo "1. what the blocks of the model and messages take on two ranks of this machine"
on_two profile "${settings[@]}" --budget "${BUDGET:-20s}" --output "$folder/profile.yaml"
echo; echo "2. the best layout on two ranks by these prices; the best two are run"
on_two plan --search "${settings[@]}" device.profile="$folder/profile.yaml" --measure 2 --top 3 \
  --html "$folder/plan.html" --json "$folder/plan.json" --output "$folder/best.yaml"
echo; echo "3. a training that chooses for itself, and says what it planned and what it took"
on_two train "${settings[@]}" schedule=auto train.zero=auto train.recompute=auto device.profile="$folder/profile.yaml" \
  train.steps=20 train.evaluate_every=0 | grep -E "^planned|median step"
grep -h "best on paper\|was planned as" "$folder/log" || true
echo; echo "the page with the step as a timeline, memory and all layouts: $folder/plan.html"
