# thorough
# 2 at a time
"""Disks that are full, fail, interrupt or take only a part: no run hangs, a sentence says what is needed,
older checkpoints stand."""
import errno
import os
import pathlib
import re
import subprocess
import tempfile
import time

from the_run import ALL, STEPS, Runs, main

SAVE = "step-00000006"  # the third save, of four
ROOM = (r"\(a checkpoint takes [0-9.]+ KiB, and [0-9.]+ (B|[KMGT]iB) are free\); "
        r"the checkpoint was not made, older ones stand")
QUICK = 30  # seconds that no run here needs


class Disks(Runs):

    def setUp(self):
        super().setUp()
        self.trained("whole", log=self.root / "log")

    def older_stand(self, run):
        for step in (2, 4):
            self.assertEqual(self.sha(run, step), self.sha("whole", step))

    def complaint(self, text, path, why):
        self.assertRegex(text, re.escape(str(path)) + r"[^\n]*: [^\n]*" + re.escape(why) + r"[^\n]*" + ROOM)

    def try_fault(self, faults, error, settings="", ranks=1, rank="", whole="whole"):
        """With `warn` the run ends well without that checkpoint; with `stop` it ends with 74."""
        with self.subTest(faults=faults, settings=settings, rank=rank):
            run = re.sub(r"\W", "-", faults + settings + str(rank))
            answer = self.train(run,
                                settings + " checkpoint.on_error=warn",
                                ranks,
                                QUICK,
                                faults=faults,
                                on=SAVE,
                                rank=rank)
            self.assertEqual(answer.code, 0, answer)
            self.complaint(answer.text, self.root / run / "checkpoints",
                           os.strerror(error) if error else "other bytes came back")
            self.assertEqual(self.steps(run), [2, 4, STEPS])
            self.older_stand(run)
            self.assertEqual(self.sha(run), self.sha(whole))

    def test_a_call_that_fails_costs_one_checkpoint_and_nothing_else(self):
        lines = [line for line in (self.root / "log").read_text().splitlines() if SAVE + ".partial" in line]
        calls = [line.split()[1] for line in lines]
        # What waits for the directory behind each of its files does so once more before it gets its name.
        again = [
            i + 1 for i, line in enumerate(lines)
            if line.endswith(f"fsync {self.checkpoint('whole', 6).parent}/.{SAVE}.partial")
        ][:-1]
        # what follows has a new name
        named = next(i for i, line in enumerate(reversed(calls)) if line == "rename")
        first = [calls.index(call) + 1 for call in dict.fromkeys(calls)]
        writes = [i + 1 for i, call in enumerate(calls) if call == "pwrite"]
        # The file's own structure is written in the first calls, which HDF5 would let pass without a word.
        points = sorted({*first, writes[2], writes[20], writes[60], writes[-1],
                         len(calls) - named - 1} if not ALL else set(range(1,
                                                                           len(calls) - named)))
        for point in points:
            if point in again:
                continue
            for settings in ("checkpoint.background=no", "checkpoint.background=auto") if ALL else ("", ):
                self.try_fault(f"any:{errno.EIO}:{point}:1", errno.EIO, settings)

    def test_a_device_that_takes_nothing_more(self):
        for first, settings in ((1, ""), (30, "checkpoint.background=no"), (70, "")):
            self.try_fault(f"pwrite,write,fallocate:{errno.ENOSPC}:{first}:100000", errno.ENOSPC, settings)

    def test_bytes_that_come_back_otherwise(self):
        self.try_fault("pwrite:flip:70:1", 0)

    def test_one_rank_of_two_cannot_write(self):
        self.trained("two", "grid.data=2", 2)
        self.assertEqual(self.sha("two"), self.sha("whole"))
        for rank in (0, 1):
            self.try_fault(f"pwrite:{errno.EIO}:1:100000", errno.EIO, "grid.data=2", 2, rank)
        self.try_fault(f"fsync:{errno.EIO}:1:1", errno.EIO, "grid.data=2 checkpoint.background=no", 2, 1)

    def test_one_rank_of_two_cannot_write_through_mpi_io(self):
        # Rank 0 writes the file's own structure before, in some fifty calls.
        for number, (fault, rank) in enumerate(
            (("pwrite:{}:1:100000", 1), ("open:{}:1:100000", 1), ("pwrite:{}:60:100000", 0))):
            run, settings = f"mpiio-{number}", "grid.data=2 checkpoint.writer=mpiio checkpoint.on_error=warn"
            # OpenMPI opens files in ways of its own; what the program opens fails before.
            answer = self.train(run, settings, 2, QUICK, faults=fault.format(errno.EIO), on=SAVE, rank=rank)
            self.assertEqual(answer.code, 0, answer)
            self.assertRegex(answer.text, "MPI-IO cannot [^\n]+ " + ROOM)
            self.assertEqual(self.steps(run), [2, 4, STEPS])
            self.older_stand(run)

    def test_with_stop_the_run_ends_with_74_and_goes_on_from_the_older_one(self):
        for number, (faults, settings) in enumerate(
            ((f"pwrite:{errno.EIO}:10:1", ""), (f"pwrite:{errno.ENOSPC}:80:100", ""),
             (f"write:{errno.EDQUOT}:2:1", "checkpoint.background=no"))):
            with self.subTest(faults=faults):
                run = f"stopped-{number}"
                answer = self.train(run, settings, limit=QUICK, faults=faults, on=SAVE)
                self.assertEqual(answer.code, 74, answer)
                self.assertRegex(answer.text, ROOM + r" \(checkpoint\.on_error: warn would train on\)")
                self.assertEqual(self.steps(run), [2, 4])
                self.older_stand(run)
                self.assertEqual(self.status(run)["state"], "failed")
                self.trained(run, settings)
                self.assertEqual(self.sha(run), self.sha("whole"))
                self.assertEqual(self.losses(run), self.losses("whole"))

    def test_calls_that_are_interrupted_or_do_a_part_lose_nothing(self):
        again = errno.EINTR
        for number, faults in enumerate(
            (f"pwrite:{again}:2:40", f"pwrite,write,pread:{again}:60:30", f"fallocate:{again}:1:9",
             f"fsync:{again}:1:9", "pwrite,write,pread:short:1:100000")):
            with self.subTest(faults=faults):
                answer = self.trained(f"part-{number}", faults=faults, on=SAVE)
                self.assertNotIn("warning", answer.text)
                for step in (4, 6, STEPS):
                    self.assertEqual(self.sha(f"part-{number}", step), self.sha("whole", step))

    def test_writes_past_the_cache_are_tried_and_where_a_device_refuses_them_go_through_it(self):
        disk = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        try:
            os.close(os.open(disk / "direct", os.O_RDWR | os.O_CREAT | os.O_DIRECT))
        except OSError as error:
            self.skipTest(f"{disk} has no direct writes: {error}")
        for name, number, code in (("refused", errno.EINVAL, 0), ("failing", errno.EIO, 74)):
            answer = self.train(disk / name, faults=f"direct:{number}:1:1", on=SAVE)
            self.assertEqual(answer.code, code, f"a run whose first direct write meets {number}: {answer}")
        self.assertEqual(self.sha(disk / "refused"), self.sha("whole"))

    def test_a_checkpoint_that_has_its_name_but_not_its_link_is_not_left_half_made(self):
        answer = self.trained("linkless", "checkpoint.on_error=warn", faults=f"symlink:{errno.EIO}:1:1",
                              on=".step-latest")
        self.assertRegex(answer.text, "making a link failed: [^\n]*the checkpoint was not made")
        self.assertEqual(self.steps("linkless"), [4, 6, STEPS])

    def test_a_slow_disk_changes_nothing(self):
        self.trained("slow", faults="pwrite:sleep:1:60", on="step-0000000")
        self.assertEqual(self.losses("slow"), self.losses("whole"))
        self.assertEqual(self.steps("slow"), self.steps("whole"))
        for step in self.steps("slow"):
            self.assertEqual(self.sha("slow", step), self.sha("whole", step))

    def test_a_walltime_has_room_for_saves_that_are_slow(self):
        slow = {"faults": "write,pwrite:sleep:1:100000", "on": "checkpoints/"}  # a save takes 2.4 s
        for walltime, settings in ((9, "checkpoint.every_time=2s"), (5, "checkpoint.every_time=0")):  # the second knows how long one took
            with self.subTest(settings):
                begun = time.monotonic()
                answer = self.train("run", f"train.steps=200000 checkpoint.every=0 run.max_walltime={walltime}s " + settings, **slow)
                self.assertEqual(answer.code, 75, answer)
                self.assertLess(time.monotonic() - begun, walltime)
                self.verified("run")

    def test_a_save_that_came_to_nothing_is_not_waited_for_at_the_walltime(self):
        begun = time.monotonic()
        answer = self.train("run", "train.steps=200000 checkpoint.every=0 checkpoint.every_time=2s checkpoint.on_error=warn "
                            "run.max_walltime=6s", faults="fsync:5:1:100000", on="/.step-")
        self.assertEqual(answer.code, 75, answer)
        self.assertGreater(time.monotonic() - begun, 5)

    def test_a_limit_of_a_files_size(self):
        for policy, code in (("warn", 0), ("stop", 74)):
            limited = ["bash", "-c", 'ulimit -f 150; exec "$@"', "limited"]
            answer = self.call(limited + self.command(policy, f"checkpoint.on_error={policy}"), limit=QUICK)
            self.assertEqual(answer.code, code, answer)
            self.complaint(answer.text, self.root / policy / "checkpoints/.step-00000002.partial/state.h5",
                           os.strerror(errno.EFBIG))
            self.assertEqual(self.steps(policy), [])
            self.assertNotIn("*** ", answer.text, "a library that crashes at the end")

    def test_a_file_system_that_is_full(self):
        small = self.root / "small"
        small.mkdir()
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=800k", "none",
                                str(small)],
                               capture_output=True,
                               text=True)
        if mount.returncode != 0:
            self.skipTest("no file system can be mounted here: " + mount.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", str(small)], check=False)
        for policy, settings, code in (("warn", "", 0), ("stop", " checkpoint.background=no", 74)):
            answer = self.train("small/run", f"checkpoint.on_error={policy}{settings}", limit=QUICK)
            self.assertEqual(answer.code, code, answer)
            self.complaint(answer.text, small / "run/checkpoints/.step-00000006.partial/state.h5",
                           os.strerror(errno.ENOSPC))
            self.assertEqual(self.steps("small/run"), [2, 4])
            self.older_stand("small/run")
        subprocess.run(["mount", "-o", "remount,size=4m", str(small)], check=True)
        self.trained("small/run")
        self.assertEqual(self.sha("small/run"), self.sha("whole"))
        self.assertEqual(self.losses("small/run"), self.losses("whole"))


if __name__ == "__main__":
    main()
