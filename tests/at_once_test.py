"""Each test of a file is run once, whatever the number of processes, and a failure of one is a failure of all."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parent
FILE = """import os, sys, unittest
sys.path.append(%r)
import shares
class Made(unittest.TestCase):
    def run_once(self):
        os.mkdir(self.id())
        self.assertNotEqual(self.id(), os.environ.get("FAILS"))
for number in range(4):
    setattr(Made, "test_%%d" %% number, lambda self: self.run_once())
shares.main()
""" % str(TESTS)


class AtOnce(unittest.TestCase):
    def run_made(self, count, fails=""):
        """Exit code, names of the tests that were run, and what was said."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "made_test.py")
            file.write_text(FILE)
            done = subprocess.run([str(TESTS / "at_once.sh"), str(count), sys.executable, "-B", str(file)], cwd=folder,
                                  env=dict(os.environ, FAILS=fails), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            return done.returncode, sorted(path.name for path in pathlib.Path(folder).iterdir() if path.is_dir()), done.stdout

    def test_each_test_is_run_once(self):
        for count in (2, 4):
            code, ran, said = self.run_made(count)
            self.assertEqual((code, ran), (0, ["__main__.Made.test_%d" % number for number in range(4)]), said)
            self.assertEqual(said.count(" ... ok"), 4, said)

    def test_one_failure_is_the_failure_of_all(self):
        for number in (0, 3):
            code, ran, said = self.run_made(2, "__main__.Made.test_%d" % number)
            self.assertEqual((code, len(ran)), (1, 4), said)

    def test_more_processes_than_tests_are_refused(self):
        code, _, said = self.run_made(5)
        self.assertNotEqual(code, 0)
        self.assertIn("5 shares of 4 tests", said)


if __name__ == "__main__":
    unittest.main()
