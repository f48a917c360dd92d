"""What the noise scale takes of a step that measures it: GPT-2 124M, every other step of one run measured."""
import argparse
import statistics

from running import run_mindpipe

PAIRS, BATCH, MICRO_BATCH = 12, 4, 2


def shares_of(seconds, measured):
    """By how much each measured step is longer than the mean of the steps before and behind it."""
    return [
        2 * seconds[i] / (seconds[i - 1] + seconds[i + 1]) - 1 for i in range(1, len(seconds) - 1)
        if measured[i] and not measured[i - 1] and not measured[i + 1]
    ]


def noise(options):
    """The median share of a step, and the shares of all pairs."""
    longer = argparse.Namespace(**{**vars(options), "steps": 2 * PAIRS + 1})
    run = run_mindpipe(longer, "f32", BATCH, MICRO_BATCH, options.threads,
                       extra={"reproducible.data": 2, "train.noise_every": 2})
    shares = shares_of(run["step_seconds"], run["noise_measured"])
    share = statistics.median(shares)
    print("\nnoise scale: a measured step of GPT-2 124M takes %.2f %% longer than its neighbours (median of %d, "
          "half of them from %.2f to %.2f %%)" % (100 * share, len(shares), *(100 * quarter for quarter in (
              statistics.quantiles(shares)[0], statistics.quantiles(shares)[2]))))
    return {"share": share, "shares": shares}
