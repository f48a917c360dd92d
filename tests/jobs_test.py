#!/usr/bin/env python3
"""scripts/jobs.sh compiles on all processors that the shell may use, and on as many as the memory of machine, job and container allows."""
import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "scripts/jobs.sh"
MIB = 1 << 20


def jobs(*arguments, processors=None, **environment):
    """What the script says, on so many of this process's processors."""
    allowed = sorted(os.sched_getaffinity(0))[:processors]
    done = subprocess.run([str(SCRIPT), *map(str, arguments)], env=dict(os.environ, **environment), capture_output=True, text=True,
                          check=True, preexec_fn=lambda: os.sched_setaffinity(0, allowed))
    return int(done.stdout)


class Jobs(unittest.TestCase):
    def machine(self, memory, groups="", **limits):
        """A folder with the proc and sys of a machine with so much memory (MiB) whose groups have these limits."""
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        root = pathlib.Path(made.name)
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/meminfo").write_text(f"MemTotal: {memory * 1024} kB\nMemFree: 7 kB\n")
        (root / "proc/self/cgroup").write_text(groups)
        for name, limit in limits.items():
            file = root / "sys/fs/cgroup" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{limit}\n")
        return root

    def setUp(self):
        self.all = len(os.sched_getaffinity(0))
        self.plenty = 1600 * self.all

    def test_all_processors_that_the_shell_may_use(self):
        self.assertEqual(jobs(self.machine(self.plenty)), self.all)
        self.assertEqual(jobs(self.machine(self.plenty), processors=1), 1)

    def test_what_programs_shall_use_is_not_what_compilers_may_use(self):
        for name, value in (("OMP_NUM_THREADS", "1"), ("OMP_NUM_THREADS", str(9 * self.all)), ("OMP_THREAD_LIMIT", "1")):
            self.assertEqual(jobs(self.machine(10 * self.plenty), **{name: value}), self.all)

    def test_memory_of_the_machine(self):
        self.assertEqual(jobs(self.machine(1600)), 1)
        self.assertEqual(jobs(self.machine(700)), 1)

    def test_memory_of_a_container(self):
        self.assertEqual(jobs(self.machine(self.plenty, "0::/\n", **{"memory.max": 1600 * MIB})), 1)
        self.assertEqual(jobs(self.machine(self.plenty, "0::/\n", **{"memory.max": "max"})), self.all)

    def test_memory_of_a_job_stands_above_its_steps(self):
        step = "slurm/job_1/step_0/memory.max"
        limits = {step: "max", "slurm/job_1/memory.max": 1600 * MIB, "slurm/memory.max": "max"}
        self.assertEqual(jobs(self.machine(self.plenty, "1:name=systemd:/\n0::/slurm/job_1/step_0\n", **limits)), 1)

    def test_memory_of_a_job_in_groups_of_the_first_kind(self):
        limits = {"memory/job_1/memory.limit_in_bytes": 1600 * MIB, "memory/memory.limit_in_bytes": 9223372036854771712}
        self.assertEqual(jobs(self.machine(self.plenty, "4:memory:/job_1\n0::/\n", **limits)), 1)
        limits["memory/job_1/memory.limit_in_bytes"] = self.plenty * MIB
        self.assertEqual(jobs(self.machine(self.plenty, "4:memory:/job_1\n0::/\n", **limits)), self.all)

    def test_a_system_without_proc(self):
        self.assertEqual(jobs(self.machine(self.plenty) / "nowhere"), self.all)


if __name__ == "__main__":
    unittest.main()
