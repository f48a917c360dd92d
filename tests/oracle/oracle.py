#!/usr/bin/env python3
"""Trains models in plain PyTorch (1.13 or newer): what the tests compare MindPipe with.

    oracle.py [--precision f32,f64,bf16,bf16_model] [--threads N] FOLDER...

FOLDER/input.safetensors holds the initial weights, the batches and, in its metadata (texts), the settings; `kind`
names the model: gpt.py, bert.py, transformer.py, evolved_transformer.py, vit.py, wide_resnet.py, subnet.py, cells.py
and picture_space.py say what each of them reads, training.py what all do, and what becomes of it in
FOLDER/<precision>.safetensors. network.py says what a precision means.

What may be compared: tensors as wholes, |a - b| / |b|, with one exception. The bias of the keys (the middle third of
c_attn.bias, k_proj.bias and key.bias without rotary positions) has a gradient of zero in exact arithmetic, so what is
computed there is rounding alone: hold it against the norm of all gradients. AdamW divides it by its own size, so it
moves that bias by about the rate in a random direction.
"""
import argparse
import importlib.metadata
import os
import pathlib
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import kept_answers  # noqa: E402
from safetensors_file import read_safetensors, write_safetensors  # noqa: E402


def run(metadata, arrays, precision):
    from kinds import KINDS  # and PyTorch, whose import takes longer than a kept answer
    import training
    return training.run(KINDS[metadata["kind"]], metadata, arrays, precision)


def key_of(folder, precision, threads):
    versions = [sys.version, *(importlib.metadata.version(package) for package in ("torch", "numpy"))]
    question = f"{precision} on {threads}\n".encode() + pathlib.Path(folder, "input.safetensors").read_bytes()
    return kept_answers.key_of(versions, question, HERE.glob("*.py"))


def ask(folder, precision, threads, answer):
    import torch
    from network import PRECISIONS
    if precision not in PRECISIONS:
        sys.exit("--precision names %s; there are %s" % (precision, ", ".join(PRECISIONS)))
    torch.set_num_threads(threads)
    metadata, arrays = read_safetensors(os.path.join(folder, "input.safetensors"))
    write_safetensors(answer, {"torch": torch.__version__, "precision": precision}, run(metadata, arrays, precision))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="+")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    for folder in arguments.folder:
        for precision in arguments.precision.split(","):
            answer = os.path.join(folder, precision + ".safetensors")
            key = key_of(folder, precision, arguments.threads)
            if kept_answers.take(key, answer):
                continue
            ask(folder, precision, arguments.threads, answer)
            kept_answers.keep(key, answer)


if __name__ == "__main__":
    main()
