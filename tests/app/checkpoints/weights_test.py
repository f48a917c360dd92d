# thorough
# 2 at a time
"""Files of weights: who writes which byte, and what SIGKILL leaves of them at each call that changes something."""
import json
import os
import re
import shutil
import struct

from the_run import ALL, PROGRAM, SOURCE, Runs, main

ONE, THREE, MORE = "export.part=1000000", "export.part=40000", "export.part=20000"
SUPERNET = """seed: 3
model:
  kind: supernet
  space: {name: three, decoder: {blocks: 3, candidates: [conv-3, mlp-2]}}
  width: 16
  context: 16
  vocabulary: 256
data: {train: [synthetic:arithmetic]}
train: {batch: 2, micro_batch: 1}
trace: {steps: 0}
device: {threads: 1}
"""
GRIDS = ((1, ""), (2, "grid.tensor=2"), (2, "grid.pipeline=2"), (2, "grid.data=2 train.zero=1"),
         (4, "grid.tensor=2 grid.data=2"), (4, "grid.pipeline=2 grid.tensor=2"))


def tensors_of(path):
    """Name, and what the file has of each tensor."""
    data = path.read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    return {
        name: (entry["dtype"], entry["shape"], data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]])
        for name, entry in header.items() if name != "__metadata__"
    }


def weights_in(directory):
    """The tensors that transformers, and run.weights, find in a directory."""
    one = directory / "model.safetensors"
    if one.exists():
        return tensors_of(one)
    places = json.loads((directory / "model.safetensors.index.json").read_text())["weight_map"]
    parts = {part: tensors_of(directory / part) for part in set(places.values())}
    assert {name for part in parts.values() for name in part} == set(places), "a tensor that no index names"
    return {name: parts[part][name] for name, part in places.items()}


def settings_in(directory):
    path = directory / "config.json"
    return path.read_text() if path.exists() else None


def files_of_weights(directory):
    return {
        path.name: path.read_bytes()
        for path in sorted(directory.iterdir()) if ".safetensors" in path.name or path.name == "config.json"
    }


