#!/usr/bin/env python3
"""soak.py PROGRAM FAULTS HOURS [SEED]: disturbs trainings at random until the time is over (make soak HOURS=n).

In turn a GPT and a supernet train to their end in many starts, each on another grid. Ranks are killed, stopped by signals and by a
file, and disks are full. At its end a run has to have the state of one that nobody disturbed, byte for byte, no leftover file, and
ranks that take no more memory than at first. FAULTS is the library of the tests that lets calls fail (tests/preload)."""
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]
GPT = """seed: 3
model: {{kind: gpt, layers: 2, width: 64, heads: 4, context: 32, vocabulary: 256, dropout: 0.1}}
data: {{train: [{book}]}}
reproducible: {{tensor: 2, data: 2}}
train: {{steps: 3000, batch: 8, micro_batch: 2}}
checkpoint: {{every: 100, keep: 3}}
"""
SUPERNET = """seed: 3
model: {{kind: supernet, space: {{name: four, decoder: {{blocks: 4, candidates: [conv-3, mlp-2, attention-2, glu]}}}}, width: 16,
        context: 16, vocabulary: 256}}
data: {{train: [{book}]}}
supernet: {{sampler: permutation, window: 8}}
reproducible: {{tensor: 2, data: 2}}
train: {{steps: 4000, batch: 4, micro_batch: 1}}
checkpoint: {{every: 160, keep: 3}}
"""
REST = """optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}
watchdog: {step: 30s}
trace: {steps: 0}
device: {threads: 1}
"""
GRIDS = {
    "gpt": [(1, ""), (2, "grid.data=2"), (2, "grid.tensor=2"), (2, "grid.pipeline=2"), (4, "grid.data=2 grid.pipeline=2"),
            (2, "grid.data=2 train.zero=2"), (4, "grid.tensor=2 grid.data=2 train.zero=1")],
    "supernet": [(1, ""), (2, "grid.pipeline=2"), (4, "grid.pipeline=2 grid.data=2"), (2, "grid.supernet=2"), (2, "grid.tensor=2")],
}


