"""The files that gpu-check leaves: gpu-check.json, which is whole at every moment, and all logs in one."""
import gzip
import json
import math
import os
import sys


def finite(figures):
    """The same without numbers that JSON has no words for: a loss may be none."""
    if isinstance(figures, dict):
        return {name: finite(figure) for name, figure in figures.items()}
    if isinstance(figures, (list, tuple)):
        return [finite(figure) for figure in figures]
    return None if isinstance(figures, float) and not math.isfinite(figures) else figures


class Report:
    """Grows with every part. Two files are left, and a third where `describe` was called."""

    def __init__(self, folder, head):
        self.folder, self.whole = folder, dict(head, parts=[], running=None, verdict="not ended", code=None)
        os.makedirs(folder, exist_ok=True)
        for name in (self.path("logs.txt.gz"), self.path("gpu.json")):
            if os.path.exists(name):
                os.remove(name)
        self.write()

    def path(self, name):
        return os.path.join(self.folder, name)

    def say(self, line):
        """A line for whoever looks on; that nobody does any more stops nothing."""
        try:
            print(line, flush=True)
        except OSError:
            sys.stdout = open(os.devnull, "w")

    def write(self):
        """Puts a whole new file in the old one's place. A disk that is full stops no part."""
        fresh = self.path(".gpu-check.json")
        try:
            with open(fresh, "w") as file:
                json.dump(finite(self.whole), file, indent=1, allow_nan=False)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self.path("gpu-check.json"))
        except OSError as error:
            self.say("gpu-check.json cannot be written: %s" % error)

    def begins(self, name):
        self.whole["running"] = name
        self.write()

    def add(self, result, more):
        """A part has ended; `more` is what all parts together have measured so far."""
        self.whole["parts"].append(result)
        self.whole.update(more, running=None)
        self.write()

    def learn(self, **more):
        self.whole.update(more, running=None)
        self.write()

    def keep_logs(self, part, folder):
        """Moves the logs of a part behind those that are packed already."""
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".log"):
                continue
            log = os.path.join(folder, name)
            try:
                with open(log, "rb") as file, gzip.open(self.path("logs.txt.gz"), "ab") as packed:
                    packed.write(("===== %s: %s\n" % (part, name)).encode() + file.read() + b"\n")
                os.remove(log)
            except OSError as error:
                self.say("the log of %s cannot be kept: %s" % (part, error))

    def describe(self, text):
        """Keeps the device's description, for data/devices."""
        try:
            with open(self.path("gpu.json"), "w") as file:
                file.write(text)
        except OSError as error:
            self.say("gpu.json cannot be written: %s" % error)
