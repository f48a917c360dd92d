#!/usr/bin/env bash
# demo_schedules.sh PROGRAM: one model on four emulated stages by five schedules and an order that is searched: what plans say of each, then a run of
# each, all timelines in one picture (make demo-schedules). Everything is below runs/demo-schedules.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1 folder=runs/demo-schedules
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
rm -rf "$folder"; mkdir -p "$folder"
cat >"$folder/config.yaml" <<END
run: {dir: $folder/run}
model: {kind: gpt, layers: 14, width: 192, heads: 4, context: 128, vocabulary: 256, tied: false}
data: {train: [synthetic:arithmetic]}
grid: {pipeline: 4}
train: {steps: 4, batch: 24, micro_batch: 4}
optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}
device: {kind: emulated, description: core}
END

echo "1. on paper: four stages, six micro-batches, every schedule that they can have"
"$program" plan --simulate --config "$folder/config.yaml" | sed -n '/^schedule  /,/^$/p'
echo; echo "2. emulated runs of six of them: the last step as it ran"
runs=()
for schedule in 1f1b interleaved zb-h1 zb-v v-half searched; do
  chunks=1; [[ $schedule == interleaved ]] && chunks=2
  mpirun --oversubscribe --bind-to none -n 4 "$program" train --config "$folder/config.yaml" run.dir="$folder/$schedule" \
    schedule.kind=$schedule schedule.chunks=$chunks >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
  runs+=("$schedule=$folder/$schedule")
done
scripts/draw_schedules.py "$folder/schedules.svg" "${runs[@]}"
cat <<END

The picture: $folder/schedules.svg
Try next:
  less memory:   $program plan --simulate --config $folder/config.yaml schedule.kind=searched schedule.memory=0.8
END
