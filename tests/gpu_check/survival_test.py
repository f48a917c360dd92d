# thorough
# 2 at a time
"""gpu-check with programs that hang, crash, print a gigabyte, are killed or refused, and ended from outside at
random moments: what has ended stands in a whole gpu-check.json, in time."""
import concurrent.futures
import glob
import gzip
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts")
sys.path[:0] = [os.path.join(SCRIPTS, "gpu_check"), os.path.join(SCRIPTS, "..", "tests")]
from parts import PARTS  # noqa: E402
import shares  # noqa: E402

DOCTOR = "graphics       CUDA 13.0 on a driver for 13.0, NVIDIA H200"
PASSES = "echo '[ RUN      ] Cuda.Swiglu'; echo '[  PASSED  ] 1 test.'"
FILES = {"gpu-check.json", "logs.txt.gz", "gpu.json"}
ALL = ["doctor", "kernels", "library", "models", "paper"]  # parts, and what each of them runs
PROGRAMS = ("mindpipe-train", "test_kernels_cuda_kernels", "test_kernels_cuda_library", "test_models_cuda",
            "test_paper_on_gpu")
# A program of any part: it hangs in one part, as the report names it, writes what a training writes, and says that all is well.
ANY = """grep -q '"running": "%(part)s"' %(report)s && { %(hang)s; }
for word in "$@"; do case $word in run.dir=*) run=${word#run.dir=} ;; train.steps=*) steps=${word#train.steps=} ;; esac; done
while [ ${steps:-0} -gt 0 ]; do echo '{"tokens_per_second": 1000.0, "loss": 1.0}' >>$run/metrics.jsonl; steps=$((steps - 1)); done
case $1 in --query*) echo 1000 ;; *) echo '%(doctor)s'; %(passes)s; echo '========= ERROR SUMMARY: 0 errors' ;; esac"""
BUDGET = 60  # seconds of a whole check that is ended from outside


