#!/usr/bin/env bash
# thorough
# rehearse.sh BUILD: the bundle is made, moved elsewhere, and run from start to end with nothing of the environment: on the processor, and, where
# there is no GPU, as on a machine with one.
set -uo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "rehearse.sh: $*" >&2; exit 1; }

scripts/gpu_check/bundle.sh "$build" "$folder/made" || fail "no bundle"
mv "$folder/made" "$folder/moved"
check() { (cd "$folder" && env -i PATH=/usr/bin:/bin HOME="$folder" "$folder/moved/gpu-check.sh" "$@" 2>&1); }

output=$(check --device cpu --output "$folder/rehearsal" --only kernels,library,models,ceilings,gpt2-124m,parity-2,subnets-2,tune,memory,nccl-self)
code=$?
echo "$output"
[[ $code == 0 ]] || fail "the rehearsal ended with $code"
grep -aq 'description of this GPU: ' "$folder/moved/bin/test_kernels_cuda_kernels" || fail "no part that needs no library describes the GPU"
grep -q '^REHEARSAL on the processor' <<<"$output" || fail "the rehearsal does not say what it is"
python3 - "$folder/rehearsal/gpu-check.json" <<'END' || fail "the figures are not as they should be"
import json, os, sys
report = json.load(open(sys.argv[1]))
outcomes = {part["name"]: part["outcome"] for part in report["parts"]}
assert outcomes.pop("doctor") == outcomes.pop("ceilings") == outcomes.pop("gpt2-124m") == outcomes.pop("parity-2") == outcomes.pop("subnets-2") == "passed", report["parts"]
assert outcomes.pop("tune") == outcomes.pop("memory") == "not run" and outcomes.pop("nccl-self") == "skipped", report["parts"]
assert set(outcomes) == {"kernels", "library", "models"} and set(outcomes.values()) <= {"skipped", "passed"}, outcomes
assert len(report["heaviest"]) == 10 and all(row["microseconds"] > 0 for row in report["heaviest"])
assert sorted(os.listdir(os.path.dirname(sys.argv[1]))) == ["gpu-check.json", "logs.txt.gz"]
assert report["training"]["gpt2-124m"]["tokens_per_second"] > 0 and report["code"] == 0
END

graphics=$("$build/mindpipe-train" doctor | sed -n 's/^graphics *//p')
if [[ $graphics == *"no GPU"* ]]; then
  output=$(check --output "$folder/none")
  code=$?
  [[ $code == 69 ]] || fail "without a GPU it ended with $code and not 69: $output"
  grep -q "racecheck" <<<"$output" || fail "what would have run is not listed: $output"
  grep -q '"verdict": "no GPU"' "$folder/none/gpu-check.json" || fail "no JSON says that there is no GPU"
  PYTHONPATH=scripts/gpu_check python3 - "$folder/moved" <<'END' || fail "the products of GPT-2 124M cannot be timed"
import subprocess, sys
import devices, training
command = devices.tuning(sys.argv[1], training.CASES["gpt2-124m"], sys.argv[1] + "/products.table")
done = subprocess.run(command, capture_output=True, text=True)
assert done.returncode == 78 and "CUDA finds no GPU" in done.stderr, (done.returncode, done.stderr)
END
fi
check --only nothing >/dev/null
[[ $? == 2 ]] || fail "a part that is not there was not refused"
echo "rehearsed"
