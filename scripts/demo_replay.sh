#!/usr/bin/env bash
# demo_replay.sh PROGRAM: eight emulated stages of which one is slow; who it is, what it costs, what would help; and the same run without it, as
# predicted (make demo-replay). Everything is below runs/demo-replay.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1 folder=runs/demo-replay
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
rm -rf "$folder"; mkdir -p "$folder"
cat >"$folder/config.yaml" <<END
run: {dir: $folder/slow}
model: {kind: gpt, layers: 16, width: 192, heads: 4, context: 128}
data: {train: [synthetic:arithmetic]}
grid: {pipeline: 8}
train: {steps: 14, batch: 64, micro_batch: 4}
optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}
device: {kind: emulated, description: core}
END
train() { mpirun --oversubscribe --bind-to none -n 8 "$program" train --config "$folder/config.yaml" "$@" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }; }

echo "1. eight stages, of which stage 5 computes 1.5 times as long (--inject slow@5:1:1.5); the end of the training says"
train --inject slow@5:1:1.5
awk '/note:/ { said = 1 } !/note:|^  / { said = 0 } said' "$folder/log"
echo; echo "2. replay: where a step goes, and what it would take if rank 5 were like the others, or backwards were shorter"
"$program" replay "$folder/slow" --scale rank:5=ideal kind:backward=0.8 2>/dev/null
echo; echo "3. another program, with the prices of that trace"
"$program" replay "$folder/slow" schedule.kind=zb-h1 2>/dev/null | sed -n "/^what if/,\$p"
echo; echo "4. rank 5 mended: the step beside what was predicted, and what changed between the two runs"
train run.dir="$folder/mended"
"$program" replay "$folder/slow" "$folder/mended" 2>/dev/null
if [[ -e runs/demo/replay/trace.safetensors ]]; then
  echo; echo "5. the run of make demo"
  "$program" replay runs/demo 2>/dev/null
fi
echo; echo "pictures: $folder/slow/replay/replay.html"
