#!/usr/bin/env bash
# demo_layouts.sh PROGRAM PROGRAM_WITH_A_FAULT: trains one small model on four layouts, and on one of them with a single sum left out. The
# hashes of the weights say whether the layouts computed the same (make demo-layouts). The run with the fault ends before it writes weights,
# since ranks hold different copies of them. Exit code 1 if the layouts differ, or if the fault is not seen.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1 with_a_fault=$2 folder=runs/demo-layouts
settings=(--config configs/demo.yaml train.steps=${STEPS:-40} train.evaluate_every=0 reproducible.tensor=2 reproducible.data=2
  device.threads=1 trace.steps=0 optimizer.rate.warmup=2)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
rm -rf "$folder"; mkdir -p "$folder"

declare -A hash
layout() {  # NAME WHAT RANKS PROGRAM [SETTING ...]
  local name=$1 what=$2 ranks=$3 binary=$4; shift 4
  if ! mpirun --oversubscribe --bind-to none -n "$ranks" "$binary" "${settings[@]}" run.dir="$folder/$name" "$@" >"$folder/$name.log" 2>&1; then
    cat "$folder/$name.log" >&2; echo "demo-layouts: $name failed" >&2; exit 1
  fi
  hash[$name]=$(sha256sum "$folder/$name/model.safetensors" | cut -c1-16)
  printf '%-46s %s\n' "$what" "${hash[$name]}"
}
losses() { sed -E 's/.*"step": ([0-9]+), "loss": ([^,]+),.*"gradient_norm": ([^,]+),.*/\1 \2 \3/' "$folder/$1/metrics.jsonl"; }

echo "the same training on four layouts: SHA-256 of the weights (its first 16 digits)"
layout one "1 rank" 1 "$program"
layout pipeline "2 ranks: pipeline 2" 2 "$program" grid.pipeline=2
layout data_tensor "4 ranks: data 2 x tensor 2, ZeRO 2" 4 "$program" grid.data=2 grid.tensor=2 train.zero=2
layout pipeline_tensor "4 ranks: pipeline 2 x tensor 2, zb-h1" 4 "$program" grid.pipeline=2 grid.tensor=2 schedule.kind=zb-h1
code=0
MINDPIPE_LEAVE_OUT=tensor.sum:${FAULT:-700} mpirun --oversubscribe --bind-to none -n 2 "$with_a_fault" "${settings[@]}" run.dir="$folder/fault" grid.tensor=2 \
  >"$folder/fault.log" 2>&1 || code=$?
[[ $code == 76 ]] || { cat "$folder/fault.log" >&2; echo "demo-layouts: the sum that was left out changed nothing (exit code $code)" >&2; exit 1; }
printf '%-46s %s\n' "2 ranks: tensor 2, one sum of many left out" "other bits, exit 76"

for name in pipeline data_tensor pipeline_tensor; do
  [[ ${hash[$name]} == "${hash[one]}" ]] || { echo "demo-layouts: $name has other weights than one rank" >&2; exit 1; }
done
first=$(paste <(losses one) <(losses fault) | awk '$2 != $5 || $3 != $6 { print $1; exit }')
echo "four are equal, one is not: its loss or its gradient's norm is another from step $first on, and at its end"
grep -o 'ranks 0 .* hold different copies of [^,;]*' "$folder/fault.log" | head -n 1
