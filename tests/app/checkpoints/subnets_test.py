# thorough
# 2 at a time
"""Supernets that stop between windows and go on, on other grids: the files of a run that was never stopped. Networks of a
space, killed between steps, as any model."""
import json
import random
import shutil
import signal
import subprocess
import time

from the_run import PROGRAM, SOURCE, Runs, main

SUPERNET = """seed: 3
model:
  kind: supernet
  space: {{name: four, decoder: {{blocks: 4, candidates: [conv-3, mlp-2, attention-2, glu]}}}}
  width: 16
  context: 16
  vocabulary: 256
  dropout: 0.1
data: {{train: [{book}], validation: [{book}]}}
supernet: {{sampler: permutation, window: 8, evaluate_subnets: 2}}
reproducible: {{tensor: 2, data: 2}}
train: {{steps: 96, batch: 4, micro_batch: 1, evaluate_every: 48, evaluate_batches: 1, clip: 0.1}}
optimizer: {{kind: adamw, rate: {{kind: constant, peak: 1.0e-3}}, weight_decay: 0.1}}
checkpoint: {{every: 48, keep: 4}}
trace: {{steps: 0}}
device: {{threads: 1}}
"""
GRIDS = [(2, "grid.pipeline=2"), (4, "grid.pipeline=2 grid.data=2"), (4, "grid.pipeline=4"),
         (2, "grid.tensor=2 train.sequence_parallel=true"), (4, "grid.supernet=2 grid.pipeline=2 supernet.prices=h200"),
         (2, "grid.pipeline=2 supernet.cuts=own supernet.prices=equal")]
LANES = [(2, "grid.supernet=2"), (4, "grid.supernet=2 grid.pipeline=2 supernet.cuts=own"), (2, "grid.pipeline=2"),
         (4, "grid.supernet=4"), (4, "grid.supernet=2 grid.data=2"), (4, "grid.supernet=2 grid.tensor=2"), (1, "")]


