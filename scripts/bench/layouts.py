"""Other layouts of the same two processors against one rank with two threads."""
import statistics
import sys

from running import run_mindpipe

# GPT-2's width and heads, with as few layers and words as still show what a layout costs: messages and products are those of the whole model
# layer by layer, and of 16,384 tokens a step. A pipeline has its 32 micro-batches instead, and layers to cut.
FLAT = {"model.layers": 1, "model.vocabulary": 1024}
DEEP = {"model.layers": 2, "model.vocabulary": 1024, "model.context": 256}
GROUPS = (  # settings, sequence, batch, micro-batch, what is compared: name, ranks, settings
    (FLAT, 1024, 16, 4, (("data", 2, {"grid.data": 2, "reproducible.data": 2}), ("tensor", 2, {"grid.tensor": 2, "reproducible.tensor": 2}),
                         ("shards", 1, {"reproducible.data": 2, "reproducible.tensor": 2}))),
    (DEEP, 256, 32, 1, (("pipeline", 2, {"grid.pipeline": 2}),)))


def layouts(options, precision):
    """Of each layout the ratio of tokens/s, the median over the repeats; in each the single rank runs beside them, first and last in turn."""
    results = {}
    print("\nGPT-2's width, %s: against one rank with two threads, tokens/s" % precision)
    for size, sequence, batch, micro_batch, compared in GROUPS:
        runs = {"one": []}
        for repeat in range(options.repeats):
            turn = [("one", 1, {})] + list(compared)
            for name, ranks, extra in turn[:: 1 if repeat % 2 == 0 else -1]:
                print("%s, layouts, %s, run %d of %d" % (precision, name, repeat + 1, options.repeats), file=sys.stderr, flush=True)
                runs.setdefault(name, []).append(run_mindpipe(options, precision, batch, micro_batch, 2 // ranks, ranks=ranks, sequence=sequence,
                                                              vocabulary=size["model.vocabulary"], extra=dict(size, **extra)))
        for name, ranks, _ in compared:
            ratios = [run["tokens_per_second"] / one["tokens_per_second"] for run, one in zip(runs[name], runs["one"])]
            results[name] = {"ratio": statistics.median(ratios), "ratios": ratios, "runs": runs[name], "one": runs["one"]}
            print("%-10s %d rank%s, %d layers, %2d micro-batches, %d tokens a step: %.2f x (%s)%s"
                  % (name, ranks, "s" if ranks > 1 else " ", size["model.layers"], batch // micro_batch, batch * sequence,
                     results[name]["ratio"], ", ".join("%.2f" % ratio for ratio in ratios),
                     "" if ranks > 1 else "; cut as if it were four ranks, which nobody asked for"))
    return results
