"""Starts that are refused leave a run as it was: what status.json says, and how the command ends that the run began with."""
import json
import os
import pathlib
import shutil
import socket

from the_run import SOURCE, Runs, main

SUPERNET = """seed: 3
model:
  kind: supernet
  space: {{name: three, decoder: {{blocks: 3, candidates: [conv-3, mlp-2, glu]}}}}
  width: 16
  context: 16
  vocabulary: 256
data: {{train: [{book}], validation: [{book}]}}
supernet: {{sampler: {choices}, window: 8, evaluate_subnets: 1}}
reproducible: {{tensor: 2, data: 2}}
train: {{steps: 20, batch: 4, micro_batch: 1, evaluate_batches: 1}}
optimizer: {{kind: adamw, rate: {{kind: constant, peak: 1.0e-3}}}}
checkpoint: {{keep: 4}}
trace: {{steps: 0}}
device: {{threads: 1}}
"""
MORE = "train.steps=40"  # the stopped run asks for them


def cut(path, bytes):
    with path.open("r+b") as file:
        file.truncate(bytes)


def other_choices(test, run):
    test.choices.write_text("0, 1, 2\n" * 40)


def no_choices(test, run):
    test.choices.unlink()


def few_choices(test, run):
    test.choices.write_text("".join(test.choices.read_text().splitlines(True)[:30]))


def damaged_state(test, run):
    path = test.newest(run) / "state.h5"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


def half_a_state(test, run):
    cut(test.newest(run) / "state.h5", 4096)


def half_a_manifest(test, run):
    cut(test.newest(run) / "manifest.json", 100)


def held(test, run):
    start = pathlib.Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[19]
    (test.root / run / "lock").write_text(
        json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "job": "", "restart": "", "started": int(start)}))


# Whose start is refused, what is changed before, settings, the exit code, and a part of the sentence. The run `done`
# ended after 20 subnets, amid a window of 8; `stopped` after 16 of 40.
CASES = [
    ("done", None, MORE, 78, "after 20 subnets, amid a window"),
    ("done", other_choices, MORE, 78, "trained with other subnets than the first 20"),
    ("done", no_choices, "", 78, "supernet.sampler"),
    ("done", held, "", 73, "another job holds this run directory"),
    ("done", half_a_manifest, "", 80, "no checkpoint is whole"),
    ("done", half_a_state, "", 80, "no checkpoint is whole"),
    ("done", None, "train.precision=bf16", 78, "train.precision is bf16"),
    ("stopped", other_choices, MORE, 78, "trained with other subnets than the first 16"),
    ("stopped", few_choices, MORE, 65, "has 30 choices"),
    ("stopped", damaged_state, MORE, 80, "no checkpoint is whole"),
    ("stopped", half_a_manifest, MORE, 80, "no checkpoint is whole"),
    ("stopped", held, MORE, 73, "another job holds this run directory"),
    ("stopped", None, MORE + " grid.pipeline=3", 78, "ranks"),
    ("stopped", None, MORE + " reproducible.data=1", 78, "reproducible.data is 1 (there 2)"),
    ("stopped", None, MORE + " reproducible.tensor=1", 78, "reproducible.tensor is 1 (there 2)"),
    ("stopped", None, MORE + " data.train=[nowhere.txt]", 66, "nowhere.txt: there is no such file"),
    ("stopped", None, MORE + " data.validation=[nowhere.txt] train.evaluate_every=8", 66, "nowhere.txt"),
    ("stopped", None, MORE + " model.width=32", 78, "model.width is 32 (there 16)"),
    ("stopped", None, MORE + " train.precision=bf16", 78, "train.precision is bf16 (there f32)"),
    ("stopped", None, MORE + " train.batch=8", 78, "train.batch is 8 (there 4)"),
    ("stopped", None, MORE + " optimizer.kind=sgd", 78, "optimizer.kind is sgd (there adamw)"),
    ("stopped", None, MORE + " seed=4", 78, "seed is 4 (there 3)"),
    ("stopped", None, MORE + " supernet.window=16", 78, "supernet.window is 16 (there 8)"),
    ("stopped", None, MORE + " memory.device_limit=100000", 71, "memory.device_limit is"),
    ("stopped", None, MORE + " run.resume=never", 78, "run.resume is never"),
    ("stopped", None, MORE + " run.resume=/no/such/place", 66, "run.resume is /no/such/place"),
    ("stopped", None, MORE + " device.kind=emulated device.description=instant", 78, "computes nothing"),
    ("stopped", None, MORE + " train.stepz=3", 78, "train.stepz"),
    ("stopped", None, MORE + " energy.meter=nvml", 78, "energy.meter is nvml"),
    ("stopped", None, MORE + " --inject slow@1:20:2", 78, "there is no rank 1"),
    ("stopped", None, MORE + " --inject kill@0:50", 78, "there is no step 50"),
    ("stopped", None, MORE + " --inject flip@0:20:nothing", 78, "has no tensor nothing"),
    ("stopped", None, MORE + " --compare nowhere", 66, "there is no nowhere/metrics.jsonl"),
]


