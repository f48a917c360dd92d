# thorough
# 2 at a time
"""SIGKILL at points of a save, and again and again between steps."""
import random

from the_run import ALL, STEPS, Runs, main

SAVE = "step-00000006"  # the third save, of four


class Kills(Runs):
    def setUp(self):
        super().setUp()
        self.trained("whole")

    def calls_of(self, run, settings="", ranks=1, rank=0):
        """How many calls a rank makes for a save."""
        self.trained(run, settings, ranks, log=self.root / "log")
        calls = [
            line for line in (self.root / "log").read_text().splitlines()
            if SAVE in line and line.startswith(f"{rank} ")
        ]
        (self.root / "log").unlink()
        return len(calls)

    def points(self, settings, count=20):
        """The first and the last calls of a save one by one, and some between; with ALL each of them."""
        calls = self.calls_of("counted", settings)
        self.assertGreater(calls, 100)
        count = calls if ALL else count
        last = list(range(calls - 13, calls + 1))
        between = [4 + (calls - 18) * i // (count - 18) for i in range(count - 17)]
        return sorted({1, 2, 3, *between, *last})

    def try_kill(self, point, settings, ranks=1, rank="", then=1, grid=""):
        with self.subTest(point=point, settings=settings, ranks=ranks, rank=rank):
            run = f"killed-{point}-{ranks}-{rank}-{settings[-2:]}"
            answer = self.train(run, settings, ranks, faults=f"any:kill:{point}:1", on=SAVE, rank=rank)
            self.assertEqual(answer.code, 128 + 9 if ranks > 1 else -9, answer)
            stands = [name for name in self.names(run) if name.startswith("step-")]
            self.assertIn("step-00000004", stands, "the older one")
            self.assertEqual(self.ckpt("verify", self.root / run).code, 0)
            for name in stands:
                self.assertEqual(self.sha(run, int(name[5:])), self.sha("whole", int(name[5:])))
            again = self.train_again(run, grid, then)
            self.assertNotIn("passed over", again.text)
            self.assertIn(f"going on from {self.root}/{run}/checkpoints/{stands[-1]}, after", again.text)
            self.assertEqual(self.steps(run), [2, 4, 6, STEPS])
            for step in self.steps(run):
                self.assertEqual(self.sha(run, step), self.sha("whole", step))
            self.assertEqual(self.losses(run), self.losses("whole"))

    def test_in_the_foreground_the_older_or_the_newer_one_loads(self):
        settings = "checkpoint.background=no"
        for point in self.points(settings):
            self.try_kill(point, settings)

    def test_in_the_background_the_older_or_the_newer_one_loads(self):
        settings = "checkpoint.background=auto"
        for point in self.points(settings):
            self.try_kill(point, settings)

    def test_a_rank_of_two_and_on_another_grid_afterwards(self):
        for rank in (0, 1):
            calls = self.calls_of(f"two-{rank}", "grid.data=2", 2, rank)
            points = range(1 + rank, calls + 1, 3) if ALL else (calls // 2,
                                                                calls - 5) if rank == 0 else (calls - 1, )
            for point in points:
                self.try_kill(point, "grid.data=2", 2, rank, then=1 + point % 2,
                              grid="grid.tensor=2" if point % 2 else "")

    def test_five_starts_killed_at_random_steps_leave_one_file_of_metrics_and_the_same_state(self):
        steps = "train.steps=60 checkpoint.every=3 checkpoint.keep=2"
        self.trained("sixty", steps)
        seeds = range(20 if ALL else 1)
        for seed in seeds:
            chance, run = random.Random(seed), f"random-{seed}"
            for start in range(5):
                line = chance.randint(5, 14)
                answer = self.train(run, steps, faults=f"write:kill:{line}:1", on="metrics.jsonl")
                self.assertEqual(answer.code, -9, f"seed {seed}, start {start}, line {line}: {answer}")
            self.trained(run, steps)
            self.assertEqual(self.losses(run), self.losses("sixty"), f"seed {seed}")
            self.assertEqual(self.sha(run, 60), self.sha("sixty", 60), f"seed {seed}")
            self.assertEqual(self.steps(run), [57, 60])


if __name__ == "__main__":
    main()
