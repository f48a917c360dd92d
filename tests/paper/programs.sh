#!/usr/bin/env bash
# programs.sh MINDPIPE_TRAIN FOLDER ASKS: the driver that tests plan with, in FOLDER, is none for the program: nothing of it is linked, and in front of
# the library path it finds no GPU and gives no plan. With ASKS preloaded, which makes a driver without a GPU of it, doctor plans for every described
# GPU, where cuDNN is.
set -uo pipefail
program=$1 folder=$2 asks=$3
cd "$(dirname "$0")/../.."
fail() { echo "programs.sh: $*" >&2; exit 1; }

[[ -e $folder/libcuda.so.1 ]] || fail "$folder has no libcuda.so.1"
ldd "$program" | grep -E 'libcuda\.so|libcudnn' && fail "the program is linked with a driver or with cuDNN"
grep -q plans_on_paper "$program" && fail "the program names what the driver in place of the real one asks for"

export LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-}
output=$("$program" doctor) || fail "doctor ended with $?"
graphics=$(sed -n 's/^graphics *//p' <<<"$output")
[[ $graphics == *"no GPU"* || $graphics == *"no CUDA"* ]] || fail "doctor sees a GPU: $graphics"
plans=$(sed -n 's/^plans on paper *//p' <<<"$output")
[[ -z $plans || $plans == none* ]] || fail "doctor plans with a driver that is none: $plans"
output=$("$program" plan --config configs/gpt2-124m.yaml --ranks 1 device.kind=cuda grid.data=1) || fail "plan ended with $?"
grep -q 'attention: .*estimated' <<<"$output" || fail "the plan does not say that attention's memory is estimated: $output"

plans=$(LD_PRELOAD=$asks "$program" doctor | sed -n 's/^plans on paper *//p')
described=$(cd data/devices && ls -- *.json | sed 's/\.json//' | paste -sd, | sed 's/,/, /g')
if [[ -z $plans || $plans == *"is not found"* || $plans == *"cannot plan for a GPU that is not there"* ||
  $plans == *"this build has no cuDNN frontend"* ]]; then
  echo "no program takes it for a driver; whether doctor plans with one is left out: ${plans:-no CUDA or no cuDNN frontend in this build}"
  exit 77
fi
[[ $plans == "$described (cuDNN "* ]] || fail "with a driver doctor plans for '$plans', and not for $described"
echo "no program takes it for a driver; with one doctor plans for $plans"
