# thorough
"""A manifest made by an attacker, its CRC right, and files that are none: refused with a sentence, and
nothing else is read."""
import os
import re
import shutil

import manifests
from order_test import can_trace
from the_run import PROGRAM, STEPS, Runs, main

MOST, TWICE = 2**63 - 1, 2**64


def tensor(content, number=0, **changed):
    content["tensors"][number].update(changed)


def said(sentence):
    """Any of the sentences between the bars."""
    return "|".join(map(re.escape, sentence.split("|")))


def forget(content, key):
    del content[key]


# What is changed, the exit code, and what the sentence says.
CASES = {
    "an offset beyond the file": (lambda c: tensor(c, offset=c["file"]["bytes"]), 80,
                                  "beyond the file's end"),
    "an end beyond the file": (lambda c: tensor(c, -1, offset=c["file"]["bytes"] - 4), 80,
                               "beyond the file's end"),
    "the largest offset": (lambda c: tensor(c, offset=MOST), 80, "beyond the file's end"),
    "an offset beyond all numbers": (lambda c: tensor(c, offset=TWICE - 8), 80,
                                     "number where a whole number was"),
    "a negative offset": (lambda c: tensor(c, offset=-4096), 80, "offset is -4096"),
    "an offset that is none": (lambda c: tensor(c, offset="0"), 80, "does not say what a manifest says"),
    "an offset with a fraction": (lambda c: tensor(c, offset=2735.5), 80,
                                  "does not say what a manifest says"),
    "tensors over each other": (lambda c: tensor(c, 1, offset=c["tensors"][0]["offset"] + 4), 80,
                                "lie over each other"),
    "a shape whose product is beyond all numbers": (lambda c: tensor(c, shape=[2**62, 2**62]), 80,
                                                    "do not follow from its shape"),
    "an extent of nothing": (lambda c: tensor(c, shape=[0, 32], bytes=0), 80, "do not follow from its shape"),
    "a shape of another size": (lambda c: tensor(c, shape=[256, 33]), 80, "do not follow from its shape"),
    "a shape of the same size": (lambda c: tensor(c, shape=[32, 256]), 78,
                                 "a checkpoint of another model: it has /model/"),
    "another name": (lambda c: tensor(c, path="/model/../../secret"), 78,
                     "a checkpoint of another model: it has /model/../../secret"),
    "a tensor less": (lambda c: c["tensors"].pop(), 78,
                      "it has nothing where this configuration has /optim/"),
    "other units": (lambda c: c["units"].pop(), 80, "its units are not those of this model"),
    "a smaller file": (lambda c: c["file"].update(bytes=c["file"]["bytes"] - 4096), 80,
                       "beyond the file's end|its manifest says"),
    "a larger file": (lambda c: c["file"].update(bytes=c["file"]["bytes"] + 1), 80, "its manifest says"),
    "the largest file": (lambda c: c["file"].update(bytes=MOST), 80,
                         "CRCs for a file of 9223372036854775807 bytes"),
    "no CRCs": (lambda c: c["file"].update(crc32c=[]), 80, "0 CRCs for a file"),
    "a CRC that is none": (lambda c: c["file"].update(crc32c=["0x00000z"]), 80, "eight hexadecimal digits"),
    "the file of somebody else": (lambda c: c["file"].update(name="../../secret"), 80,
                                  "a file of another name"),
    "other blocks": (lambda c: c["file"].update(block_bytes=1), 80, "other blocks"),
    "another dtype": (lambda c: tensor(c, dtype="f64"), 80, "a dtype that is not f32"),
    "a newer version": (lambda c: c.update(version=3), 78, "format version 3"),
    "another format": (lambda c: c.update(format="pickle"), 80, "no manifest of a checkpoint"),
    "another step": (lambda c: c.update(step=9), 80, "it stands in another's place"),
    "a step beyond all numbers": (lambda c: c.update(step=MOST), 80,
                                  "its step is 9223372036854775807 (at most"),
    "more steps that changed something than steps": (lambda c: c.update(applied_steps=MOST), 80,
                                                     "its applied_steps is 9223372036854775807 (at most 8)"),
    "a best step that is not yet": (lambda c: c.update(best_step=9), 80, "its best_step is 9 (at most 8)"),
    "an order of more samples than its run asks for": (lambda c: c.update(planned_samples=2**27), 78,
                                                       "the order of its data was planned for 134217728 samples"),
    "an order of more samples than any run has": (lambda c: c.update(planned_samples=2**40), 80,
                                                  "its planned_samples is"),
    "restarts without end": (lambda c: c.update(restarts=MOST), 80, "its restarts is"),
    "other arithmetic": (lambda c: c["settings"].update(seed="4"), 78, "seed is 3 (there 4)"),
    "logical shards that are none": (lambda c: c["settings"].update({"train.batch": "9" * 40}), 78,
                                     "train.batch is 4 (there 999"),
    "nothing of the grid": (lambda c: forget(c, "grid"), 80, "does not say what a manifest says"),
    "a list where members are": (lambda c: c.update(file=[]), 80, "does not say what a manifest says"),
}


