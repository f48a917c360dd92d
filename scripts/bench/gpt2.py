"""Training steps of GPT-2 124M: ours beside PyTorch's, and beside the rate of our own large products."""
import statistics

import peers
from running import SEQUENCE, rate_of_large_products, run_mindpipe

LAYERS, WIDTH, PARAMETERS = 12, 768, 124_439_808  # with 50,257 rows in the table, which is counted once


def median_of(runs, key):
    values = [run[key] for run in runs if run.get(key) is not None]
    return statistics.median(values) if values else float("nan")


def share_of_peak(tokens_per_second, gflops, causal):
    work = 6 * PARAMETERS + (6 if causal else 12) * LAYERS * WIDTH * SEQUENCE
    return tokens_per_second * work / (gflops * 1e9)


def compare(options, precision, with_products, warm_up):
    """`with_products`: each of our runs stands between two measurements of our large products, since the
    machine's own speed changes."""
    def ours():
        before = rate_of_large_products(options, precision) if with_products else 0
        run = run_mindpipe(options, precision, options.batch, options.micro_batch, options.threads,
                           warm_up=warm_up)
        if with_products:
            run["own_products_gflops"] = (before + rate_of_large_products(options, precision)) / 2
        return run

    words = [
        "torch_gpt.py", "--batch",
        str(options.batch), "--micro-batch",
        str(options.micro_batch), "--sequence",
        str(SEQUENCE)
    ]
    return peers.in_turn(options, precision, ours,
                         lambda compiled: peers.run_torch(options, words, precision, compiled, warm_up))


def report(precision, runs, not_compiled):
    """Prints what the runs took, and returns the ratios of ours."""
    ours = runs["mindpipe"][0]
    of_torch = runs.get(peers.EAGER, []) + runs.get(peers.COMPILED, [])
    peak = max((run["product_gflops"] for run in of_torch),
               default=median_of(runs["mindpipe"], "own_products_gflops"))
    print(
        "\nGPT-2 124M, %s, sequence %d, batch %d, micro-batch %d, %d threads; "
        "%s %.0f GFLOP/s (the shares are of them)"
        % (precision, SEQUENCE, ours["batch"], ours["micro_batch"], ours["threads"],
           "torch %s, its large products" %
           of_torch[0]["torch"] if of_torch else "our own large products", peak))
    print("%-16s %10s %10s %10s %10s %14s %14s %16s" % ("", "tokens/s", "step s", "peak MiB", "start s",
                                                        "first step s", "causal share", "full share"))
    for who, many in runs.items():
        speed = median_of(many, "tokens_per_second")
        print("%-16s %10.1f %10.2f %10.0f %10.2f %14.2f %12.0f %% %14.0f %%" %
              (who, speed, statistics.median(s for run in many for s in run["step_seconds"]),
               median_of(many, "peak_mib"), median_of(many, "to_first_step_seconds"),
               median_of(many, "first_step_seconds"), 100 * share_of_peak(speed, peak, True),
               100 * share_of_peak(speed, peak, False)))
    if of_torch:
        print("of PyTorch's memory %.0f MiB are there before it has a model" % median_of(of_torch, "import_mib"))
    found = peers.against(runs, "tokens_per_second", not_compiled)
    peers.print_ratios(found, "tokens")
    shares = [
        share_of_peak(run["tokens_per_second"], run["own_products_gflops"], True) for run in runs["mindpipe"]
        if "own_products_gflops" in run
    ]
    if shares:
        share = statistics.median(shares)
        print("whole step: %.0f %% of the rate of our own large products beside it, %.0f GFLOP/s"
              % (100 * share, median_of(runs["mindpipe"], "own_products_gflops")))
        found["share_of_own_products"] = share
    return dict(found, product_gflops=peak if of_torch else None,
                to_first_step_seconds=median_of(runs["mindpipe"], "to_first_step_seconds"), runs=runs)
