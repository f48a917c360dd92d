#!/usr/bin/env python3
"""Loads FOLDER (config.json, model.safetensors) as transformers does and prints the mean loss of
INPUT.safetensors (tokens, targets; negative targets are ignored). Exits 1 if a tensor of the model is missing
in the file, or one of the file is unknown to the model.

    loss_by_transformers.py FOLDER INPUT.safetensors
"""
import os
import sys

import torch
import transformers

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gpt  # noqa: E402

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
folder, source = sys.argv[1:3]
model, loading = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True,
                                                                   dtype=torch.float32)
tied = {"lm_head.weight"} if model.config.tie_word_embeddings else set()
wrong = (set(loading["missing_keys"]) - tied) | set(loading["unexpected_keys"]) | set(
    map(str, loading["mismatched_keys"]))
if wrong:
    sys.exit("tensors that do not fit: " + ", ".join(sorted(wrong)))
_, arrays = gpt.read_safetensors(source)
tokens, targets = (torch.from_numpy(arrays[name].copy()).long().flatten(0, -2)
                   for name in ("tokens", "targets"))
with torch.no_grad():
    logits = model.eval()(tokens).logits.double()
    print("%.17g" %
          torch.nn.functional.cross_entropy(logits.flatten(0, 1),
                                            targets.masked_fill(targets < 0, -100).flatten()).item())
