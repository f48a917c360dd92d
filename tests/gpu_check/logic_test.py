"""What gpu-check decides without running anything: time, outcomes, tables, the verdict; and that a program
that hangs is ended."""
import json
import os
import struct
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts",
                                "gpu_check"))
import devices
import libraries
import parts
import reading
import report
import running
import tables
import training
import verdict


def result(name, outcome):
    return {"name": name, "outcome": outcome, "seconds": 1.0, "why": "because"}


class Time(unittest.TestCase):
    def test_a_part_gets_its_budget_or_what_is_left(self):
        self.assertEqual(verdict.allowance(60, 0, 480), 60)
        self.assertEqual(verdict.allowance(60, 450, 480), 30)
        self.assertEqual(verdict.allowance(60, 477, 480), 0)
        self.assertEqual(verdict.allowance(60, 500, 480), 0)
        self.assertEqual(verdict.allowance(2, 478, 480), 2)

    def test_a_part_may_take_what_others_have_left_but_nothing_of_those_behind_it(self):
        self.assertEqual(verdict.allowance(30, 100, 480, 300, 90), 80)
        self.assertEqual(verdict.allowance(30, 100, 480, 200, 90), 90)
        self.assertEqual(verdict.allowance(30, 100, 480, 360, 90), 30)
        self.assertEqual(verdict.allowance(30, 470, 480, 0, 90), 10)

    def test_budgets_lie_within_the_whole(self):
        self.assertLessEqual(sum(part.seconds for part in parts.PARTS), 8 * 60)
        self.assertTrue(all(part.most >= part.seconds for part in parts.PARTS))

    def test_the_first_parts_settle_what_the_others_stand_on(self):
        names = [part.name for part in parts.PARTS]
        self.assertEqual(names[:5], ["doctor", "kernels", "library", "ceilings", "gpt2-124m"])
        self.assertEqual(len(names), len(set(names)))
        self.assertTrue(all("," not in name and " " not in name for name in names),
                        "--only takes them apart at commas")

    def test_each_part_that_computes_on_a_gpu_names_what_it_needs(self):
        for part in parts.PARTS:
            is_ours = not part.name.endswith("-torch")
            if is_ours and part.name not in ("doctor", "kernels", "memcheck", "racecheck"):
                self.assertIn("libcublasLt", part.needs, part.name)
        self.assertEqual({part.name for part in parts.PARTS if "libcudnn" in part.needs}, {"paper"})
        self.assertEqual({part.name for part in parts.PARTS if "libnccl" in part.needs}, {"nccl-self"})

    def test_a_program_that_hangs_and_is_deaf_is_ended_with_all_its_children(self):
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            start = time.monotonic()
            code, text, _ = running.run(["/bin/sh", "-c", "trap '' TERM; echo begun; sleep 60 & echo $!; wait"],
                                        dict(os.environ), 1, log)
            self.assertIsNone(code)
            self.assertLess(time.monotonic() - start, 30)
            begun, child = text.split()
            self.assertEqual(begun, "begun")
            for _ in range(50):  # whoever adopts it buries it
                try:
                    with open("/proc/%s/stat" % child) as file:
                        gone = file.read().rsplit(")", 1)[1].split()[0] == "Z"
                except OSError:
                    gone = True
                if gone:
                    break
                time.sleep(0.1)
            self.assertTrue(gone)

    def test_a_program_ends_by_itself_or_once_it_has_done_enough(self):
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            self.assertEqual(
                running.run(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], dict(os.environ), 20,
                            log)[:2], (3, "out\nerr\n"))
            self.assertEqual(running.run(["sleep", "60"], dict(os.environ), 20, log, lambda: True)[0], 0)

    def test_a_gigabyte_is_kept_by_its_begin_and_its_end(self):
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            code, text, _ = running.run(
                ["/bin/sh", "-c", "echo begin; head -c 1000000000 /dev/zero | tr '\\0' x; echo; echo end"],
                dict(os.environ), 60, log)
            self.assertEqual((code, text[:6], text[-5:]), (0, "begin\n", "\nend\n"))
            self.assertIn("bytes are left out", text)
            self.assertLess(os.path.getsize(log), 2 << 20)

    def test_what_a_program_leaves_behind_holds_nobody_up(self):
        with tempfile.TemporaryDirectory() as folder:
            start = time.monotonic()
            code, text, _ = running.run(["/bin/sh", "-c", "setsid sleep 20 & echo done"], dict(os.environ), 60,
                                        os.path.join(folder, "log"))
            self.assertEqual((code, text), (0, "done\n"))
            self.assertLess(time.monotonic() - start, 10)