class Soak:
    def __init__(self, program, faults, seed):
        self.program, self.faults, self.lots = program, faults, random.Random(seed)
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="mindpipe_soak_", dir=memory))
        self.peaks = {}   # the most memory of a rank: at first, and since
        self.counts = {}
        for kind, text in (("gpt", GPT), ("supernet", SUPERNET)):
            (self.root / f"{kind}.yaml").write_text(text.format(book=SOURCE / "data/alice.txt") + REST)

    def start(self, kind, run, ranks, settings, full_disk=False):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMPI_MCA_ess_singleton_isolated": "1"}
        if full_disk:
            environment |= {"LD_PRELOAD": self.faults, "FILE_FAULTS": f"pwrite,write:28:{self.lots.randrange(1, 40)}:1",
                            "FILE_FAULTS_ON": "checkpoints/", "FILE_FAULTS_LOG": ""}
        launcher = [str(SOURCE / "tests/run_mpi.sh"), str(ranks)] if ranks > 1 else []
        log = open(self.root / "log", "wb")
        return subprocess.Popen(launcher + [self.program, "train", "--config", str(self.root / f"{kind}.yaml"),
                                            f"run.dir={self.root / run}", *settings.split()],
                                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def ranks_of(self, run):
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                status = (entry / "status").read_text()
            except OSError:
                continue
            if words[0] == self.program.encode() and f"run.dir={self.root / run}".encode() in words:
                yield int(entry.name), status

    def finish(self, job, run, place, limit=300):
        """Waits, and looks at the memory of the ranks meanwhile."""
        end = time.monotonic() + limit
        peak = 0
        while job.poll() is None:
            if time.monotonic() > end:
                os.killpg(job.pid, signal.SIGKILL)
                raise SystemExit(f"soak: a job hangs ({place}): {(self.root / 'log').read_text()}")
            for _, status in self.ranks_of(run):
                for line in status.splitlines():
                    if line.startswith("VmHWM"):
                        peak = max(peak, int(line.split()[1]))
            time.sleep(0.1)
        return job.returncode, peak

    def note_peak(self, place, peak):
        first = self.peaks.setdefault(place, peak)
        if first == 0:
            self.peaks[place] = peak
        elif peak > first * 1.25 + 20000:
            raise SystemExit(f"soak: a rank takes {peak} KiB where it took {first} at first ({place})")

    def sha(self, run):
        newest = max((self.root / run / "checkpoints").glob("step-*"))
        return newest.name, hashlib.sha256((newest / "state.h5").read_bytes()).hexdigest()

    def disturb(self, kind, run):
        """One start that does not come to its end, unless it is quick."""
        ranks, grid = self.lots.choice(GRIDS[kind])
        what = self.lots.choice(["kill", "kill", "usr1", "stop", "full disk", "usr1 at once"])
        self.counts[what] = self.counts.get(what, 0) + 1
        job = self.start(kind, run, ranks, grid, what == "full disk")
        begin = time.monotonic()
        wait = 0 if what == "usr1 at once" else self.lots.uniform(0.3, 4)
        while job.poll() is None and time.monotonic() - begin < wait:
            time.sleep(0.01)
        there = [pid for pid, _ in self.ranks_of(run)]
        if what == "kill" and there:
            os.kill(self.lots.choice(there), signal.SIGKILL)
        elif what.startswith("usr1"):
            for pid in there if wait else []:
                self.send(pid, signal.SIGUSR1)
            if not wait:
                job.send_signal(signal.SIGUSR1) if ranks == 1 and self.catches(job.pid) else None
                time.sleep(0.5)
                for pid, _ in self.ranks_of(run):
                    self.send(pid, signal.SIGUSR1)
        elif what == "stop" and (self.root / run).is_dir():
            (self.root / run / "STOP").touch()
        code, peak = self.finish(job, run, f"{kind} {grid}, {what}")
        allowed = {"kill": (137, -9, 0, 143, 1), "full disk": (74, 0)}.get(what, (75, 0))
        if code not in allowed or "internal error" in (self.root / "log").read_text(errors="replace"):
            raise SystemExit(f"soak: {what} ended with {code} ({kind} {grid}): {(self.root / 'log').read_text()}")
        if what not in ("kill", "full disk"):
            self.note_peak(f"{kind} {grid}", peak)
        end = time.monotonic() + 15
        while list(self.ranks_of(run)) and time.monotonic() < end:
            time.sleep(0.05)

    @staticmethod
    def send(pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    @staticmethod
    def catches(pid):
        try:
            line = next(line for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt"))
        except (OSError, StopIteration):
            return False
        return int(line.split()[1], 16) >> (signal.SIGUSR1 - 1) & 1 == 1

    def round(self, kind, until):
        run = f"{kind}-disturbed"
        shutil.rmtree(self.root / run, ignore_errors=True)
        disturbed = self.lots.randrange(5, 12)
        for _ in range(disturbed):
            if time.monotonic() > until:
                break
            self.disturb(kind, run)
        ranks, grid = self.lots.choice(GRIDS[kind])
        (self.root / run / "STOP").unlink(missing_ok=True)
        code, peak = self.finish(self.start(kind, run, ranks, grid), run, f"{kind} {grid}")
        if code != 0:
            raise SystemExit(f"soak: the last start ended with {code}: {(self.root / 'log').read_text()}")
        if self.sha(run) != self.sha(f"{kind}-whole"):
            raise SystemExit(f"soak: {kind}: {self.sha(run)} is not {self.sha(f'{kind}-whole')}")
        status = json.loads((self.root / run / "status.json").read_text())
        left = [str(path) for path in (self.root / run).rglob("*")
                if "partial" in path.name or path.name.startswith(".step-") or path.name == "lock"]
        if status["state"] != "done" or left:
            raise SystemExit(f"soak: {kind}: {status}, left behind: {left}")

    def main(self, hours):
        begin = time.monotonic()
        until = begin + 3600 * hours
        for kind in GRIDS:
            code, _ = self.finish(self.start(kind, f"{kind}-whole", 1, ""), f"{kind}-whole", kind)
            if code != 0:
                raise SystemExit(f"soak: the undisturbed run ended with {code}: {(self.root / 'log').read_text()}")
        rounds = 0
        while time.monotonic() < until:
            for kind in GRIDS:
                self.round(kind, until)
                rounds += 1
        print(f"soak: {rounds} runs in {(time.monotonic() - begin) / 3600:.2f} hours had the state of one that nobody disturbed: "
              + ", ".join(f"{count} x {what}" for what, count in sorted(self.counts.items())))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 30)
    print(f"soak: seed {seed}", flush=True)
    soak = Soak(str(pathlib.Path(sys.argv[1]).resolve()), str(pathlib.Path(sys.argv[2]).resolve()), seed)
    try:
        soak.main(float(sys.argv[3]))
    finally:
        shutil.rmtree(soak.root, ignore_errors=True)
