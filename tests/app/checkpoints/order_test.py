"""In which order a save writes: nothing gets its name before the device has what it names, and no older
checkpoint is written to."""
import re
import shutil
import subprocess

from the_run import Runs, main

CALLS = ("openat,pwrite64,write,fsync,fdatasync,rename,renameat,renameat2,symlink,symlinkat,"
         "ftruncate,fallocate")
NAMES = {"pwrite64": "pwrite", "renameat": "rename", "renameat2": "rename", "symlinkat": "symlink"}
LINE = re.compile(r"^(?P<process>\d+) +(?P<call>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+|\?)")


def can_trace():
    return shutil.which("strace") and subprocess.run(["strace", "-e", "trace=none", "true"],
                                                     capture_output=True).returncode == 0


def traced(file):
    """(process, call, path) of what strace has seen below checkpoints; of a rename both paths."""
    for line in file.read_text(errors="replace").splitlines():
        found = LINE.match(line)
        if not found or "checkpoints" not in line or int(found["result"].replace("?", "0")) < 0:
            continue
        call = NAMES.get(found["call"], found["call"])
        if call == "openat":
            if "O_CREAT" in line:
                yield found["process"], "open", found["arguments"].split('"')[1]
        elif call in ("rename", "symlink"):
            yield found["process"], call, " ".join(found["arguments"].split('"')[1::2])
        else:
            yield found["process"], call, found["arguments"].split("<")[1].split(">")[0]


def logged(file):
    for line in file.read_text().splitlines():
        rank, call, path = line.split(" ", 2)
        yield rank, call, path


class Order(Runs):
    def seen_by_strace(self, settings, ranks):
        command = [
            "strace", "-f", "-qq", "-y", "-s", "0", "-e", "trace=" + CALLS, "-e", "signal=none", "-o",
            str(self.root / "trace")
        ]
        answer = self.call(command + self.command("run", settings, ranks), limit=100)
        self.assertEqual(answer.code, 0, answer)
        return self.in_one_piece(self.root / "trace")

    def noted(self, settings, ranks):
        self.trained("run", settings, ranks, log=self.root / "calls")
        return list(logged(self.root / "calls"))

    def in_one_piece(self, file):
        """Joins calls that strace shows as `unfinished` and `resumed`: what counts is when one has ended."""
        begun, lines = {}, []
        for line in file.read_text(errors="replace").splitlines():
            process, _, rest = line.partition(" ")
            if rest.endswith("<unfinished ...>"):
                begun[process] = rest[:-len("<unfinished ...>")].strip()
            elif "resumed>" in rest:
                lines.append(f"{process} {begun.pop(process, '')}{rest.split('resumed>', 1)[1]}")
            else:
                lines.append(line)
        file.write_text("\n".join(lines))
        return list(traced(file))

    def first(self, found, what):
        self.assertTrue(found, what)
        return found[0]

    def expect_order(self, events, ranks):
        for step in (2, 4):
            hidden, name = f"/.step-{step:08}.partial", f"/step-{step:08}"

            def at(call, part, behind=-1):
                return [
                    i for i, event in enumerate(events)
                    if i > behind and event[1] == call and part in event[2]
                ]

            def ends(call, ending, behind=-1):
                return [i for i in at(call, ending, behind) if events[i][2].endswith(ending)]

            data, flushed = at("pwrite", hidden + "/state.h5"), at("fsync", hidden + "/state.h5")
            self.assertEqual(len({events[i][0] for i in data}), ranks, "each rank writes its part")
            for i in data:
                self.assertTrue([j for j in flushed if j > i and events[j][0] == events[i][0]],
                                "a write behind its rank's last fsync")
            named = self.first(ends("rename", "checkpoints" + name), "a checkpoint gets its name")
            parent = self.first(ends("fsync", "/checkpoints", named),
                                "fsync of the directory behind the checkpoint's name")
            link = self.first(at("symlink", ".step-latest", parent), "a link behind that")
            latest = self.first(ends("rename", "/latest", link), "the link gets its name")
            manifest = at("write", hidden + "/manifest.json"), at("fsync", hidden + "/manifest.json"), ends(
                "rename", hidden + "/manifest.json")
            order = [
                max(data),
                max(flushed), *(part[0] for part in manifest),
                max(ends("fsync", hidden)), named, parent, link, latest
            ]
            self.assertEqual(
                order, sorted(order),
                "data, its fsync, manifest, its fsync, its name, fsync of the directory, the checkpoint's "
                "name, fsync of its parent, link, the link's name")
            self.assertGreater(min(at("write", hidden + "/manifest.json")), max(flushed),
                               "no manifest before all ranks' fsync")
        changes = ("pwrite", "write", "ftruncate", "fallocate", "open")
        self.assertEqual([event for event in events if event[1] in changes and "/step-" in event[2]], [],
                         "an older one is written to")

    def test_as_the_system_sees_it(self):
        if not can_trace():
            self.skipTest("strace is not there, or may not trace")
        # In the background a rank's threads are others to strace.
        self.expect_order(self.seen_by_strace("grid.data=2 train.steps=4 checkpoint.background=no", 2), 2)

    def test_the_lines_of_its_steps_come_before_a_checkpoint(self):
        self.trained("run", log=self.root / "calls", on="/run/")
        calls = [(call, path.split("/run/")[-1]) for _, call, path in logged(self.root / "calls")]
        for step in (2, 4):
            named = calls.index(("rename", f"checkpoints/step-{step:08}"))
            lines = [i for i, event in enumerate(calls) if event == ("write", "metrics.jsonl")][step - 1]
            self.assertIn(("fsync", "metrics.jsonl"), calls[lines:named])

    def test_in_the_background_on_two_ranks_too(self):
        self.expect_order(self.noted("grid.data=2 train.steps=4", 2), 2)


if __name__ == "__main__":
    main()
