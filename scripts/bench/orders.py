"""The order of the samples of 50 million documents: a job of one step on four ranks, with the order's file and
without."""
import json
import os
import shutil
import struct
import subprocess
import tempfile
import time

from running import ROOT, fail

DOCUMENTS, LENGTH, RANKS = 50_000_000, 100, 4


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


def seconds_of_one_step(program, run, source):
    """Seconds that a job takes which trains one step."""
    command = ["mpirun", "-n", str(RANKS), "--oversubscribe", "--allow-run-as-root", program, "--config",
               os.path.join(ROOT, "configs/gpt-tiny.yaml"), "run.dir=" + run, "data.train=[%s]" % source,
               "data.validation=[]", "train.evaluate_every=0", "train.steps=1", "grid.data=2", "grid.pipeline=2",
               "device.threads=1", "run.resume=never"]
    start = time.time()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        fail("the training on %s failed:\n%s" % (source, done.stdout))
    return time.time() - start


def orders(program, runs):
    """Makes the pair, trains one step twice, and one step on a small text; a dictionary of seconds."""
    with tempfile.TemporaryDirectory(prefix="mindpipe-orders-", dir=runs) as folder:
        prefix = folder + "/pair"
        write_sparse_pair(prefix, DOCUMENTS, LENGTH)
        found = {"documents": DOCUMENTS, "ranks": RANKS}
        for name, run, source in (("plain", "plain", os.path.join(ROOT, "data/alice.txt")), ("made", "large", prefix),
                                  ("from_file", "large", prefix)):
            found[name + "_s"] = seconds_of_one_step(program, folder + "/" + run, source)
            if run == "large":
                for left in ("checkpoints", "metrics.jsonl", "status.json"):
                    path = folder + "/large/" + left
                    shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
        found["order_bytes"] = sum(os.path.getsize(folder + "/large/orders/" + name)
                                   for name in os.listdir(folder + "/large/orders"))
        print("an order of 50 million documents, a job of one step on %d ranks: %.1f s where it makes the order, %.1f s from "
              "its file, %.1f s on a small text; one file of %.2f GB" %
              (RANKS, found["made_s"], found["from_file_s"], found["plain_s"], found["order_bytes"] / 1e9))
        return found


if __name__ == "__main__":
    print(json.dumps(orders(os.path.join(ROOT, "build/mindpipe-train"), None)))
