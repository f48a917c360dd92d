# thorough
# 2 at a time
"""Runs that are asked to stop and go on: the same command, another grid, more steps, other settings."""
import os
import pathlib
import re
import shutil
import signal

import manifests
from the_run import ALL, PROGRAM, SOURCE, STEPS, Runs, main

SLOW = {"faults": "write:sleep:1:100000", "on": "metrics.jsonl"}  # a step takes 20 ms


class Stops(Runs):
    def lines(self, run):
        file = self.root / run / "metrics.jsonl"
        return file.read_text().count("\n") if file.exists() else 0

    def test_sigusr1_and_a_file_save_the_step_and_the_same_command_goes_on(self):
        steps = "train.steps=30 checkpoint.every=0"
        self.trained("whole", steps)
        run = self.started("run", steps, **SLOW)
        self.until(lambda: self.lines("run") >= 3)
        run.send_signal(signal.SIGUSR1)
        self.assertEqual(run.wait(30), 75)
        stopped = self.lines("run")
        self.assertLess(stopped, 30)
        self.assertEqual(self.steps("run"), [stopped])
        status = self.status("run")
        self.assertEqual((status["state"], status["step"], status["checkpoint"]),
                         ("stopped", stopped, f"checkpoints/step-{stopped:08}"))

        (self.root / "run/STOP").touch()
        answer = self.train("run", steps)
        self.assertEqual(answer.code, 75, answer)
        self.assertIn(f"stopped after step {stopped + 1} as asked by the file STOP; the same command goes on from there",
                      answer.text)
        self.assertFalse((self.root / "run/STOP").exists())
        self.assertEqual(self.steps("run"), [stopped, stopped + 1])

        self.trained("run", steps)
        self.assertEqual(self.losses("run"), self.losses("whole"))
        self.assertEqual(self.sha("run", 30), self.sha("whole", 30))

    def test_signals_while_a_save_is_under_way(self):
        self.trained("whole", "train.steps=20")
        for ranks, grid in ((1, ""), (2, " grid.data=2")):
            name = f"run-{ranks}"
            folder = self.root / name / "checkpoints"
            run = self.started(name, "train.steps=20" + grid, ranks, faults="pwrite,write:sleep:1:100000", on=f"{name}/")
            self.until(lambda: folder.exists() and any(each.endswith(".partial") for each in os.listdir(folder)))
            for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGUSR1):
                run.send_signal(number)
            self.assertEqual(run.wait(30), 75)
            self.verified(name)
            self.assertEqual(self.steps(name)[-1], self.status(name)["step"])
            self.trained(name, "train.steps=20")
            self.assertEqual(self.losses(name), self.losses("whole"))
            self.assertEqual(self.sha(name, 20), self.sha("whole", 20))

    def test_a_directory_in_use_is_refused(self):
        run = self.started("run", "train.steps=100000", **SLOW)
        self.until(lambda: self.steps_there("run") >= 1)
        text = self.refused(73, "run", "train.steps=100000")
        self.assertIn(f"another job holds this run directory (host {os.uname().nodename}, process {run.pid})",
                      text)
        # What lies there is looked at behind the lock alone: the run that holds it may be changing it.
        (self.root / "run/checkpoints/step-99999999").mkdir()
        text = self.refused(73, "run", "train.steps=100000")
        self.assertNotIn("step-99999999", text)
        self.assertEqual(self.status("run")["state"], "running")
        (self.root / "run/checkpoints/step-99999999").rmdir()
        run.send_signal(signal.SIGUSR1)
        self.assertEqual(run.wait(30), 75)
        self.verified("run")

    def test_a_run_whose_checkpoints_are_gone_does_not_begin_anew_by_itself(self):
        self.trained("run", "train.steps=4")
        (self.root / "run/checkpoints").rename(self.root / "elsewhere")
        self.assertIn("status.json names checkpoints/step-00000004, and there is no checkpoint", self.refused(66, "run"))
        self.assertEqual(self.lines("run"), 4, "what the run has written is still there")
        self.assertEqual(self.status("run")["state"], "done")
        os.mkfifo(self.root / "run/checkpoints")
        self.assertIn("run/checkpoints: checkpoints go there, and it is no directory", self.refused(73, "run"))
        (self.root / "run/checkpoints").unlink()
        self.trained("run", "run.resume=never train.steps=2")
        self.assertEqual(self.lines("run"), 2)

    def test_a_grid_that_cannot_be_and_another_binary_are_refused_in_one_sentence(self):
        answer = self.train("run", "grid.tensor=3", ranks=3)
        self.assertEqual(answer.code, 78, answer)
        self.assertEqual(answer.text.count("mindpipe-train: "), 1, answer)
        self.assertIn("grid.tensor", answer.text)
        program = pathlib.Path(PROGRAM).read_bytes()
        commit = re.search(r"\(commit ([^)]+)\)", self.call([PROGRAM, "--version"]).text).group(1).encode()
        other = self.root / "other"
        other.write_bytes(program.replace(commit, commit[:-1] + (b"x" if commit[-1:] != b"x" else b"y")))
        other.chmod(0o755)
        command = self.command("run", "grid.data=2")
        answer = self.call([str(SOURCE / "tests/run_mpi.sh"), "1", *command, ":", "-np", "1", str(other), *command[1:]])
        self.assertEqual(answer.code, 78, answer)
        self.assertEqual(answer.text.count("mindpipe-train: "), 1, answer)
        self.assertRegex(answer.text, r"mindpipe-train: rank 1: this rank, on .*, does not run what rank 0 runs: the program is ")

    def test_time_makes_a_checkpoint_due(self):
        run = self.started("run", "train.steps=100000 checkpoint.every=0 checkpoint.every_time=1s", **SLOW)
        self.until(lambda: self.steps_there("run") >= 2)
        run.send_signal(signal.SIGUSR1)
        self.assertEqual(run.wait(30), 75)
        first, second = ((self.checkpoint("run", step) / "manifest.json").stat().st_mtime
                         for step in self.steps("run")[:2])
        self.assertGreater(second - first, 0.8, "a second is not over yet")

    def test_a_stop_whose_save_failed_says_where_the_next_start_goes_on(self):
        (self.root / "run").mkdir()
        for steps, begin in (("2", "begins anew: there is no checkpoint"), ("100", "goes on from step-00000002")):
            (self.root / "run/STOP").touch()
            answer = self.train("run", "checkpoint.every=0 checkpoint.on_error=warn", faults="fsync:5:1:1",
                                on="/.step-")
            self.assertEqual(answer.code, 75, answer)
            self.assertRegex(answer.text, r"stopped after step \d as asked by the file STOP; the same command " + begin)
            self.trained("run", "train.steps=2")

    def test_steps_whose_lines_are_gone_are_named(self):
        self.trained("run", "train.steps=6")
        file = self.root / "run/metrics.jsonl"
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(lines[:1] + lines[3:5]))
        answer = self.trained("run")
        self.assertIn(f"{file}: the lines of 3 steps up to 6 are missing", answer.text)
        file.unlink()
        answer = self.trained("run", f"train.steps={STEPS + 1}")
        self.assertIn(f"{file}: the lines of {STEPS} steps up to {STEPS} are missing", answer.text)

    def test_a_link_that_a_save_left_behind_is_mended(self):
        self.trained("run")
        latest = self.root / "run/checkpoints/latest"
        latest.unlink()
        latest.symlink_to("step-00000004")
        self.trained("run")
        self.assertEqual(os.readlink(latest), f"step-{STEPS:08}")

    def steps_there(self, run):
        return sum(name.startswith("step-") for name in self.names(run))

    def test_a_finished_run_says_so_and_changes_nothing(self):
        self.trained("run")
        before = (self.root / "run/metrics.jsonl").read_bytes(), self.sha("run"), self.steps("run")
        answer = self.trained("run")
        self.assertIn(f"{self.root}/run is finished: all {STEPS} steps are done", answer.text)
        self.assertEqual(before,
                         ((self.root / "run/metrics.jsonl").read_bytes(), self.sha("run"), self.steps("run")))

    def test_never_is_refused_where_checkpoints_are(self):
        self.trained("run")
        text = self.refused(78, "run", "run.resume=never")
        self.assertIn(f"run.resume is never, but {self.checkpoint('run', STEPS)} is there", text)
        self.trained("other", "run.resume=never")
        self.assertEqual(self.sha("other"), self.sha("run"))

    def test_a_checkpoint_that_is_named_is_gone_on_from_elsewhere(self):
        self.trained("run")
        fourth = self.checkpoint("run", 4)
        self.trained("other", f"run.resume={fourth}")
        self.assertEqual([line["step"] for line in self.metrics("other")], list(range(5, STEPS + 1)))
        self.assertEqual([line["loss"] for line in self.metrics("other")], self.losses("run")[4:])
        self.assertEqual(self.sha("other"), self.sha("run"))
        self.assertIn("newer ones away", self.refused(78, "run", f"run.resume={fourth}"))
        self.assertIn("No such file", self.refused(66, "third", f"run.resume={self.root}/nowhere"))
        (self.root / "named").mkdir()
        (self.root / "named/STOP").touch()
        answer = self.train("named", f"run.resume={fourth}")
        self.assertIn("the same command with run.resume=auto goes on from there", answer.text)
        self.assertIn("which has no manifest.json", self.refused(66, "third", f"run.resume={self.root}"))
        self.assertIn("a run's directory (name one of its checkpoints",
                      self.refused(78, "third", f"run.resume={self.root}/run"))
        with open(fourth / "state.h5", "r+b") as file:
            file.write(b"?")
        self.assertIn("run.resume named it", self.refused(80, "third", f"run.resume={fourth}"))

    def test_a_grid_that_does_not_divide_the_checkpoints_shards_is_named_and_not_the_batch(self):
        settings = "train.steps=2 reproducible.data=auto"
        self.trained("run", settings + " grid.data=2", 2)
        answer = self.train("run", settings + " grid.data=3", 3)
        self.assertEqual(answer.code, 78, answer)
        self.assertRegex(answer.text, "grid.data[^\n]* is 3[^\n]*reproducible.data")
        self.assertNotIn("train.batch", answer.text)

    def test_other_arithmetic_is_refused_with_all_keys_in_one_sentence(self):
        self.trained("run", "train.steps=2")
        text = self.refused(
            78, "run",
            "train.steps=4 seed=4 model.mlp=swiglu train.batch=8 optimizer.beta2=0.9 train.precision=bf16")
        sentence = next(line for line in text.splitlines() if "other arithmetic" in line)
        for part in ("seed is 4 (there 3)", "model.mlp is swiglu (there gelu)", "train.batch is 8 (there 4)",
                     "optimizer.beta2 is 0.9 (there 0.95)", "train.precision is bf16 (there f32)"):
            self.assertIn(part, sentence)
        self.assertNotIn("train.steps", sentence)

    def test_another_course_is_taken_with_a_line_of_old_and_new(self):
        self.trained("run", "train.steps=2")
        answer = self.trained("run", "train.steps=4 optimizer.rate.peak=2.0e-3 train.clip=0.5 grid.data=2", 2)
        for line in ("train.steps is 4 (before 2)", "optimizer.rate.peak is 0.002 (before 0.001)",
                     "train.clip is 0.5 (before 1)"):
            self.assertEqual(answer.text.count("from here on " + line), 1, answer)
        self.assertNotIn("from here on grid", answer.text)
        self.assertEqual([line["rate"] for line in self.metrics("run")], [0.001, 0.001, 0.002, 0.002])

    def test_data_may_move_and_must_not_change(self):
        text = (self.root / "tiny.yaml").read_bytes() * 4
        book, moved = self.root / "book.txt", self.root / "moved.txt"
        book.write_bytes(text)
        begun = "train.steps=6 train.evaluate_every=0 run.stop_after="
        self.assertEqual(self.train("run", f"{begun}2 data.train=[{book}]").code, 75)
        book.rename(moved)
        answer = self.train("run", f"{begun}4 data.train=[{moved}]")
        self.assertEqual(answer.code, 75, answer)
        self.assertNotIn("bits may differ", answer.text)
        moved.write_bytes(text.swapcase())
        before = self.metrics("run")
        self.assertIn("contents of data.train is ", self.refused(78, "run", f"{begun}0 data.train=[{moved}]"))
        self.assertEqual(self.metrics("run"), before)
        moved.write_bytes(text)
        self.trained("run", f"{begun}0 data.train=[{moved}]")
        self.trained("whole", f"{begun}0 data.train=[{moved}]")
        self.assertEqual(self.sha("run", 6), self.sha("whole", 6))
        self.assertEqual(len({line["arithmetic"] for line in self.metrics("run") if "arithmetic" in line}), 1)

    def test_ranks_that_find_other_files_at_one_path_are_refused(self):
        text = (self.root / "tiny.yaml").read_bytes() * 4
        for node in ("node0", "node1"):  # folders of two ranks, as disks of two nodes
            (self.root / node).mkdir()
            (self.root / node / "book.txt").write_bytes(text)
        settings = "train.steps=2 train.evaluate_every=0 data.train=[book.txt] grid.data=2"

        def on_nodes(run):
            launcher, (_, _, *program) = self.command(run, settings, 2)[:2], self.command(run, settings, 2)
            return self.call(
                launcher + ["bash", "-c", 'cd node$OMPI_COMM_WORLD_RANK && exec "$@"', "bash"] + program)

        answer = on_nodes("alike")
        self.assertEqual(answer.code, 0, answer)
        (self.root / "node1/book.txt").write_bytes(text.swapcase())
        answer = on_nodes("apart")
        self.assertEqual(answer.code, 78, answer)
        self.assertRegex(answer.text, "contents of data.train is [^\n]* here and [^\n]* on rank 0")

    def test_weights_to_begin_with_count_and_may_go(self):
        self.trained("first", "train.steps=2")
        weights = self.root / "weights.safetensors"
        shutil.copy(self.root / "first/model.safetensors", weights)
        self.assertEqual(self.train("run", f"train.steps=4 run.stop_after=2 run.weights={weights}").code, 75)
        weights.unlink()
        self.assertNotIn("bits may differ", self.trained("run", "train.steps=4").text)
        self.trained("drawn", "train.steps=4")
        names = [self.metrics(run)[0]["arithmetic"] for run in ("run", "drawn")]
        self.assertNotEqual(*names)
        self.assertEqual(self.metrics("run")[2]["arithmetic"], names[0])

    def test_other_bits_are_explained_by_what_each_start_has_changed(self):
        stopped = "train.steps=4 run.stop_after=2"
        self.assertEqual(self.train("plain", stopped).code, 75)
        self.trained("plain", "train.steps=4")
        for run, change, case, detail, code in (
            ("rate", "optimizer.rate.peak=2.0e-3", "in steps 3 to 4 their arithmetic is one (",
             "optimizer.rate.peak is 0.001 in the first and 0.002 in the second", 76),
            ("class", "device.instructions=baseline", "in steps 3 to 4 their arithmetic has two names (",
             "kernels is cpu: ", 78)):
            self.assertEqual(self.train(run, stopped).code, 75)
            self.trained(run, "train.steps=4 " + change)
            said = self.ckpt("diff", self.checkpoint("plain", 4), self.checkpoint(run, 4)).text
            self.assertIn(case, said)
            self.assertIn(detail, said)
            self.assertNotIn("broken", said)
            self.assertIn("up to step 2: arithmetic ", self.ckpt("info", self.root / run).text)
            beside = self.train("beside-" + run, f"train.steps=4 --compare {self.root / run}")
            self.assertEqual(beside.code, code, beside)
            self.assertIn("from step 3 on", beside.text)
            self.assertNotIn("broken", beside.text)
            starts = [line["step"] for line in self.metrics(run) if "arithmetic" in line]
            self.assertEqual(starts, [1, 3])

    def test_a_run_that_is_taken_on_sees_the_data_of_the_first_plan(self):
        book = self.root / "book.txt"
        book.write_bytes((self.root / "tiny.yaml").read_bytes() * 4)  # some 3 epochs in 100 steps, 5 in 150
        data = f"data.train=[{book}] train.evaluate_every=0 checkpoint.every=20"
        self.trained("hundred", data + " train.steps=100")
        self.trained("fresh", data + " train.steps=150")
        self.assertNotEqual(
            self.losses("fresh")[:100], self.losses("hundred"), "another plan is another order")
        answer = self.train("run", data + " train.steps=100", faults="write:kill:70:1", on="metrics.jsonl")
        self.assertEqual(answer.code, -9, answer)
        answer = self.trained("run", data + " train.steps=150")
        self.assertIn("from here on train.steps is 150 (before 100)", answer.text)
        self.assertEqual(self.losses("run")[:100], self.losses("hundred"))
        self.assertEqual(len(self.losses("run")), 150)
        self.trained("hundred", data + " train.steps=150")
        self.assertEqual(self.losses("hundred"), self.losses("run"))
        self.assertEqual(self.sha("hundred", 150), self.sha("run", 150))

    def test_what_stays_is_the_newest_each_so_many_and_the_best(self):
        settings = ("train.steps=14 checkpoint.keep=2 checkpoint.keep_every=10 train.clip=0 "
                    "optimizer.rate.kind=cosine optimizer.rate.peak=0.3 optimizer.rate.warmup=20")
        self.trained("run", settings)
        evaluated = {
            line["step"]: line["validation_loss"]
            for line in self.metrics("run") if "validation_loss" in line
        }
        best = min(evaluated, key=evaluated.get)
        self.assertNotIn(best, (10, 12, 14), f"the best is one that nothing else keeps: {evaluated}")
        self.assertEqual(self.steps("run"), sorted({best, 10, 12, 14}))
        self.assertIn(f"best loss {evaluated[best]:.4f} after step {best}",
                      self.ckpt("info", self.root / "run").text)
        self.assertIn("checkpoint.keep", self.refused(78, "other", "checkpoint.keep=1"))

        # Where no save meets the best evaluation, the first one behind it stays.
        self.trained("apart", settings.replace("keep_every=10", "every=3"))
        evaluated = {
            line["step"]: line["validation_loss"]
            for line in self.metrics("apart") if "validation_loss" in line
        }
        best = min(evaluated, key=evaluated.get)
        behind = next(step for step in (3, 6, 9, 12, 14) if step >= best)
        self.assertNotIn(behind, (best, 12, 14), f"the best is one that a save meets: {evaluated}")
        self.assertEqual(self.steps("apart"), sorted({behind, 12, 14}))

    def test_a_run_that_computes_nothing_leaves_a_run_with_checkpoints_alone(self):
        self.trained("run")
        before = self.metrics("run")
        self.assertIn("computes nothing", self.refused(78, "run", "device.kind=emulated device.description=core"))
        self.assertEqual(self.metrics("run"), before)

    def test_a_checkpoint_of_a_newer_program_is_not_passed_over(self):
        self.trained("run")
        newest = self.checkpoint("run", STEPS)
        content = manifests.read(newest)
        content["version"] = 3
        manifests.write(newest, content)
        before = (newest / "manifest.json").read_bytes()
        self.assertIn("take a newer one", self.refused(78, "run", f"train.steps={STEPS + 2}"))
        self.assertEqual((newest / "manifest.json").read_bytes(), before)


if __name__ == "__main__":
    main()