class Bundle:
    """A bundle in which each program is a line of the shell."""

    def __init__(self, folder, programs, libraries=()):
        self.folder, self.output = folder, os.path.join(folder, "out")
        os.makedirs(os.path.join(folder, "bin"))
        for name in ("lib", "configs", "tmp"):
            os.makedirs(os.path.join(folder, name))
        shutil.copytree(os.path.join(SCRIPTS, "gpu_check"), os.path.join(folder, "check"))
        shutil.copytree(os.path.join(SCRIPTS, "bench"), os.path.join(folder, "bench"))
        with open(os.path.join(folder, "bundle.json"), "w") as file:
            json.dump({"commit": "made", "cuda": "13", "architectures": "90", "libraries": libraries}, file)
        for name, line in programs.items():
            self.add(name, line)

    def add(self, name, line):
        path = os.path.join(self.folder, "bin", name)
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

    def ended(self):
        """How many parts have ended, as the report says at this moment; -1 before there is one."""
        try:
            return len(self.report()["parts"])
        except FileNotFoundError:
            return -1

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
                "nvidia-smi": "echo 1000",
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

    def test_a_tool_that_says_nothing_or_hangs_takes_its_part_no_longer(self):
        trains = "[ $1 = doctor ] && { echo '%s'; exit 0; }; %s; exit 3" % (
            DOCTOR, "echo 'memory of this rank:'; echo '  values  100.0 MiB'")
        asked = os.path.join(self.folder, "asked")
        for name, answer, outcome, words in (
            ("nonsense", "echo nonsense", "not run", "does not say"),
            ("hangs", "trap '' TERM; sleep 600", "not run", "does not say"),
            ("hangs-later", "[ $(wc -l <%s) = 1 ] && { echo 1000; exit; }; trap '' TERM; sleep 600" % asked, "failed", "100.0 MiB")):
            with open(asked, "w"):
                pass
            bundle = Bundle(os.path.join(self.folder, name), {
                "mindpipe-train": trains.replace("; exit 3", "; sleep 8; exit 3" if name == "hangs-later" else "; exit 3"),
                "nvidia-smi": "echo asked >>%s; %s" % (asked, answer)
            })
            begun = time.monotonic()
            text, _ = bundle.start("--minutes", "0.5", "--only", "memory").communicate(timeout=60)
            self.assertLess(time.monotonic() - begun, 30 + 10)
            self.assertEqual(bundle.outcomes()["memory"][0], outcome, text)
            self.assertIn(words, bundle.outcomes()["memory"][1])
            with open(asked) as file:
                self.assertEqual(len(file.readlines()), 2 if name == "hangs-later" else 1)
            part = bundle.report()["parts"][-1]
            self.assertLess(part["seconds"], 15 + 6)

    def test_ended_before_any_part_it_leaves_a_report(self):
        bundle, python = Bundle(self.folder, {}), os.path.join(self.folder, "python3")
        with open(python, "w") as file:
            file.write("#!/bin/sh\nexec sleep 600\n")
        os.chmod(python, 0o755)
        process = bundle.start("--python", python)
        while not os.path.exists(os.path.join(bundle.output, "gpu-check.json")):
            self.assertIsNone(process.poll())
            time.sleep(0.02)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        text, _ = process.communicate(timeout=20)
        self.assertEqual((process.returncode, bundle.report()["code"], bundle.report()["parts"]), (1, 1, []), text)
        self.assertIn("SIGTERM", bundle.report()["verdict"])

    def test_a_machine_without_a_gpu_is_named(self):
        bundle = Bundle(self.folder, {"mindpipe-train": "echo 'graphics       CUDA 13.0, no GPU: none'"})
        process = bundle.start()
        text, _ = process.communicate(timeout=60)
        self.assertEqual((process.returncode, bundle.report()["verdict"]), (69, "no GPU"))
        self.assertIn("racecheck", text)

    def run_without(self, missing, *chosen):
        """Outcomes on a machine that lacks a library, whose programs all note that they were started."""
        folder = os.path.join(self.folder, missing)
        started = os.path.join(folder, "started")
        line = "echo \"$(basename $0) $*\" >>%s; echo '%s'; %s" % (started, DOCTOR, PASSES)
        bundle = Bundle(folder, {name: line for name in (*PROGRAMS, "mpirun", "test_runtime_mpi", "kernels_bench")},
                        ["libc.so.6", missing + ".so.99"])
        bundle.add("test_kernels_cuda_kernels", "echo 'description of this GPU: {\"deviceName\": \"made\"}'; " + line)
        process = bundle.start("--only", ",".join(chosen))
        text, _ = process.communicate(timeout=120)
        self.assertEqual(os.path.exists(os.path.join(bundle.output, "gpu.json")), "kernels" in chosen, "the GPU's description")
        with open(started) as file:
            return process.returncode, bundle.outcomes(), file.read(), text

    def test_without_a_library_what_needs_it_has_not_run_and_nothing_is_wrong(self):
        code, outcomes, started, text = self.run_without("libcudnn", "kernels", "library", "models", "paper", "nccl-self")
        self.assertEqual(code, 0, text)
        self.assertEqual({name: outcome for name, (outcome, _) in outcomes.items()},
                         {"doctor": "passed", "kernels": "passed", "library": "in part", "models": "in part",
                          "paper": "not run", "nccl-self": "passed"})
        self.assertRegex(outcomes["paper"][1], r"^it needs libcudnn.so.99 \(.*cannot open shared object")
        self.assertEqual(outcomes["library"][1], "1 test; not run: what takes libcudnn.so.99")
        self.assertNotIn("test_paper_on_gpu", started)
        self.assertIn("libcudnn.so.99 cannot be opened", text)
        self.assertNotIn("libc.so.6 cannot be opened", text)
        code, outcomes, started, text = self.run_without("libnccl", "library", "paper", "nccl-self")
        self.assertEqual((code, outcomes["nccl-self"][0], outcomes["library"][0], outcomes["paper"][0]),
                         (0, "not run", "passed", "passed"), text)
        self.assertNotIn("mpirun", started)
        code, outcomes, started, text = self.run_without(
            "libcublasLt", "kernels", "library", "ceilings", "gpt2-124m", "parity-2", "subnets-2", "models", "tune",
            "memory", "nccl-self", "racecheck-attention", "paper")
        self.assertEqual((code, {name for name, (outcome, _) in outcomes.items() if outcome != "not run"}),
                         (0, {"doctor", "kernels"}), text)
        self.assertEqual([line.split()[0] for line in started.splitlines()],
                         ["mindpipe-train", "test_kernels_cuda_kernels"])

    def ended_from_outside(self, turn, before, draw):
        """Starts a check of five parts and ends it at a random moment of the one behind `before` of them: what
        it leaves. That part takes long, and in every other run does not end when it is asked to."""
        mark, deaf = "30.%d" % draw.randrange(10**9), "trap '' TERM; " if draw.random() < 0.5 else ""
        lines = ["echo '%s'; sleep %.2f; %s" % (DOCTOR, draw.uniform(0.1, 0.5), PASSES) for _ in ALL]
        lines[before] = "%secho '%s'; exec sleep %s" % (deaf, DOCTOR, mark)
        bundle = Bundle(os.path.join(self.folder, str(turn)), dict(zip(PROGRAMS, lines)))
        begun = time.monotonic()
        process = bundle.start("--minutes", "%.2f" % (BUDGET / 60), "--only", ",".join(ALL[1:]))
        while bundle.ended() < before:
            if process.poll() is not None:
                self.fail("it has ended by itself: %s" % process.communicate()[0])
            self.assertLess(time.monotonic() - begun, BUDGET + 10)
            time.sleep(0.02)
        time.sleep(draw.uniform(0, 1))
        sign = signal.SIGKILL if turn % 2 else signal.SIGTERM
        process.send_signal(sign)
        sent = time.monotonic()
        text, _ = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - sent, 10)
        self.assertLess(time.monotonic() - begun, BUDGET + 10)
        self.leaves_nobody(mark)
        return bundle, sign, process.returncode, text

    def leaves_nobody(self, mark):
        deadline = time.monotonic() + 5
        while is_running(mark) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertFalse(is_running(mark), "a program has outlived what started it")

    def test_ended_from_outside_at_ten_random_moments_all_that_had_ended_is_there(self):
        seed = int(os.environ.get("MINDPIPE_SEED", random.SystemRandom().randrange(10**6)))
        print("MINDPIPE_SEED=%d draws these moments again" % seed, flush=True)
        draw = random.Random(seed)
        before = [turn % len(ALL) for turn in range(10)]  # each part is interrupted twice
        draw.shuffle(before)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            runs = list(pool.map(self.ended_from_outside, range(10), before,
                                 [random.Random(draw.random()) for _ in before]))
        self.assertEqual(sum(had > 0 for had in before), 8)
        for (bundle, sign, code, text), had in zip(runs, before):
            report = bundle.report()
            names = [part["name"] for part in report["parts"] if part["outcome"] == "passed"]
            told = [line.split()[0] for line in text.splitlines() if re.match(r"\S+ +passed +\d", line)]
            self.assertEqual(names, ALL[:had], text)
            self.assertLessEqual(set(told), set(names))
            self.assertLessEqual(set(os.listdir(bundle.output)) - {".gpu-check.json"}, FILES)
            if sign == signal.SIGKILL:
                self.assertEqual((code, report["verdict"], report["code"]), (-signal.SIGKILL, "not ended", None))
                self.assertIn(report["running"], [None, ALL[had]])
            elif code != -signal.SIGTERM:  # it came before anybody listened
                self.assertEqual((code, report["code"], report["running"]), (1, 1, None), text)
                self.assertIn("WRONG" if len(report["parts"]) > had else "ended early", report["verdict"])

    def test_ended_while_it_starts_it_has_ended_early(self):
        bundle = Bundle(self.folder, {"mindpipe-train": "exec sleep 30"})
        process = bundle.start("--only", "doctor")
        while bundle.ended() < 0:
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        text, _ = process.communicate(timeout=20)
        if process.returncode != -signal.SIGTERM:  # it came before anybody listened
            report = bundle.report()
            self.assertEqual((process.returncode, report["code"], report["running"]), (1, 1, None), text)
            self.assertIn("WRONG" if report["parts"] else "ended early", report["verdict"])

    def interrupted(self, part, draw):
        """Ends a check from outside in this part, behind two others that had been drawn: what it leaves."""
        names = [one.name for one in PARTS]
        before = sorted(draw.sample(names[1:names.index(part)], min(2, names.index(part) - 1)) if part != "doctor" else [],
                        key=names.index)
        if part == "tune" and "gpt2-124m" not in before:
            before[0] = "gpt2-124m"
        bundle, mark = Bundle(os.path.join(self.folder, part), {}), "31.%d" % draw.randrange(10**9)
        deaf = "trap '' TERM; " if draw.random() < 0.5 else ""
        line = ANY % {"part": part, "report": os.path.join(bundle.output, "gpu-check.json"), "hang": "%sexec sleep %s" % (deaf, mark),
                      "doctor": DOCTOR, "passes": PASSES}
        for program in (*PROGRAMS, "mpirun", "test_runtime_mpi", "kernels_bench", "compute-sanitizer", "nvidia-smi", "python3"):
            bundle.add(program, line)
        begun = time.monotonic()
        process = bundle.start("--minutes", "2", "--python", os.path.join(bundle.folder, "bin", "python3"), "--only",
                               ",".join([*before, part]))
        while not is_running(mark):
            if process.poll() is not None:
                self.fail("%s has ended by itself: %s" % (part, process.communicate()[0]))
            self.assertLess(time.monotonic() - begun, 60)
            time.sleep(0.02)
        time.sleep(draw.uniform(0, 0.3))
        sign = draw.choice((signal.SIGKILL, signal.SIGTERM))
        process.send_signal(sign)
        text, _ = process.communicate(timeout=20)
        self.leaves_nobody(mark)
        return part, before, bundle, sign, process.returncode, text

    def test_ended_from_outside_in_each_part_those_before_it_are_there(self):
        draw = random.Random(48)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            runs = list(pool.map(self.interrupted, [part.name for part in PARTS], [random.Random(draw.random()) for _ in PARTS]))
        for part, before, bundle, sign, code, text in runs:
            report = bundle.report()
            ended = [one["name"] for one in report["parts"]]
            expected = ([] if part == "doctor" else ["doctor"]) + before
            self.assertLessEqual(set(os.listdir(bundle.output)) - {".gpu-check.json"}, FILES)
            if sign == signal.SIGKILL:
                self.assertEqual((ended, report["running"], report["code"]), (expected, part, None), text)
            else:
                self.assertEqual((ended, report["running"], report["code"], code), ([*expected, part], None, 1, 1), text)
                self.assertIn("ended from outside by SIGTERM", report["parts"][-1]["why"])
            self.assertTrue(all(one["outcome"] in ("passed", "failed", "not run") for one in report["parts"]), report["parts"])

    def packed_bundle(self):
        """A bundle as it travels: programs and libraries lie in packed.tar.xz."""
        bundle = Bundle(self.folder, {"mindpipe-train": "echo '%s'" % DOCTOR})
        draw = random.Random(48)
        for number in range(40):
            with open(os.path.join(self.folder, "lib", "lib%d.so" % number), "wb") as file:
                file.write(draw.randbytes(200_000))
        with tarfile.open(os.path.join(self.folder, "packed.tar.xz"), "w:xz", preset=0) as packed:
            for folder in ("bin", "lib"):
                packed.add(os.path.join(self.folder, folder), folder)
        whole = self.unpacked()
        for folder in ("bin", "lib"):
            shutil.rmtree(os.path.join(self.folder, folder))
        shutil.copy(os.path.join(SCRIPTS, "gpu_check", "gpu-check.sh"), self.folder)
        return bundle, whole

    def unpacked(self):
        """Sizes of all that lies in bin and lib."""
        return {
            os.path.relpath(path, self.folder): os.path.getsize(path)
            for folder in ("bin", "lib") for path in glob.glob(os.path.join(self.folder, folder, "*"))
        }

    def test_killed_while_it_unpacks_it_unpacks_the_whole_when_it_is_started_again(self):
        _, whole = self.packed_bundle()
        draw, command, halves = random.Random(48), [os.path.join(self.folder, "gpu-check.sh"), "--list"], 0
        environment = dict(os.environ, PYTHON=sys.executable, PYTHONDONTWRITEBYTECODE="1")
        for number in range(10):
            process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
            fresh = os.path.join(self.folder, "unpacking.*", "lib", "lib%d.so" % draw.randrange(40))
            while process.poll() is None and not glob.glob(fresh):
                time.sleep(0.001)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL if number % 2 else signal.SIGTERM)
            process.wait(20)
            if os.path.exists(os.path.join(self.folder, "lib")):
                self.assertEqual(self.unpacked(), whole, "a part of it is taken for the whole")
                for folder in ("bin", "lib"):
                    shutil.rmtree(os.path.join(self.folder, folder))
            else:
                halves += 1
        self.assertGreater(halves, 4)
        text = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=60).stdout
        self.assertIn("racecheck", text)
        self.assertEqual(self.unpacked(), whole)
        self.assertEqual(glob.glob(os.path.join(self.folder, "unpacking.*")), [])


if __name__ == "__main__":
    shares.main()
