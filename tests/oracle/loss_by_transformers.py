#!/usr/bin/env python3
"""Loads run directories (config.json, model.safetensors) as transformers does and prints, a line for each, the name of
its class and the mean loss of input.safetensors there: fields of one step, and the settings in its metadata, as
oracle.py reads them. Leaves theirs.safetensors there: the logits, the losses and their mean. Exits 1 if a tensor of the
model is missing in the file, or one of the file is unknown to the model.

    loss_by_transformers.py FOLDER...
"""
import os
import sys

import torch
import transformers
from safetensors.torch import save_file

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers  # noqa: E402
from safetensors_file import read_safetensors  # noqa: E402
from training import cross_entropy  # noqa: E402


def load(folder):
    name = transformers.AutoConfig.from_pretrained(folder).architectures[0]
    model, loading = getattr(transformers, name).from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
    # A name is no tensor of its own where it is another's, which the file has.
    places = {name: tensor.data_ptr() for name, tensor in model.state_dict(keep_vars=True).items()}
    missing = set(loading["missing_keys"])
    found = {place for name, place in places.items() if name not in missing}
    wrong = {name for name in missing if places[name] not in found} | set(loading["unexpected_keys"]) | set(
        map(str, loading["mismatched_keys"]))
    if wrong:
        sys.exit("%s: tensors that do not fit: %s" % (folder, ", ".join(sorted(wrong))))
    return model.eval()


def mean_loss(model, folder):
    settings, arrays = read_safetensors(os.path.join(folder, "input.safetensors"))
    batch = {name: torch.from_numpy(array[0].copy()) for name, array in arrays.items()}
    targets = batch["targets"].long()
    with torch.no_grad():
        logits = peers.logits_of(model, settings, batch)
        losses = cross_entropy(logits.double(), targets, 0)
    mean = losses.sum() / (targets >= 0).sum()
    save_file({"logits": logits.float().contiguous(), "losses": losses.contiguous(), "loss": mean.reshape(1)},
              os.path.join(folder, "theirs.safetensors"))
    return mean.item()


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for folder in sys.argv[1:]:
        model = load(folder)
        print("%s %.17g" % (type(model).__name__, mean_loss(model, folder)))


if __name__ == "__main__":
    main()
