# thorough
# 2 at a time
"""Losses and gradients that are not finite, and losses that jump: steps that are skipped, runs that go back and leave samples
out, and what a run that cannot go on says. Faults come by --inject."""
import json
import re

from the_run import PROGRAM, SOURCE, STEPS, Runs, main

GRIDS = [(2, "grid.data=2"), (2, "grid.tensor=2"), (2, "grid.pipeline=2"), (2, "grid.data=2 train.zero=1"),
         (2, "grid.data=2 train.zero=2"), (4, "grid.pipeline=2 grid.data=2")]


SUPERNET = """seed: 3
model: {{kind: supernet, space: {{name: two, decoder: {{blocks: 4, candidates: [conv-3, mlp-2, attention-2]}}}}, width: 16,
        context: 16, vocabulary: 256}}
data: {{train: [{book}]}}
supernet: {{sampler: permutation, window: 8}}
train: {{steps: 160, batch: 4, micro_batch: 1, clip: 0}}
optimizer: {{kind: adamw, rate: {{kind: constant, peak: 1.0e-3}}}}
trace: {{steps: 0}}
device: {{threads: 1}}
"""


def at(kind, rank, *steps):
    return "--inject " + ",".join(f"{kind}@{rank}:{step}" for step in steps)


class Guard(Runs):
    def told(self, run):
        """The losses and skipped steps of metrics, and the samples that were left out."""
        lines = self.metrics(run)
        steps = [(line["step"], line["loss"], line["skipped"]) for line in lines if "left_out_from" not in line]
        self.assertEqual([step for step, _, _ in steps], list(range(1, len(steps) + 1)), "every step once")
        return steps, [(line["step"], line["left_out_from"], line["left_out_to"])
                       for line in lines if "left_out_from" in line]

    def assert_unchanged(self, run, before, after):
        answer = self.ckpt("diff", self.checkpoint(run, before), self.checkpoint(run, after))
        self.assertRegex(answer.text, rf"^\d+ tensors are equal; steps {before} and {after}$")

    def test_all_ranks_skip_the_step_in_which_one_element_of_one_rank_is_no_number(self):
        every = "checkpoint.every=1 checkpoint.keep=20 "
        self.assertEqual(self.train("one", "run.stop_after=3 " + every + at("nan", 0, 3)).code, 75)
        answer = self.trained("one", every + at("nan", 0, 3))
        self.assert_unchanged("one", 2, 3)
        self.assertEqual([skipped for _, _, skipped in self.told("one")[0]], [0, 0, 1, 1, 1, 1, 1, 1])
        for i, (ranks, grid) in enumerate(GRIDS):
            kind = ("nan", "inf")[i % 2]
            with self.subTest(grid):
                run = f"on-{i}"
                answer = self.train(run, f"run.stop_after=3 {every}{grid} " + at(kind, ranks - 1, 3), ranks)
                self.assertEqual(answer.code, 75)
                self.assertIn("step 3 changed nothing: a gradient is not finite", answer.text)
                self.assert_unchanged(run, 2, 3)
                self.trained(run, every + grid, ranks)
                self.assertEqual(self.told(run), self.told("one"))
                self.assertEqual(self.sha(run), self.sha("one"))
        of_the_run = answer.text.split("\n-----")[0]  # mpirun has a word of its own behind it
        for line in of_the_run.splitlines():
            if line and not line.startswith(("injected ", "[")):
                self.fail(f"a line without the banner: {line}")

    def test_three_in_a_row_go_back_and_every_start_goes_on_with_the_same_bits(self):
        bad = at("nan", 0, 5, 6, 7)
        answer = self.trained("one", bad)
        self.assertIn("step 7: a gradient is not finite, 3 steps in a row changed nothing (guard.skips); the run goes back "
                      "to step 4 and leaves out samples 16 to 27", answer.text)
        steps, left_out = self.told("one")
        self.assertEqual(left_out, [(4, 16, 28)])
        self.assertEqual([skipped for _, _, skipped in steps], [0] * STEPS)
        content = json.loads((self.checkpoint("one", STEPS) / "manifest.json").read_text())
        self.assertEqual((content["left_out"], content["rollbacks"]), ([[16, 28]], 1))
        self.trained("undisturbed", "checkpoint.every=4")
        undisturbed = self.told("undisturbed")[0]
        self.assertEqual(steps[:4], undisturbed[:4])
        self.assertNotEqual(steps[4], undisturbed[4], "other samples")
        self.trained("again", bad)
        self.assertEqual((self.told("again"), self.sha("again")), (self.told("one"), self.sha("one")))
        for i, (ranks, grid) in enumerate(GRIDS):
            with self.subTest(grid):
                run, there = f"on-{i}", at("nan", ranks - 1, 5, 6, 7)
                self.assertEqual(self.train(run, f"{grid} run.stop_after=6 {there}", ranks).code, 75)
                other_ranks, other = GRIDS[(i + 1) % len(GRIDS)]
                self.trained(run, f"{other} " + at("nan", other_ranks - 1, 5, 6, 7), other_ranks)
                self.assertEqual((self.told(run), self.sha(run)), (self.told("one"), self.sha("one")))

    def test_a_run_that_has_gone_back_is_taken_up_on_another_grid_and_leaves_out_the_same_samples(self):
        self.trained("one", at("nan", 0, 5, 6, 7))
        for i, (ranks, grid) in enumerate(GRIDS[::3]):
            with self.subTest(grid):
                run, there = f"on-{i}", at("nan", ranks - 1, 5, 6, 7)
                self.assertEqual(self.train(run, f"run.stop_after={5 + 2 * i} " + at("nan", 0, 5, 6, 7)).code, 75)
                content = json.loads((self.checkpoint(run, 5 + 2 * i) / "manifest.json").read_text())
                self.assertEqual((content.get("left_out"), content.get("rollbacks")), (None, None) if i == 0 else ([[16, 28]], 1))
                self.trained(run, f"{grid} {there}", ranks)
                self.assertEqual((self.told(run), self.sha(run)), (self.told("one"), self.sha("one")))
                content = json.loads((self.checkpoint(run, STEPS) / "manifest.json").read_text())
                self.assertEqual((content["left_out"], content["rollbacks"]), ([[16, 28]], 1))

    def test_stops_among_steps_that_change_nothing_leave_the_checkpoint_to_go_back_to(self):
        bad = "train.steps=12 checkpoint.keep=2 guard.skips=6 " + at("nan", 0, *range(5, 11))
        self.trained("one", bad)
        stands = [2, 4]
        for stop in range(5, 10):
            self.assertEqual(self.train("run", f"run.stop_after={stop} {bad}").code, 75)
            stands.append(stop)
            self.assertEqual(self.steps("run"), stands)
        self.trained("run", bad)
        self.assertEqual((self.told("run"), self.sha("run", 12)), (self.told("one"), self.sha("one", 12)))
        self.assertEqual(self.steps("run"), self.steps("one"))

    def test_a_checkpoint_from_which_nothing_goes_on_is_passed_over_for_an_older_one(self):
        spoiled = "train.evaluate_every=0 run.stop_after=3 --inject flip@0:3:layers.0.attention.norm.weight//0/30"
        by_time = "checkpoint.every=0 checkpoint.every_time=30m "  # so that there is none of checkpoint.every
        for run, ranks, grid, faults, stand in (("one", 1, by_time, {}, [2, 3, 8]), ("two", 2, by_time + "grid.data=2", {}, [2, 3, 8]),
                                                ("full", 1, by_time, {"faults": "write:28:1:9", "on": "suspect"}, [2, 8])):
            with self.subTest(run):
                self.assertEqual(self.train(run, spoiled).code, 75)
                self.assertEqual(self.steps(run), [2, 3])
                answer = self.trained(run, "train.evaluate_every=0 checkpoint.keep=9 " + grid, ranks, **faults)
                self.assertIn("step-00000003: it is suspect: the run went back to it, and failed again at once", answer.text)
                self.assertEqual(self.steps(run), stand)
                self.assertEqual("  it is suspect: " in self.ckpt("list", self.root / run).text, 3 in stand)
                self.assertEqual((self.told(run), self.sha(run)), (self.told("one"), self.sha("one")))
                self.assertEqual(self.told(run)[1], [(2, 8, 36)])
        suspect = self.checkpoint("one", 3)
        for answer in (self.ckpt("info", suspect), self.ckpt("verify", suspect), self.ckpt("diff", suspect, suspect),
                       self.ckpt("export", suspect, "--output", self.root / "weights"),
                       self.trained("new", f"run.weights={suspect} train.evaluate_every=0 train.steps=2")):
            self.assertEqual(answer.code, 0, answer)
            self.assertIn("it is suspect: the run went back to it, and failed again at once", answer.text)

    def test_the_status_of_a_failure_names_the_newest_checkpoint(self):
        answer = self.train("run", "guard.rollbacks=0 train.evaluate_every=1 --inject flip@0:7:layers.0.attention.norm.weight//0/30")
        self.assertEqual(answer.code, 79, answer)
        made = re.findall(r"checkpoint: .*/(checkpoints/step-\d+) ", answer.text)
        self.assertTrue(made, answer)
        self.assertEqual(self.status("run")["checkpoint"], made[-1])

    def test_a_stop_before_the_next_checkpoint_goes_back_again(self):
        for stop, faults, ranks, grid in ((5, (5, 6, 7), 1, ""), (6, (8, 9, 10), 2, "grid.data=2")):
            with self.subTest(f"stops after {stop}"):
                one, run, course = f"one-{stop}", f"run-{stop}", "train.steps=12 checkpoint.every=4 " + at("inf", 0, *faults)
                self.trained(one, course)
                self.assertEqual(self.train(run, f"run.stop_after={stop} {course}").code, 75)
                self.trained(run, f"{grid} {course}", ranks)
                self.assertEqual((self.told(run), self.sha(run, 12)), (self.told(one), self.sha(one, 12)))

    def test_where_the_checkpoint_before_a_stop_is_gone_it_goes_back_to_that_of_the_stop(self):
        course = ("train.steps=20 train.evaluate_every=0 checkpoint.every=4 checkpoint.keep=2 checkpoint.keep_every=8 " +
                  at("inf", 0, 15, 16, 17))
        for stop in (13, 14):
            self.assertEqual(self.train("run", f"run.stop_after={stop} {course}").code, 75)
        self.assertEqual(self.steps("run"), [8, 13, 14])
        self.trained("run", course)
        self.assertEqual(self.told("run")[1], [(14, 56, 68)])

    def test_beyond_the_budget_the_run_ends_with_79(self):
        answer = self.train("run", "train.steps=20 " + at("nan", 0, *range(5, 14)))
        self.assertEqual(answer.code, 79, answer)
        self.assertIn("the run has gone back 2 times (guard.rollbacks: 2)", answer.text)
        status = self.status("run")
        self.assertEqual((status["state"], status["checkpoint"]), ("failed", "checkpoints/step-00000002"))
        self.assertIn("it is suspect: the run went back to it, and failed again at once", self.ckpt("list", self.root / "run").text)
        self.assertIn("3 steps in a row changed nothing", status["reason"])
        # The same command fails in the same way; with a larger budget it comes to its end.
        self.assertEqual(self.train("run", "train.steps=20 " + at("nan", 0, *range(5, 14))).code, 79)
        self.trained("run", "train.steps=20 guard.rollbacks=3 " + at("nan", 0, *range(5, 14)))
        self.assertEqual(self.told("run")[1], [(2, 8, 40), (2, 40, 52)])

    def test_without_a_checkpoint_to_go_back_to_it_ends_with_79(self):
        for settings, why in (("checkpoint.every=6", "there is no checkpoint yet to go back to (checkpoint.every: 6)"),
                              ("checkpoint.every=0 checkpoint.every_time=30m", "to go back to (checkpoint.every_time: 30 min"),
                              ("checkpoint.every=0", "the run has gone back 0 times (guard.rollbacks: 0)")):
            answer = self.train("run", f"{settings} " + at("nan", 0, 1, 2, 3))
            self.assertEqual(answer.code, 79, answer)
            self.assertIn("mindpipe-train: injected nan@0:1,nan@0:2,nan@0:3: step 3: a gradient is not finite, 3 steps in a row "
                          "changed nothing (guard.skips)", answer.text)
            self.assertIn(why, answer.text)

    def test_one_step_is_enough_where_the_rule_says_so(self):
        self.trained("run", "checkpoint.every=2 guard.skips=1 " + at("nan", 0, 6))
        self.assertEqual(self.told("run")[1], [(4, 16, 24)])

    def test_a_loss_that_jumps_goes_back(self):
        # The rate rises from step to step, until the loss does too.
        course = ("train.steps=120 train.clip=0 checkpoint.every=10 train.evaluate_every=0 optimizer.kind=sgd "
                  "optimizer.rate.kind=constant optimizer.rate.peak=0.01 guard.spike=6")
        answer = self.train("run", course)
        self.assertIn(answer.code, (0, 79), answer)
        flip = " --inject flip@0:95:layers.0.attention.attention.output.weight//0/30"
        answer = self.train("flipped", course + " guard.rollbacks=5" + flip)
        self.assertIn("median absolute deviations above", answer.text, answer)
        steps, left_out = self.told("flipped")
        self.assertEqual(left_out[0][0], 90, "the newest checkpoint is without the flipped bit")

    def test_a_bit_that_changes_in_one_copy_ends_the_job_and_the_next_start_goes_on(self):
        self.trained("whole", "checkpoint.keep=9")
        gain = "layers.0.attention.norm.weight"
        for i, (ranks, settings, fault, found) in enumerate((
            (2, "grid.data=2", f"flip@1:4:{gain}", rf"ranks 0 \([^ ]+\), 1 \([^ ]+\) hold different copies of {gain} \(value\)"),
            (4, "grid.data=2 grid.tensor=2", f"flip@2:4:{gain}/value/3/1", rf"rank 2 \([^ ]+\) holds another copy of {gain} "),
            (2, "grid.tensor=2", f"flip@1:4:{gain}/v/5/30", rf"ranks 0 \([^ ]+\), 1 \([^ ]+\) hold different copies of {gain} \(v\)"))):
            with self.subTest(fault):
                run = f"flipped-{i}"
                answer = self.train(run, f"{settings} --inject {fault}", ranks)
                self.assertEqual(answer.code, 76, answer)
                self.assertRegex(answer.text, "after step 4: " + found)
                self.assertEqual([name for name in self.names(run) if name.startswith("step-")], ["step-00000002"],
                                 "what was compared before it was saved")
                self.assertEqual(self.status(run)["state"], "failed")
                self.train_again(run, settings, ranks)
                self.assertEqual(self.sha(run), self.sha("whole"))

                run, late = f"late-{i}", fault.replace(":4:", ":5:")
                answer = self.train(run, f"{settings} --inject {late} checkpoint.every=4 guard.replicas_every=3", ranks)
                self.assertEqual(answer.code, 76, answer)
                self.assertIn("after step 6: rank", answer.text)
                of_tensor = found.replace(r"\(v\)", r"\(\w+\)")  # the next step has spoiled its value, too
                self.assertRegex(answer.text, "other tensors differ, too: a step has carried it on" if i == 1 else of_tensor)
                self.assertEqual(self.steps(run), [4])
                self.assertEqual(self.status(run)["checkpoint"], "checkpoints/step-00000004")
                self.train_again(run, settings, ranks)
                self.assertEqual(self.losses(run), self.losses("whole"))
                self.assertEqual(self.sha(run), self.sha("whole"))

    def test_a_fault_that_cannot_happen_is_refused_before_the_first_step(self):
        for fault, code, sentence in (("nan@0:99", 78, "there is no step 99"), ("flip@0:3:/foo", 78, "has no such element of foo of"),
                                      ("flip@0:3:nobody", 78, "has no tensor nobody"), ("flip@0:3:a/b/c", 2, "c is no number"),
                                      ("nan@2:1", 78, "there is no rank 2")):
            with self.subTest(fault):
                self.assertIn(sentence, self.refused(code, "refused", f"--inject {fault}"))
                self.assertFalse((self.root / "refused/metrics.jsonl").exists())

    def test_copies_are_compared_before_every_save_however_rarely_they_are_besides(self):
        self.trained("whole")
        settings = "grid.data=2 guard.replicas_every=9 checkpoint.keep=2"
        fault = "--inject flip@0:3:layers.0.attention.norm.weight,slow@0:5:300ms,kill@1:7"
        answer = self.train("run", f"{settings} {fault}", 2)
        self.assertEqual(answer.code, 76, answer)
        self.assertRegex(answer.text, r"after step 4: ranks 0 \(")
        self.assertEqual(self.steps("run"), [2])
        self.train_again("run", settings, 2)
        self.assertEqual(self.losses("run"), self.losses("whole"))
        self.assertEqual(self.sha("run"), self.sha("whole"))

    def test_a_supernet_counts_and_ends_where_subnets_in_a_row_update_nothing(self):
        (self.root / "tiny.yaml").write_text(SUPERNET.format(book=SOURCE / "data/alice.txt"))
        self.trained("one", at("nan", 0, 9, 10, 11))
        skipped = [line["skipped"] for line in self.metrics("one")]
        self.assertEqual([subnet for subnet, count in enumerate(skipped) if count], [8, 9, 10], "a unit each")
        for ranks, grid in ((1, ""), (2, "grid.pipeline=2"), (2, "grid.supernet=2")):
            with self.subTest(grid):
                answer = self.train(f"lost-{ranks}{grid}", f"{grid} optimizer.rate.peak=1000000", ranks)
                self.assertEqual(answer.code, 79, answer)
                self.assertRegex(answer.text, r"subnet \d+ is one of 3 in a row that updated nothing \(guard.skips\); ")
        for setting, why in (("guard.spike=9", "the losses of a supernet are those of different networks"),
                             ("guard.rollbacks=1 checkpoint.every=16", "a supernet has nothing to go back from"),
                             ("train.norms_every=1", "its subnets have no common gradient")):
            self.assertIn(why, self.refused(78, "refused", setting))

    def test_a_bit_of_what_the_lanes_of_a_supernet_share_is_found(self):
        (self.root / "tiny.yaml").write_text(SUPERNET.format(book=SOURCE / "data/alice.txt"))
        table, both = "embedding.embedding.weight", r"ranks 0 \([^ ]+\), 1 \([^ ]+\) hold different copies of embedding.embedding.weight "
        every = "checkpoint.every=16 reproducible.data=2 "
        self.trained("whole", every)
        for i, (fault, ranks, settings, found) in enumerate((
            (f"flip@1:40:{table}//5/3", 2, "grid.supernet=2", both + r"\(value\)"),
            (f"flip@0:40:{table}/m/9/12", 2, "grid.supernet=2", both + r"\(m\)"),
            (f"flip@3:40:{table}/value/3/1", 4, "grid.supernet=2 grid.data=2",
             rf"rank 3 \([^ ]+\) holds another copy of {table} \(value\)"))):
            with self.subTest(fault):
                answer = self.train(f"run-{i}", f"{every}{settings} --inject {fault}", ranks)
                self.assertEqual(answer.code, 76, answer)
                self.assertRegex(answer.text, "after subnet 47: " + found)
                self.train_again(f"run-{i}", f"{every}{settings}", ranks)
                self.assertEqual(self.sha(f"run-{i}", 160), self.sha("whole", 160))

    def test_norms_of_layers_are_the_same_on_every_grid_and_name_the_layer_that_is_not_finite(self):
        every = "train.norms_every=2 "
        self.trained("one", every + at("nan", 0, 6))
        lines = [line for line in self.metrics("one") if "gradient_norms" in line]
        self.assertEqual([line["step"] for line in lines], [2, 4, 6, 8])
        layers = lines[0]["layers"].split()
        self.assertIn("layers.0", layers)
        for line in lines[:2] + lines[3:]:
            self.assertAlmostEqual(sum(norm**2 for norm in line["gradient_norms"])**0.5, line["gradient_norm"], 6)
            self.assertEqual(len(line["weight_norms"]), len(layers))
            self.assertTrue(all(norm > 0 for norm in line["weight_norms"]))
        self.assertEqual(sum(norm is None for norm in lines[2]["gradient_norms"]), 1, "the layer of one element")
        report = self.call([PROGRAM, "report", str(self.root / "one")])
        self.assertIn("norms at step 8, largest gradients first", report.text)
        for i, (ranks, grid) in enumerate(GRIDS):
            with self.subTest(grid):
                self.trained(f"on-{i}", every + grid, ranks)
                norms = [(line["gradient_norms"], line["weight_norms"])
                         for line in self.metrics(f"on-{i}") if "gradient_norms" in line]
                self.assertEqual(norms[:2], [(line["gradient_norms"], line["weight_norms"]) for line in lines[:2]])

    def test_faults_of_ranks_end_the_job_and_the_next_start_goes_on(self):
        self.trained("whole")
        for fault, ranks, settings, codes in (
            ("kill@1:5", 2, "grid.data=2", (137, )), ("exit@1:5:9", 2, "grid.data=2", (9, )),
            ("stop@1:5", 2, "grid.data=2 watchdog.step=3s", (81, )),
            ("lost-message@0:5", 2, "grid.pipeline=2 watchdog.step=3s", (81, )), ("slow@1:5:200ms", 2, "grid.data=2", (0, ))):
            with self.subTest(fault):
                run = fault.partition("@")[0]
                answer = self.train(run, f"{settings} --inject {fault}", ranks)
                self.assertIn(answer.code, codes, answer)
                self.train_again(run, settings, ranks)
                self.assertEqual(self.losses(run), self.losses("whole"))
                self.assertEqual(self.sha(run), self.sha("whole"))

    def test_faults_that_cannot_be_are_refused(self):
        for fault, code, why in (("burn@0:1", 2, "burn is no kind of fault"), ("nan@2:1", 78, "there is no rank 2 (the job has 1"),
                                 ("lost-message@0:1", 78, "no message can be lost"),
                                 ("flip@0:1:layers.9.norm", 78, "rank 0 has no tensor layers.9.norm"),
                                 ("flip@0:1:/value/99999999", 78, "has no such element")):
            self.assertIn(why, self.refused(code, "run", f"--inject {fault}"))
        command = self.command("run", "grid.data=2 --inject nan@0:1", 2)
        answer = self.call(command[:1] + ["1"] + command[2:] + [":", "-np", "1"] + self.command("run", "grid.data=2"))
        self.assertEqual(answer.code, 78, answer)
        self.assertIn("--inject is none here and nan@0:1 on rank 0", answer.text)


if __name__ == "__main__":
    main()
