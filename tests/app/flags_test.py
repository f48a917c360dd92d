# thorough
# What the name of the arithmetic says of the compiler's flags is what files were compiled with.
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE, BUILD, FLUSHES_DENORMALS = (pathlib.Path(argument) for argument in sys.argv[1:5])


def flags_of(words):
    """What tells the compiler how to compute; of several levels of optimisation the last one counts."""
    flags = {word for word in words if re.match(r"-(m|f|O|D_|std)", word) and not word.startswith("-fopenmp")}
    levels = [word for word in words if re.match(r"-O", word)]
    flags -= set(levels[:-1]) - set(levels[-1:])
    return {flag for flag in flags if not flag.startswith(("-std", "-D"))}


def named():
    """The flags of each floor and instruction set, as the program says them."""
    config = SOURCE / "configs/gpt-tiny.yaml"
    text = subprocess.run([PROGRAM, "arithmetic", "--config", config], cwd=SOURCE, check=True, text=True,
                          capture_output=True).stdout
    flags = {}
    for line in text.splitlines():
        if line.startswith("flags of "):
            targets, words = line[len("flags of "):].split(": ", 1)
            for target in targets.split(", "):
                flags[target] = words.split()
    return flags


class Flags(unittest.TestCase):
    def test_are_those_of_every_command(self):
        flags, seen = named(), set()
        for entry in json.loads((BUILD / "compile_commands.json").read_text()):
            target = re.search(r" -o CMakeFiles/mindpipe_([a-z0-9_]+)\.dir/", entry["command"])
            if not target or target[1] == "commit" or " -x cu" in entry["command"]:
                continue
            seen.add(target[1])
            self.assertIn(target[1], flags, "a floor whose flags nobody names")
            if "cudnn_planner" in entry["file"]:
                continue  # plans, and computes nothing
            self.assertEqual(flags_of(entry["command"].split()), flags_of(flags[target[1]]), entry["file"])
        self.assertLessEqual(set(flags), seen)
        self.assertIn("simd_avx512", seen)

    def test_others_change_it(self):
        with tempfile.TemporaryDirectory() as folder:
            def header(flags="", kind="Release", sanitize="OFF"):
                """What the build generates; one folder for all, which knows its compiler and libraries already."""
                subprocess.run(["cmake", "-G", "Ninja", "-S", SOURCE, "-B", folder, "-DMINDPIPE_TESTS=OFF",
                                "-DMINDPIPE_CUDA=OFF", f"-DCMAKE_CXX_FLAGS={flags}", f"-DCMAKE_BUILD_TYPE={kind}",
                                f"-DMINDPIPE_SANITIZE={sanitize}"], check=True, capture_output=True)
                return (pathlib.Path(folder) / "generated/app/run/flags_CXX.h").read_text()

            plain = header()
            for other in ({"flags": "-fno-tree-vectorize"}, {"kind": "Debug"}, {"sanitize": "ON"}):
                self.assertFalse(header(**other) == plain, other)
            self.assertEqual(header(), plain)

    def test_of_a_library_that_is_loaded_change_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            def weights(name, **environment):
                """Rows of tokens that no text has are 0 / (0 + epsilon) from where they were, which is NaN for an
                epsilon that counts as zero."""
                run = pathlib.Path(folder) / name
                subprocess.run([PROGRAM, "--config", SOURCE / "configs/gpt-tiny.yaml", f"run.dir={run}", "train.steps=2",
                                "train.evaluate_every=0", "model.layers=1", "model.width=32", "model.tied=false",
                                "optimizer.epsilon=1e-39"], cwd=SOURCE, check=True, capture_output=True,
                               env={**os.environ, **environment})
                return (run / "model.safetensors").read_bytes()

            self.assertTrue(weights("plain") == weights("beside", LD_PRELOAD=str(FLUSHES_DENORMALS)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
