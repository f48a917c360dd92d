"""Tables of what was measured: kernels beside what the device can do at best, and training beside its goals.
No program is run here."""

# Per token: 6 for each parameter, and attention's causal half.
def operations_per_token(parameters, layers, width, sequence):
    return 6 * parameters + 6 * layers * width * sequence


def kernel_rows(report, most=10):
    """The heaviest kernels of a step, with the share that each has of the step's kernels and of the measured
    ceiling: the time that its operations or its bytes need at the rates of a large product and a large copy,
    over the time that it took."""
    whole = sum(kernel["seconds"] * kernel["calls"] for kernel in report["kernels"])
    rows = []
    for kernel in report["kernels"]:
        products, memory = kernel["operations"] / report["operations_per_second"], kernel["bytes"] / report[
            "bytes_per_second"]
        rows.append({
            "name": kernel["name"], "shape": kernel["shape"], "calls": kernel["calls"],
            "microseconds": kernel["seconds"] * 1e6, "of_step": kernel["seconds"] * kernel["calls"] / whole,
            "bound": "products" if products >= memory else "memory",
            "of_ceiling": max(products, memory) / kernel["seconds"],
            "tflops": kernel["operations"] / kernel["seconds"] * 1e-12,
            "gbytes": kernel["bytes"] / kernel["seconds"] * 1e-9
        })
    return sorted(rows, key=lambda row: -row["of_step"])[:most]


def kernel_table(report, most=10):
    lines = [
        "%s, %s: a large product %.1f TFLOP/s, a large copy %.0f GB/s" %
        (report["device"], report["dtype"], report["operations_per_second"] * 1e-12,
         report["bytes_per_second"] * 1e-9),
        "%-26s %-38s %6s %11s %8s %9s %8s  %s" %
        ("kernel", "shape", "calls", "us", "TFLOP/s", "GB/s", "of step", "of ceiling")
    ]
    for row in kernel_rows(report, most):
        lines.append("%-26s %-38s %6.0f %11.2f %8.1f %9.0f %6.1f %%  %3.0f %% of %s" %
                     (row["name"], row["shape"], row["calls"], row["microseconds"], row["tflops"],
                      row["gbytes"], 100 * row["of_step"], 100 * row["of_ceiling"], row["bound"]))
    return lines


class Goal:
    """A row of the table of one GPU: what is compared with `must` and `aim`."""

    def __init__(self, what, key, must, aim, text="%.0f"):
        self.what, self.key, self.must, self.aim, self.text = what, key, must, aim, text

    def line(self, figures):
        value = figures.get(self.key)
        shown = "-" if value is None else self.text % value
        verdict = ("not measured" if value is None else "reaches the aim" if value >= self.aim else
                   "enough" if value >= self.must else "BELOW")
        return "%-52s %12s %10s %10s  %s" % (self.what, shown, self.text % self.must, self.text % self.aim,
                                             verdict)

    def is_missed(self, figures):
        return figures.get(self.key) is not None and figures[self.key] < self.must


GOALS = (Goal("GPT-2 124M, tokens/s", "gpt2-124m", 470e3,
              600e3), Goal("  against PyTorch, compiled", "gpt2-124m-of-torch", 1.05, 1.25,
                           "%.2f x"), Goal("GPT-2 1.5B, tokens/s", "gpt2-1.5b", 46e3, 55e3),
         Goal("  against PyTorch, compiled", "gpt2-1.5b-of-torch", 1.05, 1.25, "%.2f x"),
         Goal("Llama-8B shapes, 8 of 32 layers: of product rate", "llama-8b-share", 0.46, 0.55, "%.2f"))


def goal_table(figures):
    return ["%-52s %12s %10s %10s" %
            ("one H200, bf16", "here", "must", "aim")] + [goal.line(figures) for goal in GOALS]


def training_table(runs, before=""):
    """One line for each run that has figures; `before` stands before its name."""
    lines = ["%-28s %12s %10s %12s %14s" % ("training", "tokens/s", "step ms", "loss", "of products")]
    for name, run in runs.items():
        share = "%.0f %%" % (100 * run["of_products"]) if run.get("of_products") else "-"
        lines.append("%-28s %12.0f %10.1f %12.4f %14s" %
                     (before + name, run["tokens_per_second"], 1e3 * run["seconds"], run["loss"], share))
    return lines
