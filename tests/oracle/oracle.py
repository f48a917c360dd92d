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
import os
import sys

import torch

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bert  # noqa: E402
import cells  # noqa: E402
import evolved_transformer  # noqa: E402
import gpt  # noqa: E402
import subnet  # noqa: E402
import picture_space  # noqa: E402
import training  # noqa: E402
import transformer  # noqa: E402
import vit  # noqa: E402
import wide_resnet  # noqa: E402
from network import PRECISIONS  # noqa: E402
from safetensors_file import read_safetensors, write_safetensors  # noqa: E402

KINDS = {"gpt": gpt.Decoder, "bert": bert.Bert, "transformer": transformer.EncoderDecoder, "vit": vit.VisionTransformer,
         "evolved_transformer": evolved_transformer.EvolvedTransformer, "wide_resnet": wide_resnet.WideResnet,
         "subnet_of_texts": subnet.OfTexts, "subnet_of_pairs": subnet.OfPairs, "cells": cells.Cells,
         "picture_space": picture_space.PictureSpace}


def run(metadata, arrays, precision):
    return training.run(KINDS[metadata["kind"]], metadata, arrays, precision)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="+")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for folder in arguments.folder:
        metadata, arrays = read_safetensors(os.path.join(folder, "input.safetensors"))
        for precision in arguments.precision.split(","):
            if precision not in PRECISIONS:
                parser.error("--precision names %s; there are %s" % (precision, ", ".join(PRECISIONS)))
            answer = os.path.join(folder, precision + ".safetensors")
            write_safetensors(answer, {"torch": torch.__version__, "precision": precision},
                              run(metadata, arrays, precision))


if __name__ == "__main__":
    main()