class Subnets(Runs):
    def setUp(self):
        super().setUp()
        (self.root / "tiny.yaml").write_text(SUPERNET.format(book=SOURCE / "data/alice.txt"))

    def told(self, run):
        """The lines of metrics but for what the clock says and what each start adds to its first."""
        def is_told(key):
            return "seconds" not in key and key not in ("arithmetic", "course")
        return [{key: value for key, value in line.items() if is_told(key)} for line in self.metrics(run)]

    def arithmetic(self, run):
        return {line["arithmetic"] for line in self.metrics(run) if "arithmetic" in line}

    def assert_same(self, run, other, step=96):
        self.assertEqual(len(self.arithmetic(run) | self.arithmetic(other)), 1)
        self.assertEqual(self.told(run), self.told(other))
        self.assertEqual(self.sha(run, step), self.sha(other, step))

    def newest(self, run):
        """The step of a killed run's newest whole checkpoint."""
        return max((int(name[5:]) for name in self.names(run) if name.startswith("step-")), default=0)

    def test_all_grids_leave_the_same_files(self):
        self.trained("one")
        lines = self.told("one")
        self.assertEqual([line["subnet"] for line in lines], list(range(96)))
        self.assertEqual([line["step"] for line in lines if "validation_loss" in line], [48, 96])
        self.assertTrue(any(line["clipped"] > 0 for line in lines), "a clip that bites")
        for number, (ranks, grid) in enumerate(GRIDS):
            self.trained(f"grid-{number}", grid, ranks=ranks)
            self.assert_same(f"grid-{number}", "one")

    def test_faults_of_a_lane_come_with_its_next_subnet(self):
        lanes = "grid.supernet=2 train.evaluate_every=0 --inject "
        for fault, code in (("kill@1:5", 137), ("kill@1:6", 137), ("exit@1:5:9", 9), ("exit@1:6:9", 9)):
            answer = self.train(fault, lanes + fault, 2)
            self.assertEqual(answer.code, code, answer)
        for fault in ("nan@1:5", "nan@1:6", "inf@0:5"):
            self.trained(fault, lanes + fault, 2)
            self.assertEqual(sum(line["skipped"] > 0 for line in self.metrics(fault)), 1, fault)
        answer = self.train("lost", lanes + "lost-message@0:5", 2)
        self.assertEqual(answer.code, 78, answer)
        self.assertIn("messages between lanes have different lengths", answer.text)

    def test_a_stop_comes_between_windows_and_the_run_goes_on_elsewhere(self):
        steps = "train.steps=400 checkpoint.every=0 train.evaluate_every=0"
        self.trained("whole", steps)
        slow = self.environment(faults="write:sleep:1:100000", on="metrics.jsonl")
        process = subprocess.Popen(self.command("run", steps), env=slow, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        end = time.monotonic() + 30
        metrics = self.root / "run/metrics.jsonl"
        while not metrics.exists() or metrics.read_text().count("\n") < 3:
            self.assertLess(time.monotonic(), end, "it never came to that")
            time.sleep(0.005)
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(process.wait(60), 75)
        stopped = len(self.told("run"))
        self.assertEqual(stopped % 8, 0, "stopped amid a window")
        self.assertLess(stopped, 400)
        self.assertEqual(self.steps("run"), [stopped])
        self.trained("run", steps + " grid.pipeline=2 grid.data=2", ranks=4)
        self.assert_same("run", "whole", 400)

    def test_a_killed_run_goes_on_from_its_checkpoint(self):
        self.trained("whole")
        shutil.copytree(self.root / "whole", self.root / "run", symlinks=True)
        shutil.rmtree(self.checkpoint("run", 96))  # as a kill leaves it: lines behind its last checkpoint
        with (self.root / "run/metrics.jsonl").open("a") as metrics:
            metrics.write('{"step": 97, "subnet": 96, "lo')
        answer = self.trained("run", "grid.pipeline=4", ranks=4)
        self.assertIn("after step 48", answer.text)
        self.assert_same("run", "whole")

    def test_a_run_killed_ten_times_goes_on_over_other_lanes_stages_and_replicas(self):
        steps = "train.steps=400 train.evaluate_every=0 checkpoint.every=16"
        self.trained("whole", steps)
        draws = random.Random(11)
        for kill in range(10):
            ranks, grid = LANES[kill % len(LANES)]
            newest = self.newest("run")
            self.killed_at(newest + draws.randrange(8, 36), "metrics.jsonl", "run", f"{steps} {grid}", ranks)
        self.assertGreater(self.newest("run"), 48)
        self.trained("run", steps + " grid.supernet=2 grid.pipeline=2", ranks=4)
        self.assert_same("run", "whole", 400)

    def test_where_no_window_ends_nothing_goes_on(self):
        self.trained("run", "train.steps=20 train.evaluate_every=0 checkpoint.every=0")
        text = self.refused(78, "run", "train.steps=40 train.evaluate_every=0 checkpoint.every=0")
        self.assertIn("was saved after 20 subnets, amid a window of supernet.window = 8", text)

    def test_what_overflows_in_one_part_of_the_sequence_falls_away_on_all_ranks(self):
        tiny = (SOURCE / "configs/supernet-tiny.yaml").read_text()
        (self.root / "tiny.yaml").write_text(tiny.replace("configs/spaces", str(SOURCE / "configs/spaces")))
        wild = ("seed=2 train.steps=40 train.evaluate_every=0 supernet.window=1 optimizer.rate.kind=constant "
                "optimizer.rate.warmup=0 optimizer.rate.peak=5 train.precision=f32 optimizer.weight_decay=0 "
                "train.clip=0 train.batch=2 train.micro_batch=1 train.sequence_parallel=true trace.steps=0")
        self.trained("one", wild)
        self.assertTrue(any(line["skipped"] > 0 for line in self.told("one")), "something falls away")
        self.trained("two", wild + " grid.pipeline=1 grid.tensor=2", ranks=2)
        self.assert_same("two", "one", 40)

    def test_a_file_says_which_subnets(self):
        choices = self.root / "choices.txt"
        choices.write_text("".join(f"{i % 4}, {i % 3}, 0, {i % 2}\n" for i in range(8)))
        few = f"supernet.sampler={choices} train.steps=8 train.evaluate_every=0 checkpoint.every=0"
        self.trained("run", few)
        self.assertEqual([line["choice"] for line in self.told("run")],
                         [[i % 4, i % 3, 0, i % 2] for i in range(8)])
        text = self.refused(65, "more", few.replace("steps=8", "steps=16"))
        self.assertIn("has 8 choices, and train.steps asks for 16 subnets", text)
        choices.write_text("0, 1, 2, 3\n" * 16)
        text = self.refused(78, "run", few.replace("steps=8", "steps=16"))
        self.assertIn("was trained with other subnets than the first 8", text)


NETWORK = """seed: 3
model:
  kind: subnet
  space: {{name: six, decoder: {{blocks: 6, candidates: [conv-3, mlp-2, attention-2, glu, light-5-4, separable-3]}}}}
  choice: [0, 2, 4, 5, 3, 1]
  width: 16
  context: 16
  vocabulary: 256
  dropout: 0.1
data: {{train: [{book}], validation: [{book}]}}
reproducible: {{tensor: 2, data: 2}}
train: {{steps: 12, batch: 4, micro_batch: 1, evaluate_every: 4, evaluate_batches: 1, clip: 0.1}}
optimizer: {{kind: adamw, rate: {{kind: constant, peak: 1.0e-3}}, weight_decay: 0.1}}
checkpoint: {{every: 4, keep: 4, background: no}}
trace: {{steps: 0}}
device: {{threads: 1}}
"""


class Networks(Runs):
    def setUp(self):
        super().setUp()
        (self.root / "tiny.yaml").write_text(NETWORK.format(book=SOURCE / "data/alice.txt"))

    def killed(self, run, line, settings="", ranks=1):
        answer = self.train(run, settings, ranks, faults=f"write:kill:{line}:1", on="metrics.jsonl", rank=0)
        self.assertEqual(answer.code, -9 if ranks == 1 else 137, answer)

    def assert_same(self, run, other):
        self.assertEqual(self.losses(run), self.losses(other))
        self.assertEqual(self.sha(run, 12), self.sha(other, 12))

    def test_a_killed_one_goes_on_on_other_grids(self):
        self.trained("whole")
        self.killed("run", 6)
        self.assertEqual(self.steps("run"), [4])
        self.killed("run", 7, "grid.pipeline=2", 2)
        self.assertEqual(self.steps("run"), [4, 8])
        answer = self.trained("run", "grid.pipeline=2 grid.tensor=2 schedule.kind=zb-h1", ranks=4)
        self.assertIn("after step 8", answer.text)
        self.assert_same("run", "whole")

    def test_weights_to_begin_with_are_read_once(self):
        supernet = SUPERNET.replace("blocks: 4", "blocks: 6").replace("glu]", "glu, light-5-4, separable-3]")
        (self.root / "super.yaml").write_text(supernet.format(book=SOURCE / "data/alice.txt"))
        settings = f"run.dir={self.root}/super train.steps=8 train.evaluate_every=0 checkpoint.every=0"
        answer = self.call([PROGRAM, "--config", str(self.root / "super.yaml"), *settings.split()])
        self.assertEqual(answer.code, 0, answer)
        answer = self.call([PROGRAM, "extract", str(self.root / "super"), "--choice", "0,2,4,5,3,1", "--output",
                            str(self.root / "net")])
        self.assertEqual(answer.code, 0, answer)
        inherits = f"run.weights={self.root}/net"
        self.trained("scratch")
        self.trained("whole", inherits)
        self.assertNotEqual(self.losses("whole"), self.losses("scratch"))
        self.killed("run", 3, inherits)  # before the first checkpoint: it begins with them again
        self.assertEqual(self.steps("run"), [])
        self.killed("run", 6, inherits, 1)
        (self.root / "net/model.safetensors").unlink()  # behind it nobody asks for them
        self.trained("run", inherits + " grid.data=2", ranks=2)
        self.assert_same("run", "whole")


main()
