# thorough
# 4 at a time
"""Jobs that are killed at any step and go on, on another grid each time, and SIGUSR1 at any moment: no step is lost, and the bits
are those of a run that was left alone."""
import os
import pathlib
import random
import signal
import time

from the_run import Runs, main

GRIDS = [(1, ""), (2, "grid.data=2"), (2, "grid.tensor=2"), (2, "grid.pipeline=2"), (2, "grid.data=2 train.zero=2"),
         (4, "grid.pipeline=2 grid.tensor=2"), (4, "grid.data=2 grid.tensor=2 train.zero=1")]
TIMES = int(os.environ.get("MINDPIPE_KILLS", "10"))


class Signals(Runs):
    def steps_done(self, run):
        return max((int(name[5:]) for name in self.names(run) if name.startswith("step-")), default=0)

    def kill_at_any_step(self):
        steps = 4 * TIMES  # a start is killed at most 6 steps behind a checkpoint, of which there is one every 3
        settings = f"train.steps={steps} checkpoint.every=3 train.evaluate_every=0"
        self.trained("whole", settings)
        seed = random.randrange(1 << 30)
        lots = random.Random(seed)
        grid = 0
        for _ in range(TIMES):
            grid = (grid + lots.randrange(1, len(GRIDS))) % len(GRIDS)
            ranks, layout = GRIDS[grid]
            at = self.steps_done("run") + lots.randrange(1, 7)
            begin = time.monotonic()
            answer = self.train("run", f"{settings} {layout} --inject kill@{lots.randrange(ranks)}:{at}", ranks)
            self.assertIn(answer.code, (137, -9), f"seed {seed}, {layout}, step {at}: {answer}")
            self.assertLess(time.monotonic() - begin, 30, "the launcher does not come back")
            end = time.monotonic() + 10
            while self.holder_lives("run") and time.monotonic() < end:
                time.sleep(0.02)
        self.trained("run", f"{settings} grid.data=2", 2)
        self.assertEqual(self.losses("run"), self.losses("whole"), f"seed {seed}")
        self.assertEqual(self.sha("run", steps), self.sha("whole", steps), f"seed {seed}")
        left = [path.name for path in (self.root / "run").rglob("*") if "partial" in path.name or ".step-" in str(path)]
        self.assertEqual(left, [])

    # Two runs, since each waits for its launcher.
    def test_a_rank_that_is_killed_at_any_step_costs_no_bit(self):
        self.kill_at_any_step()

    def test_another_rank_that_is_killed_at_any_step_costs_no_bit(self):
        self.kill_at_any_step()

    def ranks_of(self, run):
        """The processes of a job that catch SIGUSR1 by now."""
        found = []
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                command = (status.parent / "cmdline").read_bytes().split(b"\0")
                caught = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt"))
            except (OSError, StopIteration):
                continue
            if b"train" in command[1:2] and f"run.dir={self.root / run}".encode() in command and \
                    int(caught.split()[1], 16) >> (signal.SIGUSR1 - 1) & 1:
                found.append(int(status.parent.name))
        return found

    def assert_stopped_and_goes_on(self, run, code, settings, step, whole="whole"):
        self.assertEqual(code, 75)
        status = self.status(run)
        self.assertEqual((status["state"], status["checkpoint"]), ("stopped", f"checkpoints/step-{status['step']:08}"))
        self.assertIn(status["step"], step)
        self.trained(run, settings)
        self.assertEqual(self.losses(run), self.losses(whole))
        self.assertEqual(self.sha(run, 30), self.sha(whole, 30))

    def test_sigusr1_before_mpi_is_up_and_twice(self):
        settings = "train.steps=30 checkpoint.every=0"
        self.trained("whole", settings)
        for ranks, layout in ((1, ""), (2, " grid.data=2")):
            for run, times in ((f"once-{ranks}", 1), (f"twice-{ranks}", 2)):
                # The first step lasts until a test that others leave no processor has sent its signals.
                job = self.started(run, f"{settings}{layout} --inject slow@0:1:500ms", ranks)
                self.until(lambda: len(self.ranks_of(run)) == ranks)
                for _ in range(times):
                    for process in self.ranks_of(run):
                        os.kill(process, signal.SIGUSR1)
                self.assert_stopped_and_goes_on(run, job.wait(30), settings, (1, 2))

    def test_sigusr1_during_an_evaluation(self):
        settings = "train.steps=30 checkpoint.every=0 train.evaluate_every=20 train.evaluate_batches="
        for ranks, layout in ((1, ""), (2, " grid.data=2")):
            with self.subTest(layout):
                # Ranks that leave a test no processor end while it sleeps: the next evaluation takes four times as long.
                for batches in (32000, 128000):
                    run, longer = f"run-{ranks}-{batches}", f"{settings}{batches}"
                    job = self.started(run, longer + layout, ranks)
                    metrics = self.root / run / "metrics.jsonl"
                    self.until(lambda: metrics.exists() and metrics.read_text().count("\n") >= 19)
                    time.sleep(0.1)
                    for process in self.ranks_of(run):
                        os.kill(process, signal.SIGUSR1)
                    code = job.wait(60)
                    if code != 0:
                        break
                whole = f"whole-{batches}"  # a checkpoint says with which settings it was written
                if not (self.root / whole).exists():
                    self.trained(whole, longer)
                self.assert_stopped_and_goes_on(run, code, longer, (20, 21, 22), whole)


if __name__ == "__main__":
    main()
