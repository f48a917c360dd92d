# thorough
"""gpu-check with programs that hang, crash, print a gigabyte, are killed or refused, and ended from outside at
random moments: what has ended stands in a whole gpu-check.json, in time."""
import glob
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts")
DOCTOR = "graphics       CUDA 13.0 on a driver for 13.0, NVIDIA H200"
PASSES = "echo '[ RUN      ] Cuda.Swiglu'; echo '[  PASSED  ] 1 test.'"
FILES = {"gpu-check.json", "logs.txt.gz", "gpu.json"}


class Bundle:
    """A bundle in which each program is a line of the shell."""

    def __init__(self, folder, programs):
        self.folder, self.output = folder, os.path.join(folder, "out")
        os.makedirs(os.path.join(folder, "bin"))
        for name in ("lib", "configs", "tmp"):
            os.makedirs(os.path.join(folder, name))
        shutil.copytree(os.path.join(SCRIPTS, "gpu_check"), os.path.join(folder, "check"))
        shutil.copytree(os.path.join(SCRIPTS, "bench"), os.path.join(folder, "bench"))
        with open(os.path.join(folder, "bundle.json"), "w") as file:
            json.dump({"commit": "made", "cuda": "13", "architectures": "90", "libraries": []}, file)
        for name, line in programs.items():
            path = os.path.join(folder, "bin", name)
            with open(path, "w") as file:
                file.write("#!/bin/sh\n" + line + "\n")
            os.chmod(path, 0o755)

    def start(self, *words):
        environment = dict(os.environ, TMPDIR=os.path.join(self.folder, "tmp"), PYTHONDONTWRITEBYTECODE="1")
        return subprocess.Popen([
            sys.executable, os.path.join(self.folder, "check", "gpu_check.py"), "--output", self.output, *words
        ], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True)

    def report(self):
        with open(os.path.join(self.output, "gpu-check.json")) as file:
            return json.load(file)

    def outcomes(self):
        return {part["name"]: (part["outcome"], part["why"]) for part in self.report()["parts"]}


