# replay_verb_test.py PROGRAM
# thorough
"""The verb replay on emulated runs of the real program: who is named, what it leaves, what if, two runs, two hosts, prices for a search."""
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
MPI = str(pathlib.Path(__file__).resolve().parents[1] / "run_mpi.sh")
CONFIG = """run: {dir: run}
model: {kind: gpt, layers: 8, width: 128, heads: 4, context: 64}
data: {train: [synthetic:arithmetic]}
grid: {pipeline: 4}
train: {steps: 14, batch: 16, micro_batch: 2}
optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}
device: {kind: emulated, description: core}
"""
SOURCE = pathlib.Path(__file__).resolve().parents[2]
SUPERNET = (SOURCE / "configs/supernet-tiny.yaml").read_text().replace("configs/spaces", f"{SOURCE}/configs/spaces")


def tensors(path):
    """The metadata and the tensors of a trace, each a flat tuple of numbers."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8:8 + size])
    found = {}
    for name, tensor in head.items():
        if name != "__metadata__":
            begin, end = (8 + size + at for at in tensor["data_offsets"])
            found[name] = tensor["shape"], struct.unpack(f"<{(end - begin) // 8}q", raw[begin:end])
    return head["__metadata__"], found


def one_line(text):
    return " ".join(text.split())


class ReplayVerb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="mindpipe_replay_")
        cls.root = pathlib.Path(cls.folder.name)
        (cls.root / "config.yaml").write_text(CONFIG)
        cls.said = cls.train("slow", "--inject", "slow@2:1:2")
        cls.train("mended")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def call(cls, command, code=0):
        done = subprocess.run(command, cwd=cls.root, capture_output=True, text=True, timeout=120)
        if done.returncode != code:
            raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    @classmethod
    def train(cls, run, *more):
        return cls.call([MPI, "4", PROGRAM, "train", "--config", "config.yaml", f"run.dir={run}", *more])

    def replay(self, *words, code=0):
        return self.call([PROGRAM, "replay", *words], code)

    def numbers(self, run):
        return json.loads((self.root / run / "replay/replay.json").read_text())

    def test_the_slow_rank_is_named_at_the_end_of_the_training_and_by_the_verb(self):
        self.assertRegex(self.said, r"note: rank 2 \(stage 2, data 0, tensor 0\) computes (1\.9|2\.0)\d times as long")
        self.assertRegex(self.replay("slow"), r"- rank 2 \(stage 2, data 0, tensor 0\) computes (1\.9|2\.0)\d times as long")
        numbers = self.numbers("slow")
        self.assertEqual((numbers["causes"][0]["kind"], numbers["causes"][0]["rank"]), ("slow rank", 2))
        levels = numbers["levels"]
        self.assertEqual(sum(level["costs"] for level in levels[1:]), levels[0]["period"] - levels[-1]["period"])

    def test_the_period_follows_from_the_file_alone(self):
        self.replay("slow")
        metadata, found = tensors(self.root / "slow/replay/trace.safetensors")
        self.assertEqual(metadata["injected"], "slow@2:1:2")
        last = {}
        for rank in range(4):
            (steps, actions, _), times = found[f"times.{rank}"]
            for step in range(steps):
                ends = times[2 * actions * step + 1:2 * actions * (step + 1):2]
                last[step] = max(last.get(step, 0), max(ends))
        period = (last[len(last) - 1] - last[0]) // (len(last) - 1)
        self.assertEqual(self.numbers("slow")["levels"][0]["period"], period)

    def test_the_page_has_all_pictures_and_needs_nothing_else(self):
        self.replay("slow")
        page = (self.root / "slow/replay/replay.html").read_text()
        self.assertEqual(page.count("<svg"), 7)
        self.assertNotIn("http://", page.replace("http://www.w3.org/2000/svg", ""))
        self.assertNotIn("<script", page)

    def test_what_if_other_settings(self):
        said = self.replay("mended", "schedule.kind=zb-h1")
        self.assertRegex(one_line(said), r"what if schedule.kind=zb-h1: .* shorter \(the traced program, priced so, is [+-]?\d")
        self.assertLessEqual(max(map(len, said.splitlines())), 120)
        self.assertIn("another training", self.replay("mended", "model.layers=4", code=2))
        self.assertIn("another training", self.replay("mended", "grid.supernet=2", code=2))
        self.assertIn("say a number", self.replay("mended", "grid.data=auto", code=2))
        self.assertIn("there is no stage", self.replay("mended", "--scale", "stage:7=2", code=2))

    def test_two_runs_differ_in_the_rank_that_was_slow(self):
        said = self.replay("mended", "slow")
        self.assertRegex(said, r"mended: .* a step, and slow: .*, .* %")
        self.assertRegex(said, r"\n- rank 2 \(stage 2, data 0, tensor 0\) computes (1\.9|2\.0)\d times as long as before: \+")
        self.assertIn("is a third", self.replay("mended", "slow", "slow", code=2))

    def test_a_skewed_clock_is_brought_together_within_a_bound(self):
        self.train("skewed", "--inject", "skew@1:0:7ms+20ppm,slow@2:1:2")
        said = self.replay("skewed")
        bound = re.search(r"2 hosts, clocks within ([0-9.]+) us", said)
        self.assertIsNotNone(bound, said)
        self.assertLess(float(bound.group(1)), 2000, "ranks that share two processors wake up late")
        self.assertRegex(said, r"- rank 2 \(stage 2, data 0, tensor 0\) on \S+ computes (1\.9|2\.0)\d times as long")
        _, found = tensors(self.root / "skewed/replay/trace.safetensors")
        self.assertEqual([found[f"pings.{rank}"][0][0] for rank in range(4)], [0, 100, 0, 0])

    def test_a_search_takes_the_prices_of_a_trace(self):
        said = self.call([PROGRAM, "plan", "--search", "--from", "mended", "--ranks", "4", "--config", "config.yaml", "grid=auto"])
        self.assertIn("the best of those simulated", said)
        self.assertIn("passes:", (self.root / "mended/replay/prices.yaml").read_text())
        self.call([PROGRAM, "plan", "--search", "--from", "mended", "--ranks", "4", "--config", "config.yaml", "model.layers=4"], 78)

    def test_a_trace_without_one_rank_says_which_and_what_the_others_compute(self):
        for name, missing in (("without_the_slow_rank", 2), ("without_another", 0)):
            shutil.copytree(self.root / "slow", self.root / name)
            path = self.root / name / "replay/trace.safetensors"
            raw = bytearray(path.read_bytes())
            size = int.from_bytes(raw[:8], "little")
            begin, end = json.loads(raw[8:8 + size])[f"times.{missing}"]["data_offsets"]
            raw[8 + size + begin:8 + size + end] = bytes(end - begin)  # as before its rank writes
            path.write_bytes(raw)
            said = self.replay(name, code=65)
            self.assertIn(f"the times of rank {missing} (stage {missing}, data 0, tensor 0) are missing", said)
            self.assertNotIn(f"- rank {missing} ", said)
            self.assertRegex(said, r"\n  rank 1 \(stage 1, data 0, tensor 0\) +[0-9.]+ ms")
            for words in ([name, "--scale", "rank:1=2"], [name, "schedule.kind=zb-h1"], ["mended", name]):
                self.assertIn(f"the times of rank {missing} are missing", self.replay(*words, code=65))
        self.assertRegex(said, r"- rank 2 \(stage 2, data 0, tensor 0\) computes (1\.9|2\.0)\d times as long as its peers")

    def test_a_recorded_trace_that_is_broken_is_refused_in_one_sentence(self):
        shutil.copytree(self.root / "slow", self.root / "broken")
        path = self.root / "broken/replay/trace.safetensors"
        whole, draw = path.read_bytes(), random.Random(47)
        head = 8 + int.from_bytes(whole[:8], "little")
        broken = {f"cut at {at}": whole[:at] for at in (draw.randrange(len(whole)) for _ in range(50))}
        for at in [draw.randrange(head) for _ in range(50)] + [draw.randrange(len(whole)) for _ in range(150)]:
            bit = 1 << draw.randrange(8)
            broken[f"byte {at} with another bit {bit}"] = whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1:]
        broken["another version"] = whole.replace(b'"version":"3"', b'"version":"9"')
        self.assertNotEqual(broken["another version"], whole)
        for how, raw in broken.items():
            path.write_bytes(raw)
            with self.subTest(how):
                said = self.replay("broken", code=65)
                self.assertEqual(len(said.strip().splitlines()), 1, said)
                self.assertIn("trace.safetensors", said)
        self.assertIn("is a trace of version 9", said)

    def test_the_last_subnets_of_a_supernet_are_replayed(self):
        (self.root / "supernet.yaml").write_text(SUPERNET)
        self.call([MPI, "4", PROGRAM, "train", "--config", "supernet.yaml", "run.dir=subnets", "device.kind=emulated",
                   "device.description=core", "train.steps=32", "trace.steps=12", "train.evaluate_every=0", "grid.pipeline=4",
                   "--inject", "slow@2:1:2"])
        said = self.replay("subnets")
        self.assertIn("subnets 20 to 31 on 4 ranks", said)
        self.assertIn("(0.00 %, every begin within 0.0 us", said)
        self.assertRegex(said, r"- rank \d \(stage \d, data 0, tensor 0\) stood idle for [0-9.]+ [mu]?s, since ")
        self.assertRegex(one_line(said), r"; stage 2 takes [12]\.\d\d times as long as others")
        longer = self.replay("subnets", "--scale", "stage:2=2")
        self.assertRegex(longer, r"what if stage:2=2, in the same order: [0-9.]+ [mu]?s a subnet, [0-9.]+ [mu]?s longer")
        self.assertIn("does the same work", self.replay("subnets", "--scale", "kind:forward=ideal", code=2))
        self.assertIn("makes another training of it", self.replay("subnets", "schedule.chunks=2", code=2))
        self.assertIn("compares steps, not subnets", self.replay("subnets", "mended", code=2))

    def test_subnets_on_lanes_are_replayed_drawn_and_planned_otherwise(self):
        (self.root / "lanes.yaml").write_text(SUPERNET)
        run = [MPI, "4", PROGRAM, "train", "--config", "lanes.yaml", "device.kind=emulated", "device.description=core", "train.steps=64",
               "trace.steps=32", "train.evaluate_every=0", "supernet.prices=h200"]
        self.call([*run, "run.dir=lanes", "grid.supernet=2", "grid.pipeline=2"])
        self.call([*run, "run.dir=stages", "grid.pipeline=4"])
        said = self.replay("lanes", "--scale", "lag=free")
        self.assertIn("subnets 32 to 63 on 4 ranks (supernet 2 x pipeline 2 ", said)
        self.assertIn("(0.00 %, every begin within 0.0 us", said)
        for place in ("0.0", "0.1", "1.0", "1.1"):
            self.assertRegex(said, rf"\n  {place} +[0-9.]+ ms")
        numbers = self.numbers("lanes")
        self.assertEqual(len(numbers["stages"]), 4)
        page = (self.root / "lanes/replay/replay.html").read_text()
        self.assertEqual(page.count("<svg"), 3)
        self.assertIn("stage 1.1", page)
        said = self.replay("lanes", "grid.supernet=1", "grid.pipeline=4")
        self.assertRegex(one_line(said),
                         r"what if grid.supernet=1 grid.pipeline=4, as it would be planned: .* \(the traced program, priced so, is ")
        predicted = self.numbers("lanes")["changes"][0]["expected"]["period"]
        self.replay("stages")
        self.assertLess(abs(predicted / self.numbers("stages")["subnets_took"] - 1), 0.15, "ranks that share processors wake up late")
        for words, sentence in ((["grid.supernet=auto"], "say a number"), (["grid.pipeline=auto"], "say a number"),
                                (["--scale", "link:0-1=free"], "to stages of all lanes"), (["train.batch=7"], "another training")):
            self.assertIn(sentence, self.replay("lanes", *words, code=2))
        self.assertIn("what if grid.pipeline=1, as it would be planned", self.replay("lanes", "grid.pipeline=1"))
        self.assertIn("on 2 ranks instead of 4; what single stages", one_line(self.replay("lanes", "grid.pipeline=1")))
        found = self.call([PROGRAM, "plan", "--search", "--from", "lanes", "--ranks", "4", "--config", "lanes.yaml", "grid=auto"])
        self.assertIn("priced for supernet.prices, lanes/replay/prices.yaml", found)

    def test_a_plain_script_finds_the_same_levels_in_the_file_alone(self):
        self.train("replicas", "grid.pipeline=2", "grid.data=2", "train.zero=1", "--inject", "slow@3:1:1.5")
        self.train("products", "grid.pipeline=2", "grid.tensor=2", "device.kind=cpu", "device.description=", "device.threads=1",
                   "train.batch=4")
        for run in ("slow", "replicas", "products"):
            self.replay(run)
            levels = self.numbers(run)["levels"]
            self.assertEqual([level["away"] for level in levels[1:5]], ["the host between actions", "noise", "unequal micro-batches",
                                                                        "ranks slower than their peers"])
            said = self.call([sys.executable, str(SOURCE / "scripts/replay_levels.py"), f"{run}/replay/trace.safetensors"])
            found = [int(line.split()[1]) for line in said.splitlines()]
            self.assertEqual(len(found), 5)
            self.assertEqual(found[0], levels[0]["period"])
            for number in range(1, 5):  # sums in another order may round a nanosecond otherwise
                self.assertLess(abs(found[number] - levels[number]["period"]), 50, f"T{number} of {run}")
        self.assertGreater(tensors(self.root / "products/replay/trace.safetensors")[1]["sums.0"][0][0], 0)

    def test_a_start_that_is_killed_leaves_no_trace_of_an_earlier_one(self):
        self.train("again")
        self.assertTrue((self.root / "again/trace.json").exists())
        self.replay("again")
        killed = subprocess.run([MPI, "4", PROGRAM, "train", "--config", "config.yaml", "run.dir=again", "--inject", "kill@2:3"],
                                cwd=self.root, capture_output=True, text=True, timeout=120)
        self.assertNotEqual(killed.returncode, 0)
        self.assertIn("one that was killed has none", self.replay("again", code=66))
        self.assertFalse((self.root / "again/trace.json").exists())

    def test_two_steps_accuse_nobody(self):
        self.train("short", "train.steps=2", "--inject", "slow@2:1:2")
        said = self.replay("short")
        self.assertIn("2 steps are too few to accuse anybody", said)
        self.assertRegex(said, r"\nperiod [0-9.]+ ms; replayed")
        self.assertEqual((self.numbers("short")["causes"], self.numbers("short")["levels"]), ([], []))

    def test_a_run_without_a_trace_is_refused(self):
        (self.root / "empty").mkdir(exist_ok=True)
        self.assertIn("there is no such file", self.replay("empty", code=66))


unittest.main()
