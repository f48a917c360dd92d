# hostile_places_test.py PROGRAM FAULTS
# thorough
"""What becomes of a start that finds a pipe, a folder, a link to /dev/zero, one to itself or a sparse file of a terabyte in place of a
file that the program opens: the right exit code within 5 seconds and 256 MB, one sentence, and a status.json that is true. PLACES says
for each place who opens it; a file of src/ that opens files and has no place here fails the test."""
import gzip
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/app/checkpoints"))
sys.path.insert(0, str(ROOT / "scripts/bench"))
from orders import write_sparse_pair
from the_run import PROGRAM, SOURCE, Answer, Runs, main

KINDS = ("pipe", "folder", "device", "loop", "terabyte")
SECONDS, BYTES = 5, 256 << 20
UNOPENED = (0, 66, 73, 74, 78)  # a link to itself is as a file that is not there, or cannot be opened

TRAIN = "train --config tiny.yaml run.dir=run "
NEW = "train --config tiny.yaml run.dir=new "
PLAN = "plan --simulate --config tiny.yaml run.dir=new "
ORDERED = NEW.replace("=new", "=ordered") + "data.train=[many.idx]"
TOKENIZED = NEW.replace("=new", "=tokenized") + "model.vocabulary=auto data.tokenizer=SOURCE/tests/golden/tokenizers/gpt2.json"
SUBNETS = "train --config supernet.yaml run.dir=subnets "
PICTURES = "train --config SOURCE/configs/vit-tiny.yaml run.dir=new data.train=[PLACE] "
RANKS = "mpirun -n 2 --oversubscribe --allow-run-as-root "
SEARCHED = RANKS + NEW + "model.layers=4 grid.pipeline=2 schedule.kind=searched train.micro_batch=1"
TOKENS = NEW + "model.vocabulary=auto data.tokenizer="

# Who opens files, and has no place of a user's file: why not.
NO_PLACES = {
    "core/input_file": "opens for all others", "core/mapped_file": "maps what others open", "core/line_reader": "reads what others open",
    "core/strict_json": "parses what others open", "core/machine_memory": "/proc and /sys", "app/verbs/machine": "/proc and /sys",
    "energy/node_reader": "/proc", "runtime/host_counts": "/proc", "corpus/token_writer": "what the same process has just made",
    "io/checked_writer": "a checkpoint's own new file", "io/mpi_file": "a checkpoint's own new file",
}

