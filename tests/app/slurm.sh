#!/usr/bin/env bash
# thorough
# slurm.sh PROGRAM FAULTS: the program under a Slurm of its own on this machine (munged, slurmctld, slurmd as root on ports of 127.0.0.1), started
# with `srun --mpi=pmix` and no mpirun: four ranks leave the losses and weights of one rank, bit for bit, a refusal keeps its exit code, and so do a
# killed and a stopped rank, SIGUSR1 and a full disk (by FAULTS, the library that lets calls fail), behind each of which the run goes on to those bits.
# Everything is in a temporary directory and stops with the script. Exit code 77, with the reason, where Slurm is missing or does not start.
set -uo pipefail
program=$(realpath "${1:?slurm.sh PROGRAM FAULTS}") faults=$(realpath "${2:?slurm.sh PROGRAM FAULTS}")
source=$(cd "$(dirname "$0")/../.." && pwd)

skip() { echo "skipped: $*"; exit 77; }
missing=()
for command in munged slurmctld slurmd srun; do
  [[ -x $(PATH=$PATH:/usr/sbin command -v $command) ]] || missing+=("$command")
done
((${#missing[@]} == 0)) || skip "no ${missing[*]} here (Debian: apt-get install munge slurmctld slurmd slurm-client)"
((EUID == 0)) || skip "slurmd starts steps only as root"
export PATH=$PATH:/usr/sbin

exec 9>>/tmp/mindpipe-slurm.lock
flock 9   # two clusters on one machine get into each other's way

root=$(mktemp -d /tmp/mindpipe-slurm.XXXXXX)
daemons=()
cleanup() {
  [[ -z ${SLURM_CONF:-} ]] || timeout 5 scancel --full --user="$(id -un)" 2>/dev/null
  kill "${daemons[@]}" 2>/dev/null
  wait 2>/dev/null
  for process in /proc/[0-9]*; do   # a step's keeper outlives slurmd
    grep -qzs "^SLURM_CONF=$root/slurm.conf$" "$process/environ" && [[ ${process#/proc/} != "$$" ]] && kill -KILL "${process#/proc/}" 2>/dev/null
  done
  rm -rf "$root"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

free_port() {   # the first from here on that nobody listens on
  local port=$1
  while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do ((++port)); done
  echo "$port"
}

host=$(hostname -s)
controller=$(free_port $((20000 + $$ % 10000)))
mkdir "$root"/{state,spool,run,log}
cat >"$root/slurm.conf" <<END
ClusterName=mindpipe
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$controller
SlurmdPort=$(free_port $((controller + 1)))
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$root/run/munge,cred_expire=5
StateSaveLocation=$root/state
SlurmdSpoolDir=$root/spool
SlurmctldPidFile=$root/run/slurmctld.pid
SlurmdPidFile=$root/run/slurmd.pid
SlurmctldLogFile=$root/log/slurmctld
SlurmdLogFile=$root/log/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SwitchType=switch/none
MpiDefault=pmix
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES State=UP
END
echo "CgroupPlugin=autodetect" >"$root/cgroup.conf"
head -c 1024 /dev/urandom >"$root/munge.key" && chmod 400 "$root/munge.key"
export SLURM_CONF=$root/slurm.conf

munged --foreground --force --key-file="$root/munge.key" --socket="$root/run/munge" --pid-file="$root/run/munged.pid" --seed-file="$root/run/seed" \
  --log-file="$root/log/munged" &>"$root/log/munged.out" & daemons+=($!)
slurmctld -D &>"$root/log/slurmctld.out" & daemons+=($!)
slurmd -D &>"$root/log/slurmd.out" & daemons+=($!)
ready=no
for ((i = 0; i < 150; ++i)); do
  [[ $(timeout 2 sinfo --noheader --format=%t 2>/dev/null) == idle ]] && { ready=yes; break; }
  sleep 0.1
done
# The line that says why: a daemon's last words, or else the first thing that slurmd could not do.
last_error=$(grep -h "fatal:" "$root"/log/*.out | tail -n 1)
last_error=${last_error:-$(grep -h "error:" "$root/log/slurmd.out" | head -n 1)}
[[ $ready == yes ]] || skip "Slurm does not start here: ${last_error:-no error in its logs}"
srun --mpi=list 2>&1 | grep -qw pmix || skip "this Slurm has no pmix plugin ($(srun --mpi=list 2>&1 | tr -s '\n\t' ' '))"

failed=0
wrong() { echo "slurm.sh: $*" >&2; failed=1; }
# More ranks than processors, so that they share them.
on_four() { OMP_NUM_THREADS=1 timeout 60 srun --mpi=pmix --ntasks=4 --overcommit --kill-on-bad-exit=1 "$@"; }

cat >"$root/case.yaml" <<END
seed: 3
model: {kind: gpt, layers: 2, width: 32, heads: 2, context: 32, vocabulary: 256, dropout: 0.1}
data: {train: [$source/data/alice.txt]}
grid: {pipeline: 2, data: auto}
reproducible: {tensor: 1, data: 2}
train: {steps: 4, batch: 8, micro_batch: 2}
optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}
device: {threads: 1}
END
losses() { grep -o '"loss": [^,]*' "$1/metrics.jsonl"; }

"$program" --config "$root/case.yaml" run.dir="$root/alone" grid.pipeline=1 &>"$root/alone.log" || { cat "$root/alone.log" >&2; wrong "one rank alone failed"; }
on_four "$program" --config "$root/case.yaml" run.dir="$root/four" &>"$root/four.log" || { cat "$root/four.log" >&2; wrong "four ranks under srun failed"; }
grep -q "pipeline 2 x data 2 x tensor 1" "$root/four.log" || wrong "four ranks under srun did not see a grid of four: $(head -n 3 "$root/four.log")"
[[ $(losses "$root/alone" | wc -l) == 4 ]] || wrong "one rank alone left no losses of four steps"
diff <(losses "$root/alone") <(losses "$root/four") >&2 || wrong "four ranks under srun have other losses than one rank"
cmp "$root/alone/model.safetensors" "$root/four/model.safetensors" >&2 || wrong "four ranks under srun have other weights than one rank"

# What all ranks refuse is said by one and keeps its code; srun itself would make 137 of a code that only some leave with.
on_four "$program" --config "$root/case.yaml" run.dir="$root/refused" grid.data=3 &>"$root/refused.log"
code=$?
[[ $code == 78 ]] || wrong "a grid that does not fit ended with $code and not 78: $(cat "$root/refused.log")"
[[ $(grep -c "mindpipe-train: " "$root/refused.log") == 1 ]] || wrong "a grid that does not fit was not refused in one sentence: $(cat "$root/refused.log")"
[[ ! -e $root/refused ]] || wrong "a start that was refused has left $(ls "$root/refused")"
# A degree that no number of ranks would make right: how many there are is what srun says before MPI is up.
on_four "$program" --config "$root/case.yaml" run.dir="$root/refused" grid.tensor=3 &>"$root/refused.log"
grep -q "grids of 4 ranks that fit" "$root/refused.log" || wrong "no grids of four ranks were offered: $(cat "$root/refused.log")"

# Jobs of train.sbatch, which requeue themselves. A minute is the shortest limit, and Slurm looks every half minute whether it has to send its signal:
# one step of 45 s is under way when it comes.
cd "$root" || exit 1
cat >"$root/chain.yaml" <<END
seed: 3
model: {kind: gpt, layers: 2, width: 32, heads: 2, context: 32, vocabulary: 256}
data: {train: [$source/data/alice.txt]}
reproducible: {tensor: 1, data: 2}
train: {steps: 5, batch: 8, micro_batch: 2}
optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}
device: {threads: 1}
END
export MINDPIPE_TRAIN=$program OMP_NUM_THREADS=1
submit() {   # NAME [SETTING...]: the number of a job that runs the script on two ranks
  local name=$1; shift
  sbatch --parsable --ntasks=2 --overcommit --time=1 --signal=USR1@50 --output="$root/$name.log" "$source/scripts/slurm/train.sbatch" "$root/chain.yaml" \
    run.dir="$root/$name" grid.data=2 "$@"
}
state() { scontrol show job "$1" 2>/dev/null | sed -n 's/.*JobState=\([A-Z]*\).*/\1/p'; }
until_over() {   # JOB SECONDS
  local end=$((SECONDS + $2)) now
  while ((SECONDS < end)); do
    now=$(state "$1")
    [[ $now == COMPLETED || $now == FAILED || $now == TIMEOUT || $now == CANCELLED || -z $now ]] && return
    sleep 0.5
  done
}

"$program" --config "$root/chain.yaml" run.dir="$root/straight" &>"$root/straight.log" || wrong "one rank alone failed: $(cat "$root/straight.log")"
job=$(submit chain --inject slow@0:2:45s)
capped=$(MINDPIPE_REQUEUES=1 submit capped run.max_walltime=1ms)
refused=$(submit refused78 grid.tensor=3)
meant=$(submit meant run.stop_after=3)
for each in "$refused" "$capped" "$meant"; do until_over "$each" 110; done

# What ends a job under srun: its code, its status, and the same end of the run afterwards, on another grid.
long=(train.steps=12 checkpoint.every=2 grid.pipeline=1)
"$program" --config "$root/case.yaml" run.dir="$root/undisturbed" "${long[@]}" &>"$root/undisturbed.log" || wrong "one rank alone failed"
on_two() { OMP_NUM_THREADS=1 timeout 60 srun --mpi=pmix --ntasks=2 --overcommit --kill-on-bad-exit=1 "$program" --config "$root/case.yaml" "${long[@]}" "$@"; }
expect_end() {   # NAME CODE EXPECTED STATE SENTENCE: how the run NAME has ended, and that it goes on
  local name=$1 log
  log=$(cat "$root/$name.log")
  grep -Eq "$5" "$root/$name.log" || wrong "$name under srun does not say '$5': $log"
  [[ $2 == "$3" ]] || wrong "$name under srun ended with $2 and not $3: $log"
  grep -q "\"state\": \"$4\"" "$root/$name/status.json" || wrong "status.json behind $name is $(cat "$root/$name/status.json")"
  on_two run.dir="$root/$name" grid.pipeline=2 grid.data=1 &>"$root/$name.again.log" || wrong "the run does not go on behind $name: $(cat "$root/$name.again.log")"
  diff <(losses "$root/undisturbed") <(losses "$root/$name") >&2 || wrong "$name costs a step, or other losses"
  cmp "$root/undisturbed/model.safetensors" "$root/$name/model.safetensors" >&2 || wrong "behind $name the run ends with other weights"
}
on_two run.dir="$root/kill" grid.data=2 --inject kill@1:5 &>"$root/kill.log"
expect_end kill $? 137 stopped "task 1: Killed"
on_two run.dir="$root/stop" grid.data=2 watchdog.step=3s --inject stop@1:5 &>"$root/stop.log"
expect_end stop $? 81 failed "watchdog: step 5 has taken .* rank 1 "
LD_PRELOAD=$faults FILE_FAULTS=pwrite,write:28:4:1 FILE_FAULTS_ON=checkpoints/ on_two run.dir="$root/disk" grid.data=2 checkpoint.on_error=stop &>"$root/disk.log"
expect_end disk $? 74 failed "No space left on device"
on_two run.dir="$root/usr1" grid.data=2 --inject slow@0:4:4s &>"$root/usr1.log" & on_two=$!
for ((i = 0; i < 200; ++i)); do
  [[ ! -s $root/usr1/metrics.jsonl ]] || break
  sleep 0.1
done
for process in $(pgrep -x srun); do   # which hands it to every rank
  grep -qzs "run.dir=$root/usr1" "/proc/$process/cmdline" && kill -USR1 "$process"
done
wait $on_two
expect_end usr1 $? 75 stopped "SIGUSR1: stops after this step"

until_over "$job" 110
[[ $(state "$job") == COMPLETED ]] || wrong "the chain ended as $(state "$job"): $(cat "$root/chain.log")"
diff <(losses "$root/straight") <(losses "$root/chain") >&2 || wrong "the chain has other losses than a run that never stopped, or a step twice"
cmp "$root/straight/model.safetensors" "$root/chain/model.safetensors" >&2 || wrong "the chain has other weights than a run that never stopped"
requeued() { grep -c "the job requeues itself" "$root/$1.log"; }
(($(requeued chain) > 0)) || wrong "the chain was never requeued: $(cat "$root/chain.log")"
grep -q "SIGUSR1: stops after this step" "$root/chain.log" || wrong "Slurm's signal did not come: $(cat "$root/chain.log")"
[[ $(requeued refused78) == 0 && $(state "$refused") == FAILED ]] || wrong "a job that ended with 78 was requeued, or did not fail: $(cat "$root/refused78.log")"
[[ $(requeued capped) == 1 ]] && grep -q "the job has requeued itself 1 times (MINDPIPE_REQUEUES)" "$root/capped.log" ||
  wrong "a job did not requeue itself as often as it may, or oftener: $(cat "$root/capped.log")"
[[ $(requeued meant) == 0 ]] && grep -q "has stopped after step 3, as a file STOP or run.stop_after says" "$root/meant.log" ||
  wrong "a job whose stop was meant was requeued: $(cat "$root/meant.log")"
compgen -G "$root/.mindpipe-requeues-*" >/dev/null && wrong "a chain that has ended has left $(echo "$root"/.mindpipe-requeues-*)"

((SECONDS < 150)) || wrong "it took $SECONDS s, where 150 are allowed"
((failed == 0)) && echo "four ranks under srun --mpi=pmix: the losses and weights of one rank; a killed and a stopped rank, SIGUSR1, a full disk and a chain of jobs: those of one run"
exit $failed
