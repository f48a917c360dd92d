"""Tokenizers: bytes a second on one core beside those of Hugging Face's tokenizers, and what training and import take."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from running import ROOT, fail

sys.path.insert(0, os.path.join(ROOT, "tests", "tokenize"))
ROUNDS, MERGES, TRAINED_MB, IMPORTED_GB = 5, 2000, 20, 2


def theirs_of(python, path, corpus):
    """Bytes a second of tokenizers on one thread."""
    code = """
import json, sys, time
from tokenizers import Tokenizer
made = Tokenizer.from_file(sys.argv[1])
texts = json.load(open(sys.argv[2]))
size = sum(len(text.encode()) for text in texts)
begin = time.perf_counter()
made.encode_batch_fast(texts, add_special_tokens=False)
print(size / (time.perf_counter() - begin))
"""
    environment = dict(os.environ, TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")
    done = subprocess.run([python, "-c", code, path, corpus], env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout)


def ours_of(program, path, packed, threads=1):
    return float(subprocess.run([program, path, "--time", str(threads)], input=packed, check=True, capture_output=True).stdout)


def compare(python, ids_of_texts, path, name, folder):
    """One tokenizer on English and code, in turn; a dictionary of medians."""
    import texts
    chosen = [text[:100_000] for text in texts.english_documents(10) + texts.code_documents(10)]
    corpus = os.path.join(folder, "corpus.json")
    with open(corpus, "w") as file:
        json.dump(chosen, file)
    packed, letter, spaces = texts.packed(chosen), texts.packed(["a" * 1_000_000]), texts.packed([" " * 10_000_000])
    rounds = []
    for _ in range(ROUNDS):
        rounds.append({"rate": ours_of(ids_of_texts, path, packed), "theirs": theirs_of(python, path, corpus),
                       "two": ours_of(ids_of_texts, path, packed, 2), "letter": ours_of(ids_of_texts, path, letter),
                       "spaces": ours_of(ids_of_texts, path, spaces)})
    median = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
    found = {"rate": median["rate"] / 1e6, "theirs": median["theirs"] / 1e6,
             "ratio": statistics.median(one["rate"] / one["theirs"] for one in rounds),
             "two_threads": statistics.median(one["two"] / one["rate"] for one in rounds),
             "letter": median["letter"] / median["rate"], "spaces": median["spaces"] / median["rate"]}
    print("%-8s %.2f MB/s of English and code on one core, %.2f x tokenizers (%.2f MB/s); two threads %.2f x; one letter %.2f x, spaces "
          "%.2f x" % (name, *(found[key] for key in ("rate", "ratio", "theirs", "two_threads", "letter", "spaces"))), flush=True)
    return found


def seconds_of_training(program, folder):
    """Seconds for 2000 merges on 20 MB, by one thread."""
    import texts
    corpus = os.path.join(folder, "train.jsonl")
    with open(corpus, "w") as file:
        for text in texts.english_documents(TRAINED_MB / 2) + texts.code_documents(TRAINED_MB / 2):
            file.write(json.dumps({"text": text}) + "\n")
    seconds = []
    for turn in range(3):
        begin = time.time()
        command = [program, "data", "train-tokenizer", corpus, "--output", "%s/%d.json" % (folder, turn), "--vocabulary",
                   str(256 + MERGES), "--threads", "1"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.time() - begin)
    taken = statistics.median(seconds)
    print("training: %d merges on %d MB in %.1f s on one thread" % (MERGES, TRAINED_MB, taken), flush=True)
    return taken


def memory_of_import(program, tokenizer, folder):
    """MB at the peak of an import of one file of 2 GB."""
    import texts
    path, peak = os.path.join(folder, "large.txt"), os.path.join(folder, "peak")
    some = "".join(texts.english_documents(8)).encode()
    with open(path, "wb") as file:
        while file.tell() < IMPORTED_GB * 1e9:
            file.write(some)
    begin = time.time()
    command = [sys.executable, os.path.join(ROOT, "tests/peak_memory.py"), peak, program, "data", "import", path, "--tokenizer",
               tokenizer, "--output", os.path.join(folder, "large")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(peak + ".0") as file:
        peak_mb = int(file.read()) / 1e6
    rate = os.path.getsize(path) / 1e6 / (time.time() - begin)
    print("import of %d GB: %.0f MB at the peak, %.1f MB/s" % (IMPORTED_GB, peak_mb, rate), flush=True)
    return peak_mb


def tokenizing(python, ids_of_texts, program, runs):
    """Trains tokenizers of 16,000 tokens by `tokenizers`, and measures on them."""
    if subprocess.run([python, "-c", "import tokenizers"], capture_output=True).returncode:
        fail("%s has no tokenizers; make test-peers installs it" % python)
    with tempfile.TemporaryDirectory(prefix="mindpipe-tokens-", dir=runs) as folder:
        found = {"training_s": seconds_of_training(program, folder), "tokenizers": {}}
        for pattern in ("gpt2", "gpt4", "llama3"):
            path = os.path.join(folder, pattern + ".json")
            code = "import made_tokenizers, sys; getattr(made_tokenizers, sys.argv[1])(16000).save(sys.argv[2])"
            environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "tests", "tokenize"))
            subprocess.run([python, "-c", code, pattern, path], env=environment, check=True)
            found["tokenizers"][pattern] = compare(python, ids_of_texts, path, pattern, folder)
        found["import_mb"] = memory_of_import(program, path, folder)
        return found


if __name__ == "__main__":
    import figures
    import verdicts
    measured = tokenizing(os.environ.get("MINDPIPE_PEER_PYTHON", os.path.join(ROOT, ".venv-peers/bin/python")),
                          os.path.join(ROOT, "build/tests/ids_of_texts"), os.path.join(ROOT, "build/mindpipe-train"), None)
    print("\n".join(verdicts.table(verdicts.judge_alone(figures.of_texts({"tokenizing": measured})))))
    print(json.dumps(measured))
