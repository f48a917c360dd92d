"""Runs of the real program whose checkpoints are tried: PROGRAM is the binary, FAULTS the library that lets
calls fail."""
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(SOURCE / "tests"))
import shares  # noqa: E402

ALL = os.environ.get("MINDPIPE_ALL_FAULTS") == "1"  # the larger choices of make test-faults
PROGRAM, FAULTS = sys.argv[1:3]
STEPS = 8

# A constant rate: with another number of steps the same first ones are taken.
TINY = """seed: 3
model: {{kind: gpt, layers: 1, width: 32, heads: 2, context: 16, vocabulary: 256, dropout: 0.1}}
data: {{train: [{book}], validation: [{book}]}}
reproducible: {{tensor: 2, data: 2}}
train: {{steps: {steps}, batch: 4, micro_batch: 2, evaluate_every: 2, evaluate_batches: 1}}
optimizer: {{kind: adamw, rate: {{kind: constant, peak: 1.0e-3}}, weight_decay: 0.1}}
checkpoint: {{every: 2, keep: 4}}
trace: {{steps: 0}}
device: {{threads: 1}}
"""


class Answer:
    def __init__(self, code, text):
        self.code, self.text = code, text

    def __str__(self):
        return f"exit code {self.code}:\n{self.text}"


class Runs(unittest.TestCase):
    """Each test has a directory of its own, in memory where there is such a place: it waits for no disk."""

    def setUp(self):
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="mindpipe_checkpoints_", dir=memory))
        self.addCleanup(shutil.rmtree, self.root, True)
        (self.root / "tiny.yaml").write_text(TINY.format(book=SOURCE / "data/alice.txt", steps=STEPS))

    def environment(self, faults="", on="checkpoints/", rank="", log=None):
        changed = {**os.environ, "OMP_NUM_THREADS": "1", "OMPI_MCA_ess_singleton_isolated": "1"}
        if faults or log:
            changed |= {"LD_PRELOAD": FAULTS, "FILE_FAULTS_ON": on, "FILE_FAULTS_LOG": str(log or "")}
            changed |= {"FILE_FAULTS": faults} if faults else {}
            changed |= {"FILE_FAULTS_RANK": str(rank)} if rank != "" else {}
        return changed

    def command(self, run, settings="", ranks=1, verb="train"):
        launcher = [str(SOURCE / "tests/run_mpi.sh"), str(ranks)] if ranks > 1 else []
        return launcher + [
            PROGRAM, verb, "--config",
            str(self.root / "tiny.yaml"), f"run.dir={self.root / run}", *settings.split()
        ]

    def call(self, command, environment=None, limit=60):
        """Its exit code and all it says; a test fails where it does not end."""
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(command, env=environment or self.environment(),
                                       stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=self.root,
                                       start_new_session=True)
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
                code = "none: it hangs"
            said.seek(0)
            return Answer(code, said.read().decode(errors="replace"))

    def started(self, run, settings="", ranks=1, **faults):
        """A training that goes on while the test looks on."""
        process = subprocess.Popen(self.command(run, settings, ranks), env=self.environment(**faults),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def until(self, holds):
        end = time.monotonic() + 30
        while not holds():
            self.assertLess(time.monotonic(), end, "it never came to that")
            time.sleep(0.001)

    def train(self, run, settings="", ranks=1, limit=60, **faults):
        return self.call(self.command(run, settings, ranks), self.environment(**faults), limit)

    def train_again(self, run, settings="", ranks=1):
        """Behind a job whose launcher was told of a killed rank: the others may end a moment later than
        it."""
        end = time.monotonic() + 10
        while self.holder_lives(run) and time.monotonic() < end:
            time.sleep(0.02)
        return self.trained(run, settings, ranks)

    def killed_at(self, lines, file, run, settings="", ranks=1, verb="train"):
        """Kills a job once a file in its directory has so many lines, each of which takes its time; waits until no rank lives."""
        slow = self.environment(faults="write:sleep:1:20000", on=file.rpartition("/")[2])
        process = subprocess.Popen(self.command(run, settings, ranks, verb), env=slow, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(process.wait)
        end = time.monotonic() + 30
        path = self.root / run / file
        while not path.exists() or path.read_text().count("\n") < lines:
            self.assertLess(time.monotonic(), end, "it never came to that")
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        while self.holder_lives(path.parent.relative_to(self.root)):  # ranks notice later that their launcher is gone
            self.assertLess(time.monotonic(), end + 10, "it outlives its launcher")
            time.sleep(0.02)

    def holder_lives(self, run):
        lock = self.root / run / "lock"
        if not lock.exists():
            return False
        try:
            state = pathlib.Path(f"/proc/{json.loads(lock.read_text())['pid']}/stat").read_text().rpartition(
                ")")[2].split()[0]
        except (OSError, ValueError):
            return False
        return state not in "ZX"

    def trained(self, run, settings="", ranks=1, **faults):
        answer = self.train(run, settings, ranks, **faults)
        self.assertEqual(answer.code, 0, answer)
        return answer

    def refused(self, code, run, settings="", **faults):
        answer = self.train(run, settings, **faults)
        self.assertEqual(answer.code, code, answer)
        return answer.text

    def ckpt(self, *arguments, **faults):
        return self.call([PROGRAM, "ckpt", *map(str, arguments)], self.environment(**faults))

    def checkpoint(self, run, step):
        return self.root / run / "checkpoints" / f"step-{step:08}"

    def names(self, run):
        folder = self.root / run / "checkpoints"
        return sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []

    def steps(self, run):
        """Of the checkpoints that the run has; anything else there but the link to the newest is wrong."""
        steps = [int(name[5:]) for name in self.names(run) if name.startswith("step-")]
        self.assertEqual([name for name in self.names(run) if not name.startswith("step-")],
                         ["latest"] if steps else [])
        return steps

    def verified(self, run):
        """All checkpoints of a run are whole."""
        for name in self.names(run):
            if name.startswith("step-"):
                answer = self.ckpt("verify", self.root / run / "checkpoints" / name)
                self.assertEqual(answer.code, 0, answer)

    def sha(self, run, step=STEPS):
        return hashlib.sha256((self.checkpoint(run, step) / "state.h5").read_bytes()).hexdigest()

    def metrics(self, run):
        return [json.loads(line) for line in (self.root / run / "metrics.jsonl").read_text().splitlines()]

    def losses(self, run):
        """From the first step on, each once."""
        lines = self.metrics(run)
        self.assertEqual([line["step"] for line in lines], list(range(1, len(lines) + 1)))
        return [line["loss"] for line in lines]

    def status(self, run):
        return json.loads((self.root / run / "status.json").read_text())


def main():
    del sys.argv[1:3]
    shares.main()
