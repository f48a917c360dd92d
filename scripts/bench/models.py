"""BERT, an encoder-decoder and a Vision Transformer of base size, a tiny Evolved Transformer and WRN-16-4 against
PyTorch, side by side."""
import os
import statistics
from collections import namedtuple

import peers
from running import ROOT, run_mindpipe
from token_pair import write_pictures, write_tokens

# `config`: a file of configs/; `counted`: what a sample has that is counted, and how many; `data` as run_mindpipe
# takes it.
Case = namedtuple("Case", "kind config batch counted settings data")


def texts(folder, samples):
    write_tokens(os.path.join(folder, "texts"), samples * 513, 30522)
    return os.path.join(folder, "texts")


def pairs(folder, samples):
    """Sources and targets of 64 tokens, the last of which is the end."""
    names = [os.path.join(folder, name) for name in ("sources", "targets")]
    for name in names:
        write_tokens(name, 63, 36997, samples)
    return "pairs:" + ":".join(names)


def pairs_of_bytes(folder, samples):
    names = [os.path.join(folder, name) for name in ("sources", "targets")]
    for name in names:
        write_tokens(name, 63, 256, samples)
    return "pairs:" + ":".join(names)


def pictures(side, classes):
    def write(folder, samples):
        path = os.path.join(folder, "images-idx4")
        write_pictures(path, samples, 3, side, classes)
        return path

    return write


CASES = (Case("bert", "bert-base", 4, ("tokens", 512),
              {"data.sequence": 512, "data.masked": 76, "model.dropout": 0, "model.attention_dropout": 0}, texts),
         Case("transformer", "transformer-base", 32, ("tokens", 64),
              {"data.source_sequence": 64, "data.target_sequence": 64, "model.vocabulary": 37000,
               "data.special.end": 36997, "data.special.start": 36998, "data.special.padding": 36999,
               "model.dropout": 0, "model.attention_dropout": 0, "train.label_smoothing": 0}, pairs),
         Case("vit", "vit-base", 8, ("pictures", 1),
              {"model.dropout": 0, "model.attention_dropout": 0, "data.flip": "false", "data.crop": 0},
              pictures(224, 1000)),
         Case("evolved", "evolved-transformer-tiny", 64, ("tokens", 64),
              {"model.context": 64, "data.source_sequence": 64, "data.target_sequence": 64,
               "reproducible.tensor": 1}, pairs_of_bytes),
         Case("wide_resnet", "wide-resnet-16-4", 64, ("pictures", 1), {"data.flip": "false", "data.crop": 0},
              pictures(32, 10)))


def compare(options, case, precision, warm_up):
    """Runs of each program in turn."""
    words = ["torch_models.py", case.kind, "--batch", str(case.batch)]
    return peers.in_turn(
        options, "%s, %s" % (case.config, precision),
        lambda: run_mindpipe(options, precision, case.batch, case.batch, options.threads, extra=case.settings,
                             warm_up=warm_up, data=case.data,
                             config=os.path.join(ROOT, "configs", case.config + ".yaml")),
        lambda compiled: peers.run_torch(options, words, precision, compiled, warm_up))


def report(case, precision, runs, not_compiled):
    what, of_sample = case.counted
    print("\n%s, %s, batch %d" % (case.config, precision, case.batch))
    for who, many in runs.items():
        print("%-16s %10.1f %s/s, peak %6.0f MiB" %
              (who, of_sample * statistics.median(run["samples_per_second"] for run in many), what,
               statistics.median(run["peak_mib"] for run in many)))
    found = peers.against(runs, "samples_per_second", not_compiled)
    peers.print_ratios(found, what)
    return dict(found, runs=runs)


def models(options, precision, warm_up):
    """Of each model what the programs took, and the ratios."""
    return {
        case.kind: report(case, precision, *compare(options, case, precision, warm_up))
        for case in CASES
    }