class Manifests(Runs):
    def setUp(self):
        super().setUp()
        self.trained("run", "checkpoint.every=0")
        (self.root / "run/status.json").unlink()  # the run is not taken for finished
        self.newest = self.checkpoint("run", STEPS)
        self.kept = self.root / "kept"
        shutil.copytree(self.newest, self.kept)
        self.secret = self.root / "secret"
        shutil.copy(self.newest / "state.h5", self.secret)

    def restore(self):
        shutil.rmtree(self.newest.parent)
        shutil.copytree(self.kept, self.newest)

    def start(self, code, sentence, settings="train.steps=10"):
        """Starts the run, by strace where there is one: no byte of the secret is read."""
        command, trace = self.command("run", settings), self.root / "trace"
        if can_trace():
            command = [
                "strace", "-f", "-qq", "-y", "-s", "0", "-e", "trace=read,pread64,mmap", "-o",
                str(trace)
            ] + command
        answer = self.call(command, limit=30)
        self.assertEqual(answer.code, code, answer)
        self.assertNotIn("*** ", answer.text)
        self.assertRegex(answer.text, said(sentence))
        if trace.exists():
            self.assertIn("<", trace.read_text())
            self.assertNotIn(f"<{self.secret}>", trace.read_text(), "another file was read")

    def test_what_a_manifest_cannot_say_is_refused(self):
        for name, (change, code, sentence) in CASES.items():
            with self.subTest(name):
                content = manifests.read(self.kept)
                change(content)
                self.restore()
                manifests.write(self.newest, content)
                answer = self.train("run", "train.steps=10", limit=30)
                self.assertEqual(answer.code, code, answer)
                self.assertNotIn("*** ", answer.text)
                self.assertRegex(answer.text, said(sentence))
                self.assertIn(str(self.newest), answer.text)
        self.restore()
        self.trained("run", "train.steps=10")

    def test_a_manifest_that_is_no_json_or_too_deep_is_refused(self):
        for text in ("{", '{"a": ' + "[" * 200000 + "]" * 200000, '{"format": "mindpipe checkpoint"',
                     "\0" * 300):
            (self.newest / "manifest.json").write_text(manifests.signed(text))
            self.start(
                80, "manifest.json: it is no manifest|manifest.json: it does not say what a manifest says")

    def test_links_pipes_and_folders_are_not_followed(self):
        for name in ("state.h5", "manifest.json"):
            file = self.newest / name
            shutil.copy(file, self.secret)
            makers = [
                lambda: file.symlink_to(self.secret), lambda: file.symlink_to("nowhere"),
                lambda: os.mkfifo(file), file.mkdir
            ]
            for make in makers:
                file.unlink()
                make()
                self.start(80, name + ": ")
                self.restore()

    def test_neither_do_the_tools(self):
        if not can_trace():
            self.skipTest("strace is not there, or may not trace")
        (self.newest / "state.h5").unlink()
        (self.newest / "state.h5").symlink_to(self.secret)
        trace = self.root / "trace"
        for arguments in (["verify", self.newest], ["diff", self.kept, self.newest],
                          ["export", self.newest, "--output", self.root / "out.safetensors"]):
            answer = self.call([
                "strace", "-f", "-qq", "-y", "-s", "0", "-e", "trace=read,pread64,mmap", "-o",
                str(trace), PROGRAM, "ckpt", *map(str, arguments)
            ])
            self.assertEqual(answer.code, 80, answer)
            self.assertIn("it is a link, and a checkpoint's file is never one", answer.text)
            self.assertNotIn(f"<{self.secret}>", trace.read_text())


if __name__ == "__main__":
    main()