class Refused(Runs):
    def setUp(self):
        super().setUp()
        self.choices = self.root / "choices.txt"
        self.choices.write_text("".join(f"{i % 3}, {i % 2}, 0\n" for i in range(40)))
        (self.root / "tiny.yaml").write_text(SUPERNET.format(book=SOURCE / "data/alice.txt", choices=self.choices))
        self.kept = self.root / "kept"

    def newest(self, run):
        return max((self.root / run / "checkpoints").glob("step-*"))

    def files(self, run):
        """All that a run has written beside its checkpoints; watchdogs leave rolls of their own."""
        of_run = [path for path in (self.root / run).rglob("*") if path.is_file()]
        return {
            name: path.read_bytes()
            for path in of_run if (name := str(path.relative_to(self.root / run))).split("/")[0] not in ("checkpoints", "log", "lock")
        }

    def test_a_start_that_is_refused_leaves_the_run_as_it_was(self):
        commands = {"done": ("", 0), "stopped": (MORE + " run.stop_after=16", 75)}
        for run, (settings, code) in commands.items():
            answer = self.train(run, settings)
            self.assertEqual(answer.code, code, answer)
            self.assertEqual(self.status(run)["state"], run)
        kept_choices = self.choices.read_text()
        for run in commands:
            shutil.copytree(self.root / run / "checkpoints", self.kept / run, symlinks=True)
        for run, change, settings, code, sentence in CASES:
            with self.subTest(run=run, settings=settings, change=change and change.__name__):
                before = self.files(run)
                if change:
                    change(self, run)
                self.assertIn(sentence, self.refused(code, run, settings))
                self.assertEqual(self.files(run), before)
            shutil.rmtree(self.root / run / "checkpoints")
            shutil.copytree(self.kept / run, self.root / run / "checkpoints", symlinks=True)
            self.choices.write_text(kept_choices)
            (self.root / run / "lock").unlink(missing_ok=True)
        for run, (settings, code) in commands.items():
            answer = self.train(run, settings)
            self.assertEqual(answer.code, code, answer)

    def test_a_start_that_one_rank_refuses_leaves_the_run_as_it_was(self):
        settings = MORE + " grid.data=2"
        self.assertEqual(self.train("stopped", settings + " run.stop_after=16", ranks=2).code, 75)
        before = self.files("stopped")
        self.assertIn("has no tensor nothing", self.refused(78, "stopped", settings + " --inject flip@1:20:nothing", ranks=2))
        self.assertEqual(self.files("stopped"), before)

    def test_a_run_that_ended_amid_a_window_says_that_it_cannot_go_on(self):
        self.trained("done")
        text = self.trained("done").text
        self.assertIn("is finished: all 20 steps are done (it ended amid a window, so more of them need another", text)

    def test_a_run_that_was_killed_behind_its_last_checkpoint_comes_to_its_end(self):
        self.trained("done")
        weights = self.root / "done/model.safetensors"
        whole = weights.read_bytes()
        weights.unlink()
        (self.root / "done/status.json").unlink()
        self.trained("done")
        self.assertEqual(weights.read_bytes(), whole)
        self.assertEqual(self.status("done")["state"], "done")


main()
