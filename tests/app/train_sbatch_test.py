"""scripts/slurm/train.sbatch without a Slurm: srun and scontrol are scripts of this test, the configuration is read by the real program."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = sys.argv.pop(1)


class TrainSbatch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mindpipe_sbatch_")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "chain.yaml").write_text(f"model: {{kind: gpt}}\ndata: {{train: [{SOURCE}/data/alice.txt]}}\n")
        self.script("srun", "exit 75")
        self.script("scontrol", f'echo "$@" >>{self.root}/requeued')
        self.chain = self.root / ".mindpipe-requeues-7"

    def script(self, name, text):
        (self.root / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.root / name).chmod(0o755)

    def job(self, directory="run", code=75, is_seen=True, reason="stopped after step 12 as asked", **variables):
        """Whether a job requeues itself whose run has stopped after step 12, and all it says. `is_seen`: where the job runs."""
        run = self.root / directory
        run.mkdir(exist_ok=True)
        if is_seen:
            (run / "status.json").write_text(f'{{"state": "stopped", "step": 12, "reason": "{reason}", "checkpoint": ""}}\n')
        environment = {**os.environ, "PATH": f"{self.root}:{os.environ['PATH']}", "SLURM_JOB_ID": "7", "MINDPIPE_TRAIN": PROGRAM,
                       **variables}
        answer = subprocess.run(["bash", SOURCE / "scripts/slurm/train.sbatch", "chain.yaml", f"run.dir={run}"], cwd=self.root,
                                env=environment, capture_output=True, text=True, timeout=30)
        self.assertEqual(answer.returncode, code, answer)
        requeued = (self.root / "requeued").exists()
        if requeued:
            self.assertEqual((self.root / "requeued").read_text(), f"requeue {self.chain.name.removeprefix('.mindpipe-requeues-')}\n")
        (self.root / "requeued").unlink(missing_ok=True)
        self.assertEqual(self.chain.exists(), requeued, answer)
        return requeued, answer.stderr

    def test_a_job_requeues_itself_until_it_may_not_or_takes_no_step(self):
        self.assertTrue(self.job()[0])
        self.assertEqual(self.chain.read_text(), "1 12\n")
        self.assertIn("after step 12 again", self.job()[1])
        for most in ("8", "08", "0"):
            self.chain.write_text(f"{int(most)} 3\n")
            requeued, said = self.job(MINDPIPE_REQUEUES=most)
            self.assertFalse(requeued)
            self.assertIn(f"the job has requeued itself {int(most)} times (MINDPIPE_REQUEUES)", said)
        self.chain.write_text("8 3\n")
        self.assertTrue(self.job(MINDPIPE_REQUEUES="09")[0])

    def test_a_stop_that_was_meant_ends_the_chain(self):
        for reason in ("stopped after step 12 as asked by the file STOP", "stopped after step 12, run.stop_after"):
            requeued, said = self.job(reason=reason)
            self.assertFalse(requeued)
            self.assertIn("has stopped after step 12, as a file STOP or run.stop_after says", said)

    def test_a_task_of_an_array_requeues_itself_alone(self):
        self.chain = self.root / ".mindpipe-requeues-7_2"
        self.assertTrue(self.job(SLURM_ARRAY_JOB_ID="7", SLURM_ARRAY_TASK_ID="2")[0])

    def test_a_job_that_does_not_see_its_run_again_is_refused(self):
        self.chain.write_text("1 12\n")
        self.assertIn("though this job has stopped there before", self.job(code=78, is_seen=False)[1])
        self.assertIn("this job has begun before", self.job(code=78, is_seen=False, SLURM_RESTART_COUNT="1")[1])

    def test_restarts_count_where_nothing_is_known_of_the_times_before(self):
        self.assertIn("has requeued itself 20 times", self.job(SLURM_RESTART_COUNT="20")[1])
        self.chain.write_text("3 9\n")
        self.assertTrue(self.job(SLURM_RESTART_COUNT="20")[0])
        self.chain.write_text("0 -1\n")  # a node failed before the run had begun
        self.assertIn("does not say where", self.job("other", is_seen=False, SLURM_RESTART_COUNT="1")[1])

    def test_a_run_is_found_whatever_its_directory_is_called(self):
        for name in ('with "quotes"', "with\ta tab", "back\\slash\\", 'both \\" of them', "it's"):
            with self.subTest(name):
                self.chain.unlink(missing_ok=True)
                requeued, said = self.job(name)
                self.assertTrue(requeued, said)

    def test_a_chain_that_cannot_be_read_ends(self):
        for text in ("how often?\n", "", "1\n", "1 2 3\n", "99999999999999999999 1\n", "08 3\n"):
            with self.subTest(text):
                self.chain.write_text(text)
                requeued, said = self.job()
                self.assertFalse(requeued)
                self.assertIn("does not hold two numbers", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
