# sample_orders_test.py PROGRAM FAULTS
# thorough
"""The order of the samples of a million documents, in the real program: one file a job and one copy in memory, found again, made anew
where it is damaged, and made once by two jobs that begin together."""
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/app/checkpoints"), str(ROOT / "scripts/bench")]
from orders import MemoryWatch, write_sparse_pair
from the_run import Runs, main

DOCUMENTS, LENGTH, RANKS = 1_000_000, 40, 4
GRID = " grid.data=2 grid.pipeline=1 grid.tensor=2"


class SampleOrders(Runs):
    def setUp(self):
        super().setUp()
        self.pair = self.root / "pair"
        write_sparse_pair(str(self.pair), DOCUMENTS, LENGTH)
        self.settings = f"data.train=[{self.pair}] train.evaluate_every=0 train.steps=2 checkpoint.every=0 run.resume=never" + GRID
        self.log = self.root / "calls"

    def start(self, run, ranks=RANKS, settings="", verb="train"):
        """A job that notes its calls on orders, and what it says."""
        if verb == "train":  # from its first step
            shutil.rmtree(self.root / run / "checkpoints", ignore_errors=True)
        said = open(self.root / f"{run}.{verb}.said", "w+")
        self.addCleanup(said.close)
        process = subprocess.Popen(self.command(run, settings or self.settings, ranks, verb),
                                   env=self.environment(on="orders/", log=self.log), stdin=subprocess.DEVNULL, stdout=said,
                                   stderr=subprocess.STDOUT, cwd=self.root)
        return process, said

    def ended(self, job):
        process, said = job
        code = process.wait(100)
        said.seek(0)
        text = said.read()
        self.assertEqual(code, 0, text)
        return text

    def files(self, run="run"):
        return sorted((self.root / run / "orders").glob("*"))

    def times_made(self):
        """How often an order has got its name since the last time that this was asked."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return sum(line.split()[1] == "rename" for line in lines)

    def one_file(self, run="run"):
        files = self.files(run)
        self.assertEqual([file.suffix for file in files], [".order"], files)
        return files[0]

    def test_four_ranks_make_one_file_and_hold_it_in_memory_once(self):
        settings = self.settings.replace("train.steps=2", "train.steps=400")  # time to look
        plain = self.start("plain", settings=settings.replace(str(self.pair), str(ROOT / "data/alice.txt")))
        watch = MemoryWatch(plain[0].pid, str(self.root / "plain/orders"))
        watch.start()
        self.ended(plain)
        watch.stop()
        self.assertGreater(watch.own, RANKS * 5_000_000, "no rank was seen")
        for begin in ("made", "found"):
            job = self.start("run", settings=settings)
            seen = MemoryWatch(job[0].pid, str(self.root / "run/orders"), watch.own)
            seen.start()
            self.ended(job)
            seen.stop()
            self.assertEqual(self.times_made(), 1 if begin == "made" else 0, begin)
            self.assertGreater(self.one_file().stat().st_size, 30_000_000)
            self.assertGreater(seen.mapped, 0.5 * seen.bytes, "the file was not seen in memory")
            self.assertLess(seen.copies, 2, f"{begin}: {seen.copies} copies; ranks with their own would have {RANKS}")

    def test_a_file_that_is_not_whole_is_made_anew_and_the_losses_stay(self):
        self.ended(self.start("run"))
        self.assertEqual(self.times_made(), 1)
        file, losses = self.one_file(), self.losses("run")
        whole = file.read_bytes()
        self.ended(self.start("other", settings="seed=5 " + self.settings))
        self.assertEqual(self.times_made(), 1)
        foreign = self.one_file("other")
        self.assertNotEqual(foreign.name, file.name)
        middle = len(whole) // 2
        for what, wrong, why in (("damaged", whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1:], "its numbers are damaged"),
                                 ("truncated", whole[:middle], "bytes (expected"),
                                 ("foreign", foreign.read_bytes(), "it is the order of other samples")):
            for ranks, settings in ((RANKS, self.settings), (1, self.settings.replace(GRID, ""))):
                file.write_bytes(wrong)
                (self.root / "run/metrics.jsonl").unlink()
                said = self.ended(self.start("run", ranks, settings))
                self.assertEqual((self.times_made(), self.one_file().read_bytes() == whole), (1, True), what)
                self.assertEqual(self.losses("run"), losses, what)
            self.assertIn(why, said)  # of several ranks one finds it, which may not be the one that writes the log
            self.assertIn("the order of samples is worked out anew", said)

    def test_without_room_for_a_file_every_rank_works_it_out_and_says_so(self):
        self.ended(self.start("run"))
        (self.root / "bare").mkdir()
        (self.root / "bare/orders").write_text("a file where the folder should be")
        said = self.ended(self.start("bare"))
        self.assertIn("every rank works it out in its own memory", said)
        self.assertEqual(self.losses("bare"), self.losses("run"))

    def test_two_jobs_that_begin_at_once_make_one(self):
        (self.root / "a/orders").mkdir(parents=True)
        (self.root / "b").mkdir()
        (self.root / "b/orders").symlink_to(self.root / "a/orders")
        settings = self.settings.replace("grid.tensor=2", "")
        for job in [self.start("a", 2, settings), self.start("b", 2, settings)]:
            self.ended(job)
        self.assertEqual(self.times_made(), 1)
        self.one_file("a")
        self.assertEqual(self.losses("a"), self.losses("b"))

    def test_two_evaluations_of_one_run_at_once_make_one(self):
        alice = str(ROOT / "data/alice.txt")
        self.trained("run", f"data.train={alice} train.steps=2 train.evaluate_every=0")
        settings = f"data.validation={self.pair} train.evaluate_batches=1 grid.data=2 train.steps=2"
        jobs = [self.start("run", 2, settings, "eval"), self.start("run", 2, settings, "eval")]
        for job in jobs:
            self.ended(job)
        self.assertEqual(self.times_made(), 1)
        self.one_file()


if __name__ == "__main__":
    main()
