#!/usr/bin/env bash
# demo_memory.sh PROGRAM: a model whose tapes do not fit into the memory of four emulated stages; what computing blocks again and swapping
# them would take on paper; then runs of both, with the copies of tapes in one picture (make demo-memory). Everything is below
# runs/demo-memory.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1 folder=runs/demo-memory limit=120MiB
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
rm -rf "$folder"; mkdir -p "$folder"
cat >"$folder/config.yaml" <<END
run: {dir: $folder/run}
model: {kind: gpt, layers: 14, width: 256, heads: 4, context: 128, vocabulary: 256, tied: false}
data: {train: [synthetic:arithmetic]}
grid: {pipeline: 4, data: 1, tensor: 1}
schedule: {kind: 1f1b, chunks: 1, cuts: [8, 15, 22]}
train: {steps: 4, batch: 48, micro_batch: 8, zero: 0, sequence_parallel: false}
optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}
memory: {device_limit: $limit}
device: {kind: emulated, description: core, links: {copies: 3.0e8}}
END
plan() { "$program" plan --simulate --config "$folder/config.yaml" "$@" 2>"$folder/refused" || true; }

echo "1. on paper: four stages of at most $limit each"
while IFS='|' read -r name settings; do
  plan $settings >"$folder/plan"
  printf '   %-26s %s\n' "$name" "$(grep -oE 'step [0-9.]+ m?s' "$folder/plan" | head -1)"
  grep -oE 'tapes of swapped.*' "$folder/plan" | sed 's/^/      /' || true
  grep -oE 'memory: .*[0-9] MiB, and' "$folder/refused" | sed 's/^memory: /      does not fit: /; s/, and$//' || true
done <<'END'
all tapes kept|train.swap=none
all blocks computed again|train.recompute=block
all blocks swapped|train.swap=block
END
echo; echo "2. what the planner chooses (train.recompute=auto train.swap=auto)"
"$program" plan --search --config "$folder/config.yaml" --ranks 4 train.recompute=auto train.swap=auto >"$folder/search"
grep -E '^(step |tapes of blocks|keeping all|what binds)' "$folder/search" | sed 's/^ */   /'
echo; echo "3. emulated runs of all computed again, and of what was chosen"
train() { # NAME SETTING...
  local name=$1; shift
  mpirun --oversubscribe --bind-to none -n 4 "$program" train --config "$folder/config.yaml" run.dir="$folder/$name" "$@" \
    >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
}
train recomputed train.recompute=block
train chosen train.recompute=auto train.swap=auto
scripts/draw_schedules.py "$folder/memory.svg" recomputed="$folder/recomputed" chosen="$folder/chosen"
cat <<END

The picture: $folder/memory.svg (below the passes of a stage: its tapes on their way to the host and back)
Try next:
  less still:    $program plan --search --config $folder/config.yaml --ranks 4 train.recompute=auto train.swap=auto memory.device_limit=106MiB
END
