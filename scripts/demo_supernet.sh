#!/usr/bin/env bash
# demo_supernet.sh PROGRAM: trains a supernet that writes dates, searches it, trains the network that is found and one that was drawn from scratch,
# and says how good they are (make demo-supernet). Further arguments are settings of the supernet: key=value.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1; shift
run=runs/demo-supernet
rm -rf "$run"; mkdir -p "$run"

# quietly NAME WHAT ARGUMENT ...: a call of the program, whose log is shown where it fails
quietly() {
  local log=$run/$1.log start=$SECONDS
  "$program" "${@:3}" >"$run/$1.txt" 2>"$log" || { echo "$2 failed"; cat "$log" >&2; exit 1; }
  echo "$2: $((SECONDS - start)) s"
}
quietly training "the supernet is trained" train --config configs/supernet-dates.yaml run.dir="$run" "$@"
quietly search "a search scores networks" search --config "$run/config.yaml"
cat "$run/search.txt"; echo
drawn=$(sed -nE '1s/.*"choice": (\[[^]]*\]).*/\1/p' "$run/search/search.jsonl")
best=$run/search/best-1.yaml
steps=$(sed -nE 's/^  steps: ([0-9]+)$/\1/p' "$best" | head -n 1)
quietly found "the best of them is trained from scratch" train --config "$best" run.dir="$run/found" train.evaluate_every="$steps"
quietly drawn "and the first that was drawn" train --config "$best" run.dir="$run/drawn" train.evaluate_every="$steps" "model.choice=$drawn"

echo
python3 - "$run" <<'PYTHON'
import json, sys
run = sys.argv[1]
scores = [json.loads(line) for line in open(f"{run}/search/search.jsonl")]
best = min(scores, key=lambda score: (score["loss"], score["id"]))
print(f"{'':<8}{'score':>8}{'parameters':>12}{'trained: loss':>15}{'dates without a mistake':>25}  choice")
for name, score in (("found", best), ("drawn", scores[0])):
    end = json.loads(open(f"{run}/{name}/metrics.jsonl").readlines()[-1])
    print(f"{name:<8}{score['loss']:>8.4f}{score['parameters']:>12.0f}{end['validation_loss']:>15.4f}{100 * end['validation_exact']:>23.1f} %  "
          f"{','.join(map(str, score['choice']))}")
PYTHON
cat <<END

Try next:
  is the ranking true:        $program search --config $run/config.yaml search.verify=8
  small networks, too:        $program search --config $run/config.yaml search.searcher=pareto search.dir=$run/pareto
  what the found one is:      less $best
END
