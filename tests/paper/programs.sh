#!/usr/bin/env bash
# programs.sh MINDPIPE_TRAIN DRIVER OLD_CUDNN ASKS: the driver that tests plan with, in the folder DRIVER, and the old cuDNN in OLD_CUDNN are none for
# the program. Nothing of them is linked; in front of the library path they cannot be loaded; preloaded they do not let it start; and with ASKS
# preloaded, which has the name that they ask for, they serve nothing. A user who replaces more than that is not guarded against.
set -uo pipefail
program=$1 driver=$2 old_cudnn=$3 asks=$4
cd "$(dirname "$0")/../.."
fail() { echo "programs.sh: $*" >&2; exit 1; }

[[ -e $driver/libcuda.so.1 && -e $old_cudnn/libcudnn.so.9 && -e $asks ]] || fail "what stands in place of libraries is not there"
ldd "$program" | grep -E 'libcuda\.so|libcudnn' && fail "the program is linked with a driver or with cuDNN"
grep -q plans_on_paper "$program" && fail "the program has the name that they ask for"

libraries=${LD_LIBRARY_PATH:-}
# What doctor says with this in front of the library path, and that preloaded; empty where the program does not start.
doctor() { LD_LIBRARY_PATH=$1:$libraries LD_PRELOAD=$2 "$program" doctor 2>/dev/null; }
value() { sed -n "s/^$1 *//p" <<<"$output"; }
for preloaded in "" "$asks"; do
  for folder in "$driver" "$old_cudnn" "$old_cudnn:$driver"; do
    ways="with $folder in front of the library path, preloaded: ${preloaded:-nothing}"
    output=$(doctor "$folder" "$preloaded") || fail "$ways doctor ended with $?"
    [[ $(value graphics) == *"no GPU"* || $(value graphics) == *"no CUDA"* ]] || fail "$ways doctor sees a GPU: $(value graphics)"
    plans=$(value "plans on paper")
    [[ -z $plans || $plans == none* ]] || fail "$ways doctor plans: $plans"
    grep -q '9\.7\.0' <<<"$output" && fail "$ways doctor takes the old cuDNN for one: $output"
  done
done
for library in "$driver/libcuda.so.1" "$old_cudnn/libcudnn.so.9"; do
  output=$(doctor "$libraries" "$library")
  [[ -z $output ]] || fail "the program starts with $library preloaded: $output"
done

output=$(LD_LIBRARY_PATH=$driver:$libraries "$program" plan --config configs/gpt2-124m.yaml --ranks 1 device.kind=cuda grid.data=1) || fail "plan ended with $?"
grep -q 'attention: .*estimated' <<<"$output" || fail "the plan does not say that attention's memory is estimated: $output"
echo "no program takes them for a driver or for cuDNN"