# (who opens it, place, command, exit codes, what is there before it). The sentence names the place's last component.
PLACES = (
    ("config/document.cpp", "other.yaml", "train --config PLACE", (78, )),
    ("config/config.cpp", "other.yaml", "plan --simulate --config PLACE", (78, )),
    ("config/models/space.cpp", "space.yaml", "plan --config supernet.yaml run.dir=new model.space=PLACE", (78, )),
    ("config/models/prices.cpp", "prices.yaml", "plan --simulate --config supernet.yaml run.dir=new supernet.prices=PLACE", (78, )),
    ("config/device_file.cpp", "device.yaml", PLAN + "device.description=PLACE", (65, )),
    ("config/profile.cpp", "profile.yaml", PLAN + "device.profile=PLACE", (65, )),
    ("app/plan/profile_origin.cpp", "profile.yaml", "plan --search --ranks 2 --config tiny.yaml run.dir=new device.profile=PLACE", (65, )),
    ("app/run/agreement.cpp", "kernels.txt", NEW + "device.kind=cuda device.kernels=PLACE", (65, 78)),
    ("energy/forecast.cpp", "forecast.csv", PLAN + "energy.forecast=PLACE", (65, )),
    ("energy/powercap.cpp", "powercap/intel-rapl:0/name", NEW + "energy.meter=rapl energy.powercap=powercap", (0, 78)),
    ("energy/powercap.cpp", "powercap/intel-rapl:0/energy_uj", NEW + "energy.meter=rapl energy.powercap=powercap", (0, 78)),
    ("supernet/sampler.cpp", "choices.txt", SUBNETS + "supernet.sampler=PLACE", (65, 78)),
    ("corpus/text_file.cpp", "text.txt", NEW + "data.train=[PLACE]", (65, )),
    ("corpus/pairs.cpp", "pairs.tsv", "train --config SOURCE/configs/transformer-tiny.yaml run.dir=new data.train=[PLACE]", (65, )),
    ("corpus/token_file.cpp", "pair.idx", NEW + "data.train=[pair.idx]", (65, )),
    ("corpus/token_file.cpp", "pair.bin", NEW + "data.train=[pair.idx]", (0, 65)),
    ("corpus/token_origin.cpp", "pair.json", NEW + "data.train=[pair.idx]", (65, )),
    ("corpus/answers.cpp", "pair.mask", NEW + "data.train=[pair.idx]", (65, )),
    ("corpus/picture_files.cpp", "train-images-idx3-ubyte", PICTURES, (65, )),
    ("corpus/picture_files.cpp", "train-images-idx3-ubyte.gz", PICTURES, (65, )),
    ("corpus/picture_files.cpp", "train-labels-idx1-ubyte", PICTURES.replace("PLACE", "train-images-idx3-ubyte"), (65, )),
    ("corpus/pictures.cpp", "batch.bin", PICTURES.replace("PLACE", "cifar10:batch.bin"), (65, )),
    ("corpus/import_reader.cpp", "a.txt", "data import --output out PLACE", (65, )),
    ("corpus/import_files.cpp", "all/a.jsonl", "data import --output out all/a.jsonl", (65, )),
    ("corpus/raw_tokens.cpp", "a.npy", "data import --output out PLACE", (65, )),
    ("corpus/raw_tokens.cpp", "a.bin", "data import --output out --format tokens PLACE", (65, )),
    ("corpus/byte_stream.cpp", "a.txt.gz", "data import --output out PLACE", (65, )),
    ("corpus/byte_stream.cpp", "a.txt.zst", "data import --output out PLACE", (65, )),
    ("corpus/chat_template.cpp", "chat.json", "data import --output out --answers --template PLACE talks.jsonl", (65, 78)),
    ("tokenize/tokenizer_json.cpp", "tokenizer.json", TOKENS + "PLACE", (65, 66)),
    ("tokenize/tokenizer_json.cpp", "words/vocab.json", TOKENS + "words", (65, )),
    ("tokenize/tokenizer_json.cpp", "words/merges.txt", TOKENS + "words", (65, )),
    ("tokenize/tiktoken.cpp", "a.tiktoken", TOKENS + "PLACE:gpt2", (65, )),
    ("tokenize/component_tokenizer.cpp", "a.model", TOKENS + "PLACE", (65, 66)),
    ("tokenize/component_tokenizer.cpp", "vocab.txt", TOKENS + "PLACE", (65, 66)),
    ("io/safetensors.cpp", "a.safetensors", NEW + "run.weights=PLACE", (65, 66)),
    ("app/run/weights_source.cpp", "parts/model.safetensors.index.json", NEW + "run.weights=parts", (65, )),
    ("app/verbs/import.cpp", "hf/config.json", "import hf --output imported.yaml", (65, 78)),
    ("app/run/run_lock.cpp", "run/lock", TRAIN + "train.steps=6", (65, 73)),
    ("app/run/run_directory.cpp", "run/status.json", TRAIN + "train.steps=6", (65, 73)),
    ("app/run/run_directory.cpp", "new/status.json", NEW, (0, 65, 73)),
    ("app/run/resume.cpp", "run/metrics.jsonl", TRAIN + "train.steps=6", (65, )),
    ("app/run/run_directory.cpp", "new/metrics.jsonl", NEW, (0, 65, 73)),
    ("app/energy/run_energy.cpp", "run/energy.json", TRAIN + "train.steps=6", (65, )),
    ("app/run/run_directory.cpp", "run/config.yaml", TRAIN + "train.steps=6", (0, 73, 74)),
    ("app/run/run.cpp", "new/passes.txt", SEARCHED, (65, )),
    ("app/train/stop_request.cpp", "run/STOP", TRAIN + "train.steps=6", (0, 75)),
    ("corpus/order_file.cpp", "ordered/orders/*.order", ORDERED, (0, )),
    ("io/manifest.cpp", "run/checkpoints/step-00000004/manifest.json", TRAIN + "train.steps=6", (0, )),
    ("io/hdf5_steady_driver.cpp", "run/checkpoints/step-00000004/state.h5", TRAIN + "train.steps=6", (0, )),
    ("io/checkpoint_directory.cpp", "run/checkpoints/step-00000004/suspect", TRAIN + "train.steps=6", (0, )),
    ("io/checkpoint_directory.cpp", "run/checkpoints/latest", TRAIN + "train.steps=6", (0, 73, 74)),
    ("io/manifest.cpp", "run/checkpoints/step-00000004/manifest.json", "ckpt verify run/checkpoints/step-00000004", (80, )),
    ("io/hdf5_steady_driver.cpp", "run/checkpoints/step-00000004/state.h5", "ckpt verify run/checkpoints/step-00000004", (80, )),
    ("io/hdf5_steady_driver.cpp", "run/checkpoints/step-00000004/state.h5",
     "ckpt export run/checkpoints/step-00000004 --output out.safetensors", (80, )),
    ("app/report/report.cpp", "run/energy.json", "report run", (0, 65)),
    ("app/report/loss_curve.cpp", "run/metrics.jsonl", "report run", (65, 66)),
    ("app/plan/plan_goal.cpp", "run/metrics.jsonl",
     "plan --search --ranks 2 --config tiny.yaml run.dir=other plan.batches=[4,8] --noise-scale run", (65, 66)),
    ("app/verbs/extract.cpp", "subnets/config.yaml", "extract subnets --choice 0,0 --output network", (65, 66, 78)),
    ("app/verbs/extract.cpp", "subnets/status.json", "extract subnets --choice 0,0 --output network", (0, 65)),
    ("app/verbs/extract.cpp", "choice.yaml", "extract subnets --choice PLACE --output network", (65, 66, 78)),
    ("app/search/score_file.cpp", "subnets/search/search.jsonl", "search --config supernet.yaml run.dir=subnets", (65, )),
    ("app/search/origin.cpp", "subnets/search/origin.json", "search --config supernet.yaml run.dir=subnets", (65, )),
    ("app/run/run_inputs.cpp", "book.txt", "arithmetic --config tiny.yaml run.dir=new data.train=[book.txt]", (0, 65)),
    ("app/train/run_comparison.cpp", "one/metrics.jsonl", NEW + "--compare one", (65, 66, 78)),
    ("app/train/run_comparison.cpp", "run/model.safetensors", NEW + "--compare run", (0, 65, 76, 78)),
    ("app/run/files_beside.cpp", "run/config.json", TRAIN + "train.steps=6", (0, 73, 74)),
    ("app/run/files_beside.cpp", "tokenized/tokenizer/tokenizer.json", TOKENIZED + " train.steps=6", (0, 65, 73, 74)),
    ("app/run/files_beside.cpp", "tokenized/tokenizer/special_tokens_map.json", TOKENIZED + " train.steps=6", (0, )),
    ("io/file.cpp", "run/model.safetensors", TRAIN + "train.steps=6", (0, 73, 74)),
    ("comm/roll_call.cpp", "run/log", TRAIN + "train.steps=6", (0, 73, 74)),
)

