#!/usr/bin/env bash
# demo.sh PROGRAM: trains a small GPT on the bundled book for a minute at most, draws its losses, lets it write (make demo).
# Only the number of steps depends on the machine: a few steps tell how long one takes. There are at most as many as the configuration says,
# which fast machines take in less: with more the model learns the book by heart. Further arguments are settings: key=value.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1; shift
run=runs/demo config=configs/demo.yaml seconds=${DEMO_SECONDS:-58}
mkdir -p runs; rm -rf "$run" "$run-pace"

"$program" --config "$config" run.dir="$run-pace" train.steps=40 train.evaluate_every=0 "$@" >/dev/null 2>"$run-pace.log" ||
  { cat "$run-pace.log" >&2; exit 1; }
# The median of the later steps; at least as many steps as the warm-up and the first evaluation ask for.
most=$(sed -nE 's/^  steps: *([0-9]+).*/\1/p' "$config")
timed=$(sed -E 's/.*"seconds": ([0-9.e-]+).*/\1/' "$run-pace/metrics.jsonl" | tail -n 30 | LC_ALL=C sort -g |
  awk -v seconds="$seconds" -v most="$most" '{ at[NR] = $1 }
    END { step = at[int((NR + 1) / 2)]; n = int(seconds / step / 20) * 20
          n = n > most ? most : n; n = n < 40 ? 40 : n; printf "%d %.0f\n", n, n * step }')
read -r steps lasts <<<"$timed"
rm -rf "$run-pace" "$run-pace.log"
echo "demo: $steps steps, about $lasts seconds on this machine"

rm -rf "$run-four"  # of an earlier demo, with other steps
"$program" --config "$config" run.dir="$run" train.steps="$steps" train.evaluate_every=$((steps / 4)) "$@"
echo
"$program" report "$run" --svg "$run/loss.svg"
echo
"$program" generate --config "$run/config.yaml" | tee "$run/text.txt"
words() { LC_ALL=C grep -oE '[[:alpha:]]{3,}' "$1" | LC_ALL=C tr '[:upper:]' '[:lower:]'; }
words "$run/text.txt" | awk 'NR == FNR { book[$0]; next } { ++all; found += $0 in book }
  END { printf "\n%d %% of its words of three letters or more stand in the book\n", 100 * found / all }' <(words data/alice.txt) -
echo

mpirun=mpirun
((EUID != 0)) || mpirun+=" --allow-run-as-root"
(($(nproc) >= 4)) || mpirun+=" --oversubscribe"
cat <<END
Try next:
  the same bits on four ranks:  $mpirun -n 4 $program --config $run/config.yaml run.dir=$run-four grid.pipeline=2 grid.data=2 && sha256sum $run{,-four}/model.safetensors
  your own text:                $program --config $config data.train=my.txt data.validation=my.txt run.dir=runs/mine
  where the time of a step is:  open $run/trace.json in ui.perfetto.dev; $run/loss.svg in a browser
END