def is_running(mark):
    """Whether a process has this word among its arguments."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                if mark.encode() in file.read().split(b"\0"):
                    return True
        except OSError:
            continue
    return False


class Survival(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.folder = os.path.join(self.place.name, "bundle")
        os.makedirs(self.folder)

    def tearDown(self):
        self.place.cleanup()

    def test_each_trouble_is_the_outcome_of_its_own_part(self):
        bundle = Bundle(
            self.folder, {
                "mindpipe-train": "[ $1 = doctor ] && { echo '%s'; exit 0; }; echo no such file; exit 3" % DOCTOR,
                "test_kernels_cuda_kernels": "head -c 1000000000 /dev/zero | tr '\\0' x; echo; " + PASSES,
                "test_kernels_cuda_library": "echo '[ RUN      ] Cuda.Attention'; kill -SEGV $$",
                "kernels_bench": "echo '{\"kernels\": [' >\"$4\"",
                "test_models_cuda": "kill -KILL $$",
                "mpirun": "echo '4 ranks: 7 of 50 layouts, 0 failed'; sleep 600",
                "compute-sanitizer": "echo '========= Error: Device not supported.'; exit 1",
                "test_runtime_mpi": "",
                "test_paper_on_gpu": "echo 'description of this GPU: {\"deviceName\": \"made\"}'; " + PASSES,
                "nvidia-smi": "echo nonsense",
            })
        os.chmod(os.path.join(self.folder, "bin", "test_runtime_mpi"), 0o644)
        begun = time.monotonic()
        process = bundle.start("--minutes", "1.5", "--python", "/nowhere/python3", "--only",
                               "kernels,library,ceilings,gpt2-124m,gpt2-124m-torch,models,tune,memory,memcheck,"
                               "paper,subnets-2")
        text, _ = process.communicate(timeout=120)
        self.assertLess(time.monotonic() - begun, 90 + 10)
        outcomes, report = bundle.outcomes(), bundle.report()
        self.assertEqual((process.returncode, report["code"], report["running"]), (1, 1, None), text)
        for name, outcome, words in (
            ("doctor", "passed", "NVIDIA H200"), ("kernels", "passed", "1 test"),
            ("library", "failed", "SIGSEGV"), ("ceilings", "failed", "JSONDecodeError"),
            ("gpt2-124m", "failed", "no such file"), ("gpt2-124m-torch", "not run", "cannot be started"),
            ("models", "failed", "SIGKILL"), ("tune", "not run", "no figures to compare with"),
            ("memory", "failed", "no such file"), ("memcheck", "not run", "Device not supported"),
            ("paper", "passed", "1 test"), ("subnets-2", "in part", "7 of 50 layouts")):
            self.assertEqual(outcomes[name][0], outcome, (name, outcomes[name], text))
            self.assertIn(words, outcomes[name][1], name)
            self.assertIn("%-24s %-9s" % (name, outcome), text)
        self.assertEqual(set(os.listdir(bundle.output)), FILES)
        with open(os.path.join(bundle.output, "gpu.json")) as file:
            self.assertEqual(json.load(file), {"deviceName": "made"})
        with gzip.open(os.path.join(bundle.output, "logs.txt.gz"), "rt") as file:
            logs = file.read()
        self.assertIn("===== kernels: test_kernels_cuda_kernels.log", logs)
        self.assertIn("bytes are left out", logs)
        self.assertLess(len(logs), 4 << 20)
        self.assertEqual(os.listdir(os.path.join(self.folder, "tmp")), [])

    def test_a_doctor_that_hangs_is_no_machine_without_a_gpu(self):
        bundle = Bundle(self.folder, {"mindpipe-train": "sleep 600", "test_kernels_cuda_kernels": PASSES})
        begun = time.monotonic()
        text, _ = bundle.start("--minutes", "0.5", "--only", "kernels").communicate(timeout=60)
        self.assertLess(time.monotonic() - begun, 30 + 10)
        self.assertEqual(bundle.outcomes()["doctor"][0], "timed out", text)
        self.assertEqual(bundle.outcomes()["kernels"][0], "passed", text)

    def test_a_machine_without_a_gpu_is_named(self):
        bundle = Bundle(self.folder, {"mindpipe-train": "echo 'graphics       CUDA 13.0, no GPU: none'"})
        process = bundle.start()
        text, _ = process.communicate(timeout=60)
        self.assertEqual((process.returncode, bundle.report()["verdict"]), (69, "no GPU"))
        self.assertIn("racecheck", text)

    def test_ended_from_outside_at_any_moment_all_that_had_ended_is_there(self):
        draw, runs = random.Random(), []
        for turn in range(10):
            mark = "%d" % draw.randrange(10**9, 10**10)
            line = "echo '%s'; sleep 0.%d; sh -c 'sleep 0.2' %s; " % (DOCTOR, draw.randrange(1, 4), mark) + PASSES
            bundle = Bundle(os.path.join(self.folder, str(turn)), {
                name: line
                for name in ("mindpipe-train", "test_kernels_cuda_kernels", "test_kernels_cuda_library",
                             "test_models_cuda", "test_paper_on_gpu")
            })
            sign = signal.SIGKILL if turn % 2 else signal.SIGTERM
            runs.append((bundle, mark, sign, draw.uniform(0.3, 4), bundle.start(
                "--only", "kernels,library,models,paper")))
        begun = time.monotonic()
        for bundle, mark, sign, moment, process in sorted(runs, key=lambda run: run[3]):
            time.sleep(max(0, begun + moment - time.monotonic()))
            process.send_signal(sign)
        for bundle, mark, sign, moment, process in runs:
            text, _ = process.communicate(timeout=20)
            self.assertLess(time.monotonic() - begun, 4 + 10)
            if not os.path.exists(os.path.join(bundle.output, "gpu-check.json")):
                self.assertNotIn("passed", text, "nothing had begun")
                continue
            report = bundle.report()
            names = [part["name"] for part in report["parts"] if part["outcome"] == "passed"]
            told = [line.split()[0] for line in text.splitlines() if "  passed   " in line]
            self.assertEqual(names, ["doctor", "kernels", "library", "models", "paper"][:len(names)])
            self.assertLessEqual(set(told), set(names))
            self.assertLessEqual(set(os.listdir(bundle.output)) - {".gpu-check.json"}, FILES)
            if sign == signal.SIGTERM and report["verdict"] != "not ended" and len(names) < 5:
                self.assertEqual((process.returncode, report["code"]), (1, 1))
                self.assertIn("WRONG" if len(report["parts"]) > len(names) else "ended early", report["verdict"])
            deadline = time.monotonic() + 5
            while is_running(mark) and time.monotonic() < deadline:
                time.sleep(0.1)
            self.assertFalse(is_running(mark), "a program has outlived what started it")


if __name__ == "__main__":
    unittest.main()
