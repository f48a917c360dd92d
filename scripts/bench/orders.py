"""The order of the samples of 50 million documents: a job of one step on four ranks, with the order's file and
without; how often a machine has it in memory."""
import glob
import json
import os
import shutil
import statistics
import struct
import subprocess
import tempfile
import threading
import time

from running import ROOT, fail

DOCUMENTS, LENGTH, RANKS, REPEATS = 50_000_000, 100, 4, 3


def write_sparse_pair(prefix, documents, length):
    """Documents of `length` tokens that are all 0: the .bin has no blocks on the disk."""
    with open(prefix + ".bin", "wb") as file:
        file.truncate(2 * length * documents)
    piece = 1_000_000
    with open(prefix + ".idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, documents, documents + 1))
        for begin in range(0, documents, piece):
            count = min(piece, documents - begin)
            file.write(struct.pack("<i", length) * count)
        for begin in range(0, documents, piece):
            count = min(piece, documents - begin)
            file.write(struct.pack("<%dq" % count, *range(2 * length * begin, 2 * length * (begin + count), 2 * length)))
        for begin in range(0, documents + 1, piece):
            count = min(piece, documents + 1 - begin)
            file.write(struct.pack("<%dq" % count, *range(begin, begin + count)))


class MemoryWatch(threading.Thread):
    """What a job's ranks have of an order in memory: `copies`, the most at once, as a part of the order's file. Counted are the pages
    of the file, a shared one once (Pss), and what processes have of their own (Anonymous) beyond the `own_usual` bytes of a job
    without an order."""

    def __init__(self, parent, folder, own_usual=0):
        super().__init__(daemon=True)
        self.parent, self.folder, self.own_usual = parent, folder, own_usual
        self.own, self.mapped, self.bytes, self.stopped = 0, 0, 0, threading.Event()

    @property
    def copies(self):
        more = max(0, self.own - self.own_usual) if self.own_usual else 0
        return (self.mapped + more) / self.bytes if self.bytes else float("nan")

    def run(self):
        while not self.stopped.wait(0.1):
            own = mapped = 0
            for process in processes_below(self.parent):
                of_rank = memory_of(process, self.folder)
                own, mapped = own + of_rank[0], mapped + of_rank[1]
            self.own, self.mapped = max(self.own, own), max(self.mapped, mapped)
            self.bytes = max([self.bytes] + [os.path.getsize(path) for path in glob.glob(self.folder + "/*.order")])

    def stop(self):
        self.stopped.set()
        self.join()


def processes_below(parent):
    """A process, what it has started, and what that has."""
    children = []
    for path in glob.glob("/proc/%d/task/*/children" % parent):
        try:
            with open(path) as file:
                children += file.read().split()
        except OSError:  # it has ended
            pass
    return [parent] + [process for child in children for process in processes_below(int(child))]


def memory_of(process, folder):
    """Bytes that a process has of its own, and its share of the mapped files of a folder."""
    own = mapped = 0
    is_of_folder = False
    try:
        with open("/proc/%d/smaps" % process) as file:
            for line in file:
                words = line.split()
                if not words[0].endswith(":"):
                    is_of_folder = len(words) > 5 and words[5].startswith(folder)
                elif words[0] == "Anonymous:":
                    own += int(words[1]) * 1024
                elif words[0] == "Pss:" and is_of_folder:
                    mapped += int(words[1]) * 1024
    except OSError:  # it has ended
        pass
    return own, mapped


def one_step(program, run, source, own_usual=0):
    """Seconds that a job takes which trains one step, and the watch of its memory."""
    command = ["mpirun", "-n", str(RANKS), "--oversubscribe", "--allow-run-as-root", program, "--config",
               os.path.join(ROOT, "configs/gpt-tiny.yaml"), "run.dir=" + run, "data.train=[%s]" % source,
               "data.validation=[]", "train.evaluate_every=0", "train.steps=1", "grid.data=2", "grid.pipeline=2",
               "device.threads=1", "run.resume=never"]
    start = time.time()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    watch = MemoryWatch(process.pid, run + "/orders", own_usual)
    watch.start()
    told = process.communicate()[0]
    seconds = time.time() - start
    watch.stop()
    if process.returncode:
        fail("the training on %s failed:\n%s" % (source, told))
    for left in ("checkpoints", "metrics.jsonl", "status.json"):
        path = os.path.join(run, left)
        shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
    return seconds, watch


def orders(program, runs):
    """Makes the pair and trains one step: on a small text, then with an order to make, then in turn with the order's file and on the
    small text; a dictionary of seconds."""
    with tempfile.TemporaryDirectory(prefix="mindpipe-orders-", dir=runs) as folder:
        prefix, small = folder + "/pair", os.path.join(ROOT, "data/alice.txt")
        write_sparse_pair(prefix, DOCUMENTS, LENGTH)
        _, plain = one_step(program, folder + "/plain", small)
        made, making = one_step(program, folder + "/large", prefix, plain.own)
        rounds = [(one_step(program, folder + "/large", prefix, plain.own), one_step(program, folder + "/plain", small))
                  for _ in range(REPEATS)]
        found = {
            "documents": DOCUMENTS, "ranks": RANKS, "made_s": made, "order_bytes": making.bytes,
            "from_file_s": statistics.median(large[0] for large, _ in rounds),
            "plain_s": statistics.median(small[0] for _, small in rounds),
            "more_than_plain_s": statistics.median(large[0] - small[0] for large, small in rounds),
            "copies": max([making.copies] + [large[1].copies for large, _ in rounds])
        }
        print("an order of 50 million documents, a job of one step on %d ranks: %.1f s where it makes the order, %.1f s from its file, "
              "%.1f s on a small text; one file of %.2f GB, %.2f times in memory" %
              (RANKS, made, found["from_file_s"], found["plain_s"], making.bytes / 1e9, found["copies"]), flush=True)
        return found


if __name__ == "__main__":
    import figures
    import verdicts
    measured = orders(os.path.join(ROOT, "build/mindpipe-train"), None)
    print("\n".join(verdicts.table(verdicts.judge_alone(figures.of_texts({"orders": measured})))))
    print(json.dumps(measured))
