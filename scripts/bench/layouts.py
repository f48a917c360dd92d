"""Other layouts of the same two processors against one rank with two threads."""
import statistics
import sys

from running import run_mindpipe

# GPT-2's width and heads, with as few layers and words as still show what a layout costs: messages and
# products are those of the whole model layer by layer, and of 16,384 tokens a step. A pipeline has its 32
# micro-batches instead, and layers to cut.
FLAT = {"model.layers": 1, "model.vocabulary": 1024}
DEEP = {"model.layers": 2, "model.vocabulary": 1024, "model.context": 256}
GROUPS = (  # settings, sequence, batch, micro-batch, what is compared: name, ranks, settings
    (FLAT, 1024, 16, 4, (("data", 2, {"grid.data": 2, "reproducible.data": 2
                                      }), ("tensor", 2, {"grid.tensor": 2, "reproducible.tensor": 2}),
                         ("shards", 1, {"reproducible.data": 2, "reproducible.tensor": 2}))),
    (DEEP, 256, 32, 1, (("pipeline", 2, {"grid.pipeline": 2}), )))


def one_after_another(options, precision, group):
    """Runs by name: the single rank before and after each repeat of the others, whose order turns about, so
    that a machine that grows slower or faster meanwhile favours none."""
    size, sequence, batch, micro_batch, compared = group
    runs = {}

    def run(name, ranks, extra):
        print("%s, layouts, %s, run %d" % (precision, name, len(runs.get(name, ())) + 1), file=sys.stderr,
              flush=True)
        runs.setdefault(name, []).append(
            run_mindpipe(options, precision, batch, micro_batch, 2 // ranks, ranks=ranks, sequence=sequence,
                         vocabulary=size["model.vocabulary"], extra=dict(size, **extra)))

    run("one", 1, {})
    for repeat in range(options.repeats):
        for layout in compared[:: 1 if repeat % 2 == 0 else -1]:
            run(*layout)
        run("one", 1, {})
    return runs


def ratios_of(runs, name):
    """Of each repeat, tokens/s of a layout over the mean of the single rank before and after it."""
    rates = {who: [run["tokens_per_second"] for run in runs[who]] for who in ("one", name)}
    return [
        2 * rate / (before + after)
        for rate, before, after in zip(rates[name], rates["one"], rates["one"][1:])
    ]


def layouts(options, precision):
    """Of each layout the ratio of tokens/s, the median over the repeats."""
    results = {}
    print("\nGPT-2's width, %s: against one rank with two threads, tokens/s" % precision)
    for group in GROUPS:
        size, sequence, batch, micro_batch, compared = group
        runs = one_after_another(options, precision, group)
        for name, ranks, _ in compared:
            ratios = ratios_of(runs, name)
            results[name] = {
                "ratio": statistics.median(ratios), "ratios": ratios, "runs": runs[name], "one": runs["one"]
            }
            print("%-10s %d rank%s, %d layers, %2d micro-batches, %d tokens a step: %.2f x (%s)%s" %
                  (name, ranks, "s" if ranks > 1 else " ", size["model.layers"], batch // micro_batch,
                   batch * sequence, results[name]["ratio"], ", ".join("%.2f" % ratio for ratio in ratios),
                   "" if ranks > 1 else "; cut as if it were four ranks, which nobody asked for"))
    return results