SUPERNET = """seed: 3
model: {kind: supernet, space: {name: two, decoder: {blocks: 2, candidates: [mlp-2, conv-3]}}, width: 16, context: 16, vocabulary: 256}
data: {train: [SOURCE/data/alice.txt], validation: [SOURCE/data/alice.txt]}
supernet: {sampler: permutation, window: 4}
train: {steps: 8, batch: 4, micro_batch: 2}
optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}
search: {scores: 4, batches: 1, population: 4, parents: 2, steps: 2}
trace: {steps: 0}
device: {threads: 1}
"""


def write_pair(prefix, with_mask=False):
    """Two documents of 40 tokens, as Megatron-LM's token files have them."""
    tokens = bytes(range(40)) * 2
    prefix.with_suffix(".bin").write_bytes(b"".join(struct.pack("<H", token) for token in tokens))
    prefix.with_suffix(".idx").write_bytes(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 2, 3) + struct.pack("<2i", 40, 40) +
                                           struct.pack("<2q", 0, 80) + struct.pack("<3q", 0, 1, 2))
    if with_mask:
        prefix.with_suffix(".mask").write_bytes(b"\xff" * 10)


class HostilePlaces(Runs):
    def setUp(self):
        super().setUp()
        self.kept = self.root / "kept"
        self.kept.mkdir()
        (self.kept / "tiny.yaml").write_text((self.root / "tiny.yaml").read_text().replace("steps: 8", "steps: 4"))
        (self.kept / "supernet.yaml").write_text(SUPERNET.replace("SOURCE", str(SOURCE)))
        (self.kept / "book.txt").write_bytes((SOURCE / "data/alice.txt").read_bytes())
        (self.kept / "talks.jsonl").write_text('{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n')
        write_pair(self.kept / "pair")
        write_sparse_pair(str(self.kept / "many"), 30_000, 20)
        for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
            (self.kept / name).write_bytes(struct.pack(">4I", 0x803, 4, 28, 28) + bytes(4 * 784))
        for folder, files in (("words", {"vocab.json": '{"a": 0, "b": 1, "ab": 2}', "merges.txt": "a b\n"}), ("hf", {}), ("parts", {}),
                              ("powercap/intel-rapl:0", {"name": "package-0\n", "energy_uj": "1\n", "max_energy_range_uj": "9999\n"})):
            (self.kept / folder).mkdir(parents=True)
            for name, text in files.items():
                (self.kept / folder / name).write_text(text)
        for command in (TRAIN, ORDERED, TOKENIZED, SUBNETS, "search --config supernet.yaml run.dir=subnets"):
            answer = self.call([PROGRAM, *command.replace("SOURCE", str(SOURCE)).split()], where=self.kept)
            self.assertEqual(answer.code, 0, answer)

    def call(self, command, where=None, limit=SECONDS):
        """What a program says, its code, and the most memory that it had."""
        with open(self.root / "said", "w+b") as said:
            process = subprocess.Popen(command, env=self.environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=where)
            end, status = time.monotonic() + limit, None
            while status is None:
                pid, ended, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    status = os.waitstatus_to_exitcode(ended)
                elif time.monotonic() > end:
                    process.kill()
                    end = float("inf")
                else:
                    time.sleep(0.002)
            process.returncode = status
            said.seek(0)
            self.peak = usage.ru_maxrss << 10
            return Answer(status, said.read().decode(errors="replace"))

    def put(self, kind, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "device":
            path.symlink_to("/dev/zero")
        elif kind == "loop":
            path.symlink_to(path.name)
        else:
            with open(path, "wb") as file:
                file.truncate(1 << 40)

    def wrong_about(self, kind, who, place, command, codes):
        """What is not as it should be; nothing where all is."""
        there = self.root / "there"
        shutil.rmtree(there, ignore_errors=True)
        shutil.copytree(self.kept, there, symlinks=True)
        place = str(next(there.glob(place)).relative_to(there)) if "*" in place else place
        self.put(kind, there / place)
        command = command.replace("PLACE", place).replace("SOURCE", str(SOURCE))
        ranks = RANKS.split() if command.startswith(RANKS) else []
        answer = self.call([*ranks, PROGRAM, *command.removeprefix(RANKS).split()], where=there)
        sentences = re.findall(r"^mindpipe-train: .*$", answer.text, re.M)
        name = place.rpartition("/")[2]
        wrong = []
        if answer.code not in codes + (UNOPENED if kind == "loop" else ()):
            wrong.append(f"code {answer.code}, not {codes}")
        if answer.code not in (0, 75) and len(sentences) != 1:
            wrong.append(f"{len(sentences)} sentences")
        if sentences and kind != "loop" and name not in sentences[0]:
            wrong.append(f"no {name} in its sentence")
        if self.peak > BYTES:
            wrong.append(f"{self.peak >> 20} MiB")
        for status in there.glob("*/status.json"):
            if status != there / place and json.loads(status.read_text())["state"] == "running":
                wrong.append("status.json says running")
        return f"{kind} for {place} ({who}), {command}: {', '.join(wrong)}\n{answer.text[-600:]}" if wrong else ""

    def test_whoever_opens_files_has_a_place(self):
        opens = re.compile(r"\b(InputFile|MappedFile|LineReader|ifstream)\b|\b(read_text|read_text_if_there|open_ordinary)\(|\bopen\(.*O_")
        known = {pathlib.Path(who).with_suffix("").as_posix() for who, *_ in PLACES} | set(NO_PLACES)
        found = set()
        for path in (SOURCE / "src").rglob("*.*"):
            code = re.sub(r"//.*|#include.*", "", path.read_text()) if path.suffix in (".h", ".cpp") else ""
            if opens.search(code):
                found.add(path.relative_to(SOURCE / "src").with_suffix("").as_posix())
        self.assertEqual(sorted(found - known), [], "opens files, and PLACES has no line for it")
        self.assertEqual(sorted(set(NO_PLACES) - found), [], "opens no file")

    def test_packed_pictures_take_no_room_for_what_their_head_promises(self):
        packed = gzip.compress(struct.pack(">4I", 0x803, 60_000_000, 28, 28) + bytes(784))
        (self.kept / "train-images-idx3-ubyte.gz").write_bytes(packed)
        (self.kept / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(struct.pack(">2I", 0x801, 60_000_000) + bytes(4)))
        train = PICTURES.replace("PLACE", "train-images-idx3-ubyte.gz").replace("SOURCE", str(SOURCE))
        answer = self.call(["bash", "-c", f"ulimit -v 1000000; exec {PROGRAM} {train}"], where=self.kept)
        self.assertEqual(answer.code, 65, answer)
        self.assertIn("its head promises 60000000 items", answer.text)

    def test_each_is_refused_or_passed_over(self):
        wrong = [text for place in PLACES for kind in KINDS if (text := self.wrong_about(kind, *place))]
        self.assertEqual(wrong, [], "\n".join(wrong))


if __name__ == "__main__":
    main()
