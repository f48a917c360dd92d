# thorough
"""Searches of a trained supernet: what they leave is the same on every grid, and after kills."""
import json
import os
import random
import signal
import socket
import subprocess
import time

from the_run import PROGRAM, SOURCE, Runs, main

SUPERNET = """seed: 3
model:
  kind: supernet
  space: {{name: four, decoder: {{blocks: 4, candidates: [conv-3, mlp-2, identity]}}}}
  width: 16
  context: 16
  vocabulary: 256
  dropout: 0.1
data: {{train: [{book}], validation: [{book}]}}
supernet: {{sampler: permutation, window: 6}}
reproducible: {{tensor: 2, data: 2}}
train: {{steps: 48, batch: 4, micro_batch: 1}}
optimizer: {{kind: adamw, rate: {{kind: constant, peak: 3.0e-3}}}}
search: {{scores: 40, batches: 2, lag: 8, population: 10, parents: 4, steps: 8}}
trace: {{steps: 0}}
device: {{threads: 1}}
"""
GRIDS = [(1, "grid.pipeline=1"), (2, "grid.pipeline=2"), (4, "grid.pipeline=2 grid.data=2"), (3, "grid.pipeline=3"),
         (2, "grid.tensor=2")]


class Searches(Runs):
    def setUp(self):
        super().setUp()
        (self.root / "tiny.yaml").write_text(SUPERNET.format(book=SOURCE / "data/alice.txt"))

    def search(self, run, settings="", ranks=1, **faults):
        return self.call(self.command(run, settings, ranks, "search"), self.environment(**faults))

    def searched(self, run, settings="", ranks=1):
        answer = self.search(run, settings, ranks)
        self.assertEqual(answer.code, 0, answer)
        return answer.text

    def lines(self, run, folder="search"):
        return (self.root / run / folder / "search.jsonl").read_text()

    def scores(self, run, folder="search"):
        return [json.loads(line) for line in self.lines(run, folder).splitlines()]

    def eval(self, config, settings=""):
        answer = self.call([PROGRAM, "eval", "--config", str(config), *settings.split()])
        self.assertEqual(answer.code, 0, answer)
        return json.loads(answer.text.splitlines()[-1])

    def test_every_grid_leaves_the_same_scores(self):
        self.trained("run")
        text = self.searched("run")
        scores = self.scores("run")
        self.assertEqual([score["id"] for score in scores], list(range(40)))
        self.assertEqual(len({tuple(score["choice"]) for score in scores}), 40, "no network twice")
        self.assertEqual({score["how"] for score in scores}, {"drawn", "crossover", "mutation"})
        best = min(scores, key=lambda score: score["loss"])
        self.assertIn(f"{best['loss']:.4f}", text)
        for score in scores:
            self.assertAlmostEqual((score["first_half"] + score["second_half"]) / 2, score["loss"], 12)
            for parent in score["parents"]:
                self.assertLessEqual(parent, score["id"] - 8)
        for number, (ranks, grid) in enumerate(GRIDS):
            self.searched("run", f"{grid} search.dir={self.root}/run/grid-{number}", ranks)
            self.assertEqual(self.lines("run", f"grid-{number}"), self.lines("run"), grid)

    def test_a_score_is_what_eval_says_of_the_extracted_network(self):
        self.trained("run")
        self.searched("run", "search.scores=5 search.searcher=random")
        for score in self.scores("run")[:2]:
            alone = self.root / f"alone-{score['id']}"
            choice = ",".join(map(str, score["choice"]))
            answer = self.call([PROGRAM, "extract", str(self.root / "run"), "--choice", choice, "--output", str(alone)])
            self.assertEqual(answer.code, 0, answer)
            found = self.eval(alone / "subnet.yaml", "train.evaluate_batches=2")
            self.assertEqual(found["validation_loss"], score["loss"])

    def test_the_best_runs_as_it_is(self):
        self.trained("run")
        self.searched("run")
        answer = self.call([PROGRAM, "--config", str(self.root / "run/search/best-1.yaml")])
        self.assertEqual(answer.code, 0, answer)
        self.assertEqual(len(self.losses("run/search/best-1")), 8)

    def test_a_killed_search_goes_on_on_other_grids(self):
        self.trained("run")
        self.searched("run", f"search.dir={self.root}/run/whole")
        draws = random.Random(7)
        for kill in range(5):
            ranks, grid = GRIDS[kill % len(GRIDS)]
            before = len(self.scores("run")) if kill else 0
            self.killed_at(before + draws.randrange(2, 6), "search/search.jsonl", "run", grid, ranks, "search")
        path = self.root / "run/search/search.jsonl"
        with path.open("a") as lines:
            lines.write('{"id": 39, "pare')  # as a kill amid a line leaves it
        self.searched("run")
        self.assertEqual(self.lines("run"), self.lines("run", "whole"))

    def test_a_bad_line_is_refused_with_its_number_and_nothing_is_overwritten(self):
        self.trained("run")
        self.searched("run")
        path = self.root / "run/search/search.jsonl"
        whole = path.read_text().splitlines(keepends=True)
        for number, line in ((3, "no score\n"), (3, whole[7]), (40, "{}\n"), (1, "\n")):
            broken = "".join(whole[:number - 1] + [line] + whole[number:])
            path.write_text(broken)
            before = {file: file.read_bytes() for file in path.parent.iterdir()}
            answer = self.search("run", "search.scores=44")
            self.assertEqual(answer.code, 65, answer)
            self.assertIn(f"search.jsonl: line {number} is not the score of network {number - 1}", answer.text)
            self.assertEqual({file: file.read_bytes() for file in path.parent.iterdir()}, before)
        path.write_text("".join(whole))
        self.searched("run", "search.scores=44")
        self.assertEqual(self.lines("run").splitlines(keepends=True)[:40], whole)

    def test_a_search_that_is_asked_to_stop_goes_on(self):
        self.trained("run")
        self.searched("run", f"search.dir={self.root}/run/whole")
        slow = self.environment(faults="write:sleep:1:20000", on="search.jsonl")
        process = subprocess.Popen(self.command("run", "", 1, "search"), env=slow, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        path = self.root / "run/search/search.jsonl"
        end = time.monotonic() + 30
        while not path.exists() or path.read_text().count("\n") < 3:
            self.assertLess(time.monotonic(), end, "it never came to that")
            time.sleep(0.002)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(30), 75)
        self.assertLess(len(self.scores("run")), 40)
        self.searched("run")
        self.assertEqual(self.lines("run"), self.lines("run", "whole"))
        self.assertNotIn("held out", self.searched("run"), "a finished search answers from its file")
        self.searched("run", "search.scores=44")
        self.assertEqual(self.lines("run").splitlines()[:40], self.lines("run", "whole").splitlines())
        self.assertEqual(len(self.scores("run")), 44)

    def test_a_killed_run_is_searched_by_its_checkpoint(self):
        self.trained("run")
        self.searched("run", f"search.dir={self.root}/run/whole")
        (self.root / "run/model.safetensors").unlink()
        self.searched("run")
        self.assertEqual(self.lines("run"), self.lines("run", "whole"))

    def test_a_front(self):
        self.trained("run")
        text = self.searched("run", "search.searcher=pareto")
        scores = self.scores("run")

        def dominates(a, b):
            pairs = [(a[key], b[key]) for key in ("loss", "parameters")]
            return all(x <= y for x, y in pairs) and any(x < y for x, y in pairs)

        front = {score["id"] for score in scores if not any(dominates(other, score) for other in scores)}
        written = (self.root / "run/search/front.csv").read_text().splitlines()
        self.assertEqual({int(line.split(",")[1]) for line in written[1:]}, front)
        self.assertIn(f"{len(front)} of them are on the front", text)
        self.assertIn("<svg", (self.root / "run/search/front.svg").read_text())

    def test_limits_hold(self):
        self.trained("run")
        self.searched("run", f"search.dir={self.root}/run/free search.searcher=random search.scores=30")
        sizes = sorted(score["parameters"] for score in self.scores("run", "free"))
        limit = sizes[len(sizes) // 2]
        self.searched("run", f"search.limits.parameters={limit} search.scores=20")
        self.assertTrue(all(score["parameters"] <= limit for score in self.scores("run")))
        text = self.refused("run", 78, "search.limits.parameters=10")
        self.assertIn("the nearest", text)

    def test_scores_are_held_against_trainings_once(self):
        self.trained("run")
        text = self.searched("run", "search.verify=4")
        self.assertIn("4 networks trained now, 0 found done", text)
        self.assertIn("Kendall's tau-b", text)
        again = self.searched("run", "search.verify=4", 2)
        self.assertIn("0 networks trained now, 4 found done", again)
        table = text[text.index("4 networks,  "):]
        self.assertIn(table[:table.index("scores against")], again)
        more = self.searched("run", "search.verify=5")
        self.assertIn("left", more)

    def test_jobs_of_an_array_share_trainings(self):
        self.trained("run")
        self.searched("run")
        jobs = [subprocess.Popen(self.command("run", "search.verify=6", 1, "search"), env=self.environment(), text=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                for _ in range(3)]
        said = [job.communicate(timeout=60)[0] for job in jobs]
        self.assertEqual([job.returncode for job in jobs], [0, 0, 0], said)
        now = [int(text.split("verify: ")[1].split()[0]) for text in said]
        self.assertEqual(sum(now), 6, "each network is trained once")
        self.assertTrue(any("Kendall" in text for text in said), "who ends last has all of them")
        for text in said:
            self.assertTrue("Kendall" in text or "other jobs train them" in text, text)
        self.assertIn("0 networks trained now, 6 found done, 0 left", self.searched("run", "search.verify=6"))

    def test_what_another_job_trains_is_left_alone(self):
        self.trained("run")
        self.searched("run")
        best = min(self.scores("run"), key=lambda score: score["loss"])["id"]
        claim = self.root / f"run/search/verify/{best}.claim"
        claim.parent.mkdir()
        claim.write_text(json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "job": "", "restart": "",
                                     "started": 0}))
        text = self.searched("run", "search.verify=4")
        self.assertIn("3 networks trained now, 0 found done, 1 left", text)
        self.assertNotIn("Kendall", text)
        self.assertIn(f"another job trains it: {claim}", text)
        self.assertIn("the same command prints the table", text)
        claim.unlink()
        self.assertIn("1 networks trained now, 3 found done, 0 left", self.searched("run", "search.verify=4"))

    def test_halving_goes_on_with_the_losses_of_runs_that_never_stopped(self):
        settings = "search.halving=[4,2] search.best=4 optimizer.rate.kind=cosine run.resume=never"
        self.trained("run", settings)
        text = self.searched("run", settings)
        self.assertIn("14 trainings now, with 64 steps; 0 found done", text)
        table = text[text.index("successive halving"):].splitlines()
        self.assertEqual([line.split()[:2] for line in table[2:5]], [["4", "4"], ["8", "2"], ["16", "1"]])
        for line in table[2:5]:
            words = line.split()
            losses = [float(loss) for loss in words[3::2]]
            self.assertEqual(losses, sorted(losses))
            for name in words[2::2]:  # the same network from scratch, as far as this round
                config = self.root / "run/search/halving" / name / "config.yaml"
                anew = f"anew-{name}-{words[0]}"
                stop = f"run.stop_after={words[0] if words[0] != '16' else 0}"
                answer = self.call([PROGRAM, "--config", str(config), f"run.dir={self.root / anew}", stop])
                self.assertIn(answer.code, (0, 75), answer)
                found = {line["step"]: line["validation_loss"] for line in self.metrics(f"run/search/halving/{name}")
                         if "validation_loss" in line}
                self.assertEqual(self.metrics(anew)[-1]["validation_loss"], found[int(words[0])])
        again = self.searched("run", settings)
        self.assertIn("0 trainings now, with 0 steps; 14 found done", again)
        self.assertEqual(again[again.index("successive halving"):].splitlines()[:9], table[:9])

    def test_the_best_and_what_verifies_it_are_trained_alike(self):
        cosine = "optimizer.rate.kind=cosine search.verify=4"
        self.trained("run", cosine)
        self.searched("run", cosine)
        best = min(self.scores("run"), key=lambda score: score["loss"])["id"]
        answer = self.call([PROGRAM, "--config", str(self.root / "run/search/best-1.yaml")])
        self.assertEqual(answer.code, 0, answer)
        self.assertEqual(self.losses("run/search/best-1"), self.losses(f"run/search/verify/{best}"))

    def test_losses_of_another_training_are_refused(self):
        cosine = "optimizer.rate.kind=cosine "
        self.trained("run", cosine)
        self.searched("run", cosine + "search.verify=4 search.steps=8")
        self.searched("run", cosine + "search.halving=[4,2] search.best=4")
        for other in ("search.verify=4 search.steps=16", "search.verify=4 search.steps=4",
                      "search.halving=[8,2] search.best=4", "search.halving=[4,2] search.best=6"):
            self.assertIn("its losses are those of another training", self.refused("run", 78, cosine + other))

    def test_a_directory_that_another_search_holds_is_left_as_it_is(self):
        self.trained("run")
        lock = self.root / "run/search/lock"
        lock.parent.mkdir()
        lock.write_text(json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "job": "", "restart": "",
                                    "started": 0}))
        self.assertIn("another job holds", self.refused("run", 73))
        self.assertEqual(os.listdir(lock.parent), ["lock"] if not (lock.parent / "log").exists() else ["lock", "log"])

    def test_weights_that_a_run_has_left_behind_are_not_scored(self):
        self.trained("run")
        status = self.root / "run/status.json"
        said = json.loads(status.read_text())
        status.write_text(json.dumps({**said, "state": "stopped", "reason": "a signal ended the run at once"}))
        self.assertIn("search/weights.safetensors", self.searched("run"), "those of its checkpoint are newer")

    def test_a_search_stops_in_time(self):
        self.trained("run")
        answer = self.search("run", "run.max_walltime=1ms")
        self.assertEqual(answer.code, 75, answer)
        self.assertEqual(self.searched("run") and len(self.scores("run")), 40)

    def refused(self, run, code, settings="", ranks=1):
        answer = self.search(run, settings, ranks)
        self.assertEqual(answer.code, code, answer)
        return answer.text

    def test_what_does_not_go_together_is_refused(self):
        self.trained("run")
        self.assertIn("has 81 networks", self.refused("run", 78, "search.scores=82"))
        self.assertIn("4, or 0", self.refused("run", 78, "search.verify=3"))
        self.assertIn("device.description", self.refused("run", 78, "search.limits.latency=1"))
        self.assertIn("search.lag", self.refused("run", 78, "search.lag=1 grid.pipeline=4 search.batches=1 "
                                                 "train.micro_batch=2", 4))
        self.searched("run")
        self.assertIn("search.lag = 8", self.refused("run", 78, "search.lag=9"))
        other = self.root / "other.yaml"
        other.write_text("{name: four, decoder: {blocks: [[conv-3, mlp-2, identity], [conv-5, mlp-2, identity], "
                         "[conv-3, mlp-2, identity], [conv-3, mlp-2, identity]]}}")
        self.assertIn("block 1", self.refused("run", 78, f"search.dir=other model.space={other}"))
        lines = self.root / "run/search/search.jsonl"
        lines.write_text(lines.read_text().replace('"choice": [', '"choice": [', 1).replace('"how": "drawn"',
                                                                                             '"how": "mutation"', 1))
        self.assertIn("search.jsonl:1: is not the network", self.refused("run", 65))


main()