LEDGER = """  values                3.5 MiB
  state copy            0.5 MiB
  total                 4.0 MiB
"""


class OtherPrograms(unittest.TestCase):
    def test_llm_c_says_milliseconds_and_loss_of_each_step(self):
        case = training.Case("gpt-tiny", 4, 2, 1, 50)  # 100 tokens a step
        line = "step %4d/4 | loss 10.%d (+nanz)| norm 1.5 (+nanz)| lr 3e-4 | %.2f ms | 40.0%% bf16 MFU | 1 tok/s\n"
        text = "".join(line % (step, step, ms) for step, ms in enumerate((900, 800, 100, 300), 1))
        figures = training.llm_c_figures("init\n" + text, case)
        self.assertAlmostEqual(figures["tokens_per_second"], 500)
        self.assertEqual((figures["loss"], figures["steps"]), (10.4, 4))
        self.assertIsNone(training.llm_c_figures(line % (1, 1, 1), case))

    def test_llm_c_is_asked_for_nothing_that_divides_by_zero(self):
        command = training.llm_c_command("train_gpt2cu", "tokens", training.CASES["gpt2-124m"])
        asked = dict(zip(command[1::2], command[2::2]))
        self.assertGreater(int(asked["-v"]), 0)
        self.assertEqual((asked["-b"], asked["-t"], asked["-d"], asked["-e"]), ("32", "1024", "65536", "d12"))

    def test_tokens_for_llm_c_have_its_head(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tokens.bin")
            training.write_llm_c_tokens(path, 100, 50257)
            with open(path, "rb") as file:
                data = file.read()
            self.assertEqual(len(data), 1024 + 200)
            self.assertEqual(struct.unpack("<3i", data[:12]), (20240520, 1, 100))
            self.assertTrue(all(token < 50257 for token in struct.unpack("<100H", data[1024:])))

    def test_the_ledger_is_summed_over_its_classes(self):
        text = "x\nmemory of this rank:\n%s\nready after 2 s\n" % LEDGER
        self.assertEqual(devices.ledger_bytes(text), 4 << 20)
        self.assertEqual(devices.ledger_bytes("nothing"), 0)


RUN = "[ RUN      ] Cuda.Swiglu\n"
FAILURE = ("/x/mirror.h:60: Failure\nThe difference is 3,\nelement 7 of [9, 1]\n\n"
           "[  FAILED  ] Cuda.Swiglu (3 ms)\n")


class Outcomes(unittest.TestCase):
    def test_of_tests(self):
        self.assertEqual(reading.read_tests(0, "[  PASSED  ] 21 tests.\n")[:2], ("passed", "21 tests"))
        self.assertEqual(
            reading.read_tests(0, "[  PASSED  ] 2 tests.\n[  SKIPPED ] 1 test, listed below:\n")[:2],
            ("passed", "2 tests, 1 skipped"))
        outcome, why, figures = reading.read_tests(
            1, RUN + FAILURE +
            "[  PASSED  ] 20 tests.\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] Cuda.Swiglu\n")
        self.assertEqual((outcome, figures["tests_failed"]), ("failed", ["Cuda.Swiglu"]))
        self.assertEqual(why, "Cuda.Swiglu: The difference is 3, | element 7 of [9, 1]")

    def test_of_tests_that_have_not_run(self):
        skipped = ("/x/test.cpp:12: Skipped\nno GPU that this process may use: none\n\n"
                   "[  SKIPPED ] Cuda.Swiglu (0 ms)\n[  PASSED  ] 0 tests.\n"
                   "[  SKIPPED ] 1 test, listed below:\n")
        self.assertEqual(
            reading.read_tests(0, skipped)[:2], ("skipped", "no GPU that this process may use: none"))
        self.assertEqual(reading.read_tests(0, "[  PASSED  ] 0 tests.\n")[0], "failed")
        self.assertEqual(
            reading.read_tests(None, "[ RUN      ] A.B\n" + RUN)[:2],
            ("timed out", "in Cuda.Swiglu, 1 tests before it were over"))
        self.assertEqual(
            reading.read_tests(-11, RUN)[:2],
            ("failed", "was ended by SIGSEGV: [ RUN      ] Cuda.Swiglu"))

    def test_of_tests_whose_library_is_not_there(self):
        skipped = ("/x/test.cpp:12: Skipped\n%s\n\n[  SKIPPED ] A.B (0 ms)\n[  PASSED  ] 0 tests.\n"
                   "[  SKIPPED ] 1 test, listed below:\n")
        for reason in ("no cuDNN that this build can use", "libnccl.so.2 cannot be opened here"):
            self.assertEqual(reading.read_tests(0, skipped % reason)[:2], ("not run", reason))

    def test_of_layouts_when_time_ends(self):
        text = RUN + "4 ranks: 3 of 50 layouts, 0 failed, about 9 s left\n4 ranks: 12 of 50 layouts, %d failed\n"
        outcome, why, figures = reading.read_tests(None, text % 0)
        self.assertEqual((outcome, why, figures["layouts"]),
                         ("in part", "12 of 50 layouts had passed when time ended", 12))
        self.assertEqual(reading.read_tests(None, text % 1)[0], "timed out")

    def test_of_a_sanitizer(self):
        passed = "[  PASSED  ] 4 tests.\n"
        self.assertEqual(
            reading.read_sanitizer(0, passed + "========= ERROR SUMMARY: 0 errors\n")[0], "passed")
        self.assertEqual(
            reading.read_sanitizer(
                0, passed + "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n")[0],
            "passed")
        self.assertEqual(
            reading.read_sanitizer(0, RUN + passed)[0], "failed", "no summary: the tool was not there")
        refusal = "========= Error: Device not supported. Please refer to the list of supported devices\n"
        self.assertEqual(
            reading.read_sanitizer(1, refusal)[:2],
            ("not run", "the tool does not run here: " + refusal.strip()))
        for runs_on in (RUN + passed, RUN + passed + "========= ERROR SUMMARY: 2 errors\n"):
            self.assertEqual(
                reading.read_sanitizer(1, refusal + runs_on)[:2],
                ("not run", "the tool does not run here: " + refusal.strip()))
        self.assertEqual(reading.read_sanitizer(1, refusal + FAILURE)[0], "failed")
        crashed = "========= Invalid __global__ write of size 4 bytes\n========= Internal Sanitizer Error: it stops\n"
        self.assertEqual(reading.read_sanitizer(1, crashed + "========= ERROR SUMMARY: 1 error\n")[0], "failed")
        outcome, why, _ = reading.read_sanitizer(
            99, "========= Invalid __global__ write of size 4 bytes\n" + passed +
            "========= ERROR SUMMARY: 2 errors\n")
        self.assertEqual((outcome, why),
                         ("failed", "2 complaints, the first: Invalid __global__ write of size 4 bytes"))
        self.assertEqual(
            reading.read_sanitizer(1, FAILURE + "========= ERROR SUMMARY: 0 errors\n")[0], "failed")


REPORT = {"device": "a", "dtype": "bf16", "operations_per_second": 1e12, "bytes_per_second": 1e9, "kernels": [
    {"name": "product", "shape": "s", "calls": 1, "seconds": 2e-3, "operations": 1e9, "bytes": 1e5},
    {"name": "norm", "shape": "s", "calls": 6, "seconds": 1e-3, "operations": 0, "bytes": 8e5},
    {"name": "light", "shape": "s", "calls": 1, "seconds": 1e-6, "operations": 0, "bytes": 1}]}


class Tables(unittest.TestCase):
    def test_kernels_by_weight_with_their_share_of_the_ceiling_that_binds_them(self):
        rows = tables.kernel_rows(REPORT, 2)
        self.assertEqual([row["name"] for row in rows], ["norm", "product"])
        self.assertEqual([row["bound"] for row in rows], ["memory", "products"])
        self.assertAlmostEqual(rows[0]["of_ceiling"], 0.8)
        self.assertAlmostEqual(rows[1]["of_ceiling"], 0.5)
        self.assertAlmostEqual(rows[0]["of_step"], 6 / 8.001)
        self.assertEqual(len(tables.kernel_table(REPORT)), 5)

    def test_goals(self):
        goal = tables.Goal("rate", "rate", 10, 20)
        self.assertTrue(goal.is_missed({"rate": 9}))
        self.assertFalse(goal.is_missed({"rate": 10}))
        self.assertFalse(goal.is_missed({}))
        for value, words in ((9, "BELOW"), (12, "enough"), (20, "reaches the aim")):
            self.assertIn(words, goal.line({"rate": value}))
        self.assertIn("not measured", goal.line({}))


class Training(unittest.TestCase):
    def test_tokens_a_second_are_those_of_the_mean_step_behind_the_first_two(self):
        case = training.Case("gpt-tiny", 4, 2, 1, 50)  # 100 tokens a step
        figures = training.figures_of([1, 2, 100 / 0.5, 100 / 1.5], 3.25, case)
        self.assertAlmostEqual(figures["seconds"], 1.0)
        self.assertAlmostEqual(figures["tokens_per_second"], 100.0)
        self.assertEqual((figures["loss"], figures["steps"]), (3.25, 4))

    def test_steps_are_read_while_a_line_is_being_written(self):
        with tempfile.TemporaryDirectory() as folder:
            metrics = os.path.join(folder, "metrics.jsonl")
            self.assertEqual(training.steps_of(metrics), [])
            with open(metrics, "w") as file:
                file.write('{"note": 1}\n{"step": 1, "tokens_per_second": 5.0}\n{"step": 2, "tok')
            self.assertEqual([step["step"] for step in training.steps_of(metrics)], [1])

    def test_each_case_has_a_configuration(self):
        configs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs")
        for case in [*training.CASES.values(), training.REHEARSAL]:
            self.assertTrue(os.path.exists(os.path.join(configs, case.config + ".yaml")), case.config)
            self.assertEqual(case.batch % case.micro_batch, 0)
            self.assertGreater(case.steps, training.WARM_UP)


class Verdict(unittest.TestCase):
    def test_is_good_when_all_have_passed_or_were_not_there_to_run(self):
        code, lines = verdict.verdict([result("a", "passed")], "cuda", [], 12)
        self.assertEqual((code, lines[-1]), (0, "gpu-check: all good in 12 s: 1 passed"))
        code, lines = verdict.verdict([result("a", "passed"), result("b", "not run")], "cuda", [], 12)
        self.assertEqual((code, lines[-2:]), (0, ["NOT RUN, for the reasons above: b",
                                                  "gpu-check: nothing wrong in what ran in 12 s: 1 passed, 1 not run"]))

    def test_names_what_is_wrong(self):
        for outcome in ("failed", "timed out", "skipped"):
            code, lines = verdict.verdict([result("a", "passed"), result("b", outcome)], "cuda", [], 12)
            self.assertEqual(code, 1)
            self.assertIn("WRONG in b", lines[-1])

    def test_of_a_rehearsal_says_so_and_takes_no_offence_at_what_wants_a_gpu(self):
        code, lines = verdict.verdict([result("a", "skipped")], "cpu", [], 1)
        self.assertEqual(code, 0)
        self.assertTrue(any("REHEARSAL" in line for line in lines))
        self.assertEqual(verdict.verdict([result("a", "failed")], "cpu", [], 1)[0], 1)

    def test_says_what_is_below_the_goals_without_calling_it_wrong(self):
        code, lines = verdict.verdict([result("a", "passed")], "cuda", ["GPT-2 124M"], 1)
        self.assertEqual(code, 0)
        self.assertIn("below what is wished for: GPT-2 124M", lines)


class Libraries(unittest.TestCase):
    def test_are_found_where_the_user_says_first(self):
        with tempfile.TemporaryDirectory() as root:
            for folder in ("user", "python"):
                os.makedirs(os.path.join(root, folder))
                open(os.path.join(root, folder, "libcublasLt.so.13"), "w").close()
            folders = [os.path.join(root, "user"), os.path.join(root, "python")]
            found, missing = libraries.find(["libcublasLt.so.13", "libcudnn.so.9", "libz.so.1"], folders,
                                            {"libz.so.1"})
            self.assertEqual(found, {"libcublasLt.so.13": folders[0], "libz.so.1": ""})
            self.assertEqual(missing, ["libcudnn.so.9"])

    def test_that_cannot_be_opened_are_named_with_the_loaders_words(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "libbroken.so.1"), "w") as file:
                file.write("no library")
            refused = libraries.refused(["libc.so.6", "libnone.so.7", "libbroken.so.1"],
                                        dict(os.environ, LD_LIBRARY_PATH=folder), folder)
            self.assertEqual(libraries.refused(["libnone.so.7"], {"LD_PRELOAD": "", "PYTHONHOME": "/nowhere"}, folder), {},
                             "an interpreter that cannot start says nothing of a library")
            self.assertEqual(libraries.refused(["libnone.so.7"], dict(os.environ), folder, 0), {}, "nor does one without time")
        self.assertEqual(set(refused), {"libnone.so.7", "libbroken.so.1"})
        self.assertIn("cannot open shared object file", refused["libnone.so.7"])
        self.assertIn("libbroken.so.1", refused["libbroken.so.1"])

    def test_of_python_packages_are_found_through_the_interpreter(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "nvidia", "cu13", "lib"))
            os.environ["PYTHONPATH"] = root
            try:
                self.assertIn(os.path.join(root, "nvidia", "cu13", "lib"),
                              libraries.python_folders(sys.executable))
            finally:
                del os.environ["PYTHONPATH"]

    def test_the_bundle_comes_first_and_another_mpi_leaves_no_trace(self):
        made = libraries.environment_of(
            "/b", {"libcudnn.so.9": "/py/lib"},
            {"LD_LIBRARY_PATH": "/user", "OMPI_MCA_btl": "tcp", "PMIX_RANK": "3", "HOME": "/h"})
        self.assertEqual(made["LD_LIBRARY_PATH"], "/b/lib:/user:/py/lib")
        self.assertEqual((made["OMPI_MCA_btl"], made["HOME"]), ("self,vader", "/h"))
        self.assertNotIn("PMIX_RANK", made)


class Reports(unittest.TestCase):
    def test_what_has_ended_stands_in_the_file_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            whole = report.Report(folder, {"device": "cuda"})

            def read():
                with open(os.path.join(folder, "gpu-check.json")) as file:
                    return json.load(file)
            self.assertEqual((read()["parts"], read()["verdict"]), ([], "not ended"))
            whole.begins("kernels")
            self.assertEqual(read()["running"], "kernels")
            whole.add(result("kernels", reading.PASSED), {"goals": {"gpt2-124m": float("nan")}})
            self.assertEqual((read()["running"], read()["parts"][0]["name"], read()["goals"]), (None, "kernels", {"gpt2-124m": None}))
            whole.learn(verdict="all good", code=0)
            self.assertEqual(read()["code"], 0)


if __name__ == "__main__":
    unittest.main()