class Weights(Runs):
    def export(self, checkpoint, out, **faults):
        return self.ckpt("export", checkpoint, "--output", self.root / out, **faults)

    def exported(self, checkpoint, out):
        answer = self.export(checkpoint, out)
        self.assertEqual(answer.code, 0, answer)
        return self.root / out

    def expect_old_or_new(self, found, old, new):
        weights, settings = weights_in(found), settings_in(found)
        is_old, is_new = weights == weights_in(old), weights == weights_in(new)
        self.assertTrue(is_old or is_new, "a mixture")
        if settings_in(old) == settings_in(new):
            self.assertEqual(settings, settings_in(new))
        elif settings is not None:
            self.assertEqual(settings, settings_in(old if is_old else new), "settings of other weights")

    def expect_whole(self, found, new):
        """Besides what a killed process has left under a name for the time, nothing that no index names."""
        self.assertEqual(weights_in(found), weights_in(new))
        self.assertEqual(settings_in(found), settings_in(new))
        index = found / "model.safetensors.index.json"
        parts = set(json.loads(index.read_text())["weight_map"].values()) if index.exists() else {"model.safetensors"}
        self.assertEqual({path.name for path in found.glob("*.safetensors")}, parts)

    def try_kills(self, old, new):
        """`old`, `new`: checkpoints, whose weights follow each other in a directory."""
        before, after = self.exported(old, "before"), self.exported(new, "after")
        self.assertNotEqual(weights_in(before), weights_in(after))
        shutil.copytree(before, self.root / "counted")
        answer = self.export(new, "counted", log=self.root / "log", on="/counted/")
        self.assertEqual(answer.code, 0, answer)
        calls = len((self.root / "log").read_text().splitlines())
        self.assertGreater(calls, 5)
        points = range(1, calls + 1) if ALL else sorted({*range(1, calls + 1, 3), *range(max(1, calls - 12), calls + 1)})
        for point in points:
            with self.subTest(point=point, of=calls):
                out = self.root / "out"
                shutil.copytree(before, out)
                answer = self.export(new, "out", faults=f"any:kill:{point}:1", on="/out/")
                self.assertEqual(answer.code, -9, answer)
                self.expect_old_or_new(out, before, after)
                self.expect_whole(self.exported(new, "out"), after)
                shutil.rmtree(out)

    def test_a_kill_leaves_the_old_weights_or_the_new_ones(self):
        for name, settings in (("one", ONE), ("three", THREE), ("more", MORE), ("other", THREE + " model.width=48")):
            self.trained(name, settings)
        earlier, latest = (lambda run: self.checkpoint(run, 2)), (lambda run: self.checkpoint(run, 8))
        for old, new in (("one", "one"), ("three", "three"), ("three", "more"), ("more", "three"), ("one", "more"),
                         ("more", "one"), ("other", "three"), ("one", "other")):
            with self.subTest(old=old, new=new):
                self.try_kills(earlier(old), latest(new))
            for folder in ("before", "after", "counted", "out"):
                shutil.rmtree(self.root / folder, ignore_errors=True)
            (self.root / "log").unlink(missing_ok=True)

    def extract(self, choice, out, **faults):
        return self.call([PROGRAM, "extract", str(self.root / "super"), "--choice", choice, "--output", str(self.root / out)],
                         self.environment(**faults))

    def choice_in(self, out):
        path = self.root / out / "subnet.yaml"
        return re.search(r"choice: (\[.*\])", path.read_text()).group(1) if path.exists() else None

    def test_a_kill_of_extract_leaves_no_network_with_the_weights_of_another(self):
        settings = f"run.dir={self.root}/super train.steps=2 export.part=4000"
        (self.root / "super.yaml").write_text(SUPERNET)
        answer = self.call([PROGRAM, "--config", str(self.root / "super.yaml"), *settings.split()])
        self.assertEqual(answer.code, 0, answer)
        for choice, out in (("0,1,0", "before"), ("1,1,1", "after")):
            answer = self.extract(choice, out)
            self.assertEqual(answer.code, 0, answer)
        before, after = weights_in(self.root / "before"), weights_in(self.root / "after")
        self.assertNotEqual(before, after)
        shutil.copytree(self.root / "before", self.root / "counted")
        self.assertEqual(self.extract("1,1,1", "counted", log=self.root / "log", on="/counted/").code, 0)
        calls = len((self.root / "log").read_text().splitlines())
        self.assertGreater(calls, 10)
        for point in range(1, calls + 1):
            with self.subTest(point=point, of=calls):
                shutil.copytree(self.root / "before", self.root / "out")
                answer = self.extract("1,1,1", "out", faults=f"any:kill:{point}:1", on="/out/")
                self.assertEqual(answer.code, -9, answer)
                found, choice = weights_in(self.root / "out"), self.choice_in("out")
                self.assertTrue(found in (before, after), "a mixture")
                self.assertIn(choice, (None, "[0, 1, 0]" if found == before else "[1, 1, 1]"))
                self.assertEqual(self.extract("1,1,1", "out").code, 0)
                self.assertEqual((weights_in(self.root / "out"), self.choice_in("out")), (after, "[1, 1, 1]"))
                shutil.rmtree(self.root / "out")

    def test_a_rank_that_is_killed_leaves_the_old_weights_or_the_new_ones(self):
        settings = f"{THREE} grid.tensor=2 checkpoint.every=100"
        self.trained("before", settings + " train.steps=2", 2)
        before = self.root / "before"
        shutil.copytree(before, self.root / "after", symlinks=True)
        self.trained("after", settings + " train.steps=4", 2, log=self.root / "log", on=".safetensors")
        log = (self.root / "log").read_text().splitlines()
        self.assertNotEqual(weights_in(before), weights_in(self.root / "after"))
        for rank in (0, 1):
            calls = sum(line.startswith(f"{rank} ") for line in log)
            self.assertGreater(calls, 5)
            points = range(1, calls + 1) if ALL else sorted({calls // 3, *range(max(1, calls - 7 + 5 * rank), calls + 1)})
            for point in points:
                with self.subTest(rank=rank, point=point, of=calls):
                    run = f"killed-{rank}-{point}"
                    shutil.copytree(before, self.root / run, symlinks=True)
                    answer = self.train(run, settings + " train.steps=4", 2, faults=f"any:kill:{point}:1",
                                        on=".safetensors", rank=rank)
                    self.assertEqual(answer.code, 128 + 9, answer)
                    self.expect_old_or_new(self.root / run, before, self.root / "after")
                    ranks = 1 + point % 2
                    self.train_again(run, settings.replace("grid.tensor=2", f"grid.tensor={ranks}") + " train.steps=4", ranks)
                    self.expect_whole(self.root / run, self.root / "after")

    def expect_each_byte_once(self, run, ranks):
        written, writers = {}, set()
        for line in (self.root / "log").read_text().splitlines():
            rank, call, rest = line.split(" ", 2)
            self.assertNotEqual(call, "write", f"{line}: its place is not known")
            if call != "pwrite":
                continue
            path, first, count = rest.rsplit(" ", 2)
            name = os.path.basename(path).split(".safetensors")[0] + ".safetensors"
            written.setdefault(name, []).append((int(first), int(count)))
            writers.add(rank)
        files = {path.name: path.stat().st_size for path in (self.root / run).glob("*.safetensors")}
        self.assertEqual(written.keys(), files.keys())
        for name, pieces in written.items():
            end = 0
            for first, count in sorted(pieces):
                self.assertEqual(first, end, f"{name}: written {'by nobody' if first > end else 'twice'}")
                end += count
            self.assertEqual(end, files[name])
        self.assertEqual(len(writers), ranks, "all ranks write")

    def test_every_byte_is_written_once_and_the_same_on_every_grid(self):
        os.environ["FILE_FAULTS_BYTES"] = "1"
        self.addCleanup(os.environ.pop, "FILE_FAULTS_BYTES")
        for how in (ONE, THREE, MORE + " export.precision=bf16", THREE + " train.precision=bf16"):
            same = None
            for ranks, grid in GRIDS:
                with self.subTest(how=how, grid=grid):
                    self.trained("run", f"{how} {grid} train.steps=2", ranks, log=self.root / "log", on=".safetensors.")
                    lines = [line for line in (self.root / "log").read_text().splitlines() if ".index.json" not in line]
                    (self.root / "log").write_text("\n".join(lines))
                    self.expect_each_byte_once("run", ranks)
                    files = files_of_weights(self.root / "run")
                    self.assertEqual(len(files) > 2, how != ONE)
                    same = same or files
                    self.assertEqual(files.keys(), same.keys())
                    for name, data in files.items():
                        self.assertTrue(data == same[name], f"{name} has other bytes")
                shutil.rmtree(self.root / "run")
                (self.root / "log").unlink()

    def expect_tokenizer(self, directory, source, reader):
        for name in source:
            self.assertEqual((directory / name).read_bytes(), source[name], name)
        settings = json.loads((directory / "tokenizer_config.json").read_text())
        self.assertEqual(settings["tokenizer_class"], reader)

    def test_the_tokenizer_stands_beside_them(self):
        whole = (SOURCE / "tests/golden/tokenizers/gpt2.json").read_bytes()
        model = json.loads(whole)["model"]
        merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
        pairs = {
            "vocab.json": json.dumps(model["vocab"]).encode(),
            "merges.txt": ("#version: 0.2\n" + "\n".join(merges) + "\n").encode()
        }
        words = {"vocab.txt": "\n".join(json.loads((SOURCE / "tests/golden/tokenizers/bert.json").read_text())["model"]["vocab"]).encode()}
        for run, source, reader in (("whole", {"tokenizer.json": whole}, "PreTrainedTokenizerFast"),
                                    ("pairs", pairs, "GPT2Tokenizer"), ("words", words, "BertTokenizer")):
            with self.subTest(run=run):
                folder = self.root / f"{run}-tokenizer"
                folder.mkdir()
                for name, data in source.items():
                    (folder / name).write_bytes(data)
                self.trained(run, f"data.tokenizer={folder} model.vocabulary=auto train.steps=2")
                self.expect_tokenizer(self.root / run, source, reader)
                shutil.rmtree(folder)  # from now on the run's copy counts
                self.expect_tokenizer(self.exported(self.root / run, f"{run}-out"), source, reader)
                self.trained(run, f"data.tokenizer={folder} model.vocabulary=auto train.steps=4")
                self.expect_tokenizer(self.root / run, source, reader)
        names = {"tokenizer.json", "vocab.json", "merges.txt", "vocab.txt", "tokenizer_config.json"}
        for run, source, reader in (("whole", {"tokenizer.json": whole}, "PreTrainedTokenizerFast"),
                                    ("words", words, "BertTokenizer"), ("pairs", pairs, "GPT2Tokenizer")):
            with self.subTest(after_others=run):
                out = self.exported(self.root / run, "one-after-another")
                self.expect_tokenizer(out, source, reader)
                self.assertEqual({path.name for path in out.iterdir()} & names, {*source, "tokenizer_config.json"})


if __name__ == "__main__":
    main()
