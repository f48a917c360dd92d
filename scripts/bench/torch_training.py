"""How a careful user of PyTorch trains on the CPU or a GPU: fused AdamW, bf16 autocast or f32, and what it takes."""
import json
import platform
import statistics
import time

import torch
import torch.nn.functional as F


def adamw(model, rate, device):
    """AdamW with decay on matrices only; fused where this version has it for the device. Returns the
    optimizer and its kind."""
    groups = [{"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    for kind in ("fused", "foreach"):
        try:
            optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95), **{kind: True})
            # some versions take the argument and refuse the CPU at the first step
            probe = torch.zeros(1, device=device, requires_grad=True)
            probe.grad = torch.zeros(1, device=device)
            torch.optim.AdamW([probe], **{kind: True}).step()
            return optimizer, kind
        except (RuntimeError, TypeError):
            continue
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95)), "plain"


def attention(q, k, v, causal=False):
    """Fused where this version has it."""
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    scores = q @ k.transpose(-1, -2) * q.shape[-1]**-0.5
    if causal:
        unseen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(unseen, -torch.inf)
    return scores.softmax(-1).to(v.dtype) @ v


def draw_weights(model):
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, std=0.02)


def wait_for(device):
    if device == "cuda":
        torch.cuda.synchronize()


def forget_peak(device):
    """Lets a process's peak of memory begin anew, so that compiling is not in it; says whether it does."""
    if device == "cuda":
        return False
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # of VmHWM
        return True
    except OSError:
        return False


def mib_of_process(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(field))


def peak_mib(device):
    """On a GPU what PyTorch has held of its memory, else what the process has held."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    return mib_of_process("VmHWM")


def product_rate(dtype, device, seconds=1.0):
    """The best rate of large products of this dtype and these threads, in GFLOP/s."""
    n, best = 8192 if device == "cuda" else 2048, 0.0
    a, b = torch.randn(n, n, device=device).to(dtype), torch.randn(n, n, device=device).to(dtype)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        wait_for(device)
        start = time.perf_counter()
        a @ b
        wait_for(device)
        best = max(best, 2e-9 * n**3 / (time.perf_counter() - start))
    return best


def add_options(parser):
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="bf16")
    parser.add_argument("--batch", type=int, default=4, help="samples a step")
    parser.add_argument("--micro-batch", type=int, default=0, help="samples at a time; 0: the batch")
    parser.add_argument("--steps", type=int, default=4, help="with those that warm up")
    parser.add_argument("--warm-up", type=int, default=1, help="first steps, which are not counted")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    parser.add_argument("--peak", action="store_true", help="also measure the rate of large products")


def parsed(parser):
    options = parser.parse_args()
    options.micro_batch = options.micro_batch or options.batch
    if options.batch % options.micro_batch or not 0 < options.warm_up < options.steps:
        parser.error("the batch must be a multiple of --micro-batch, and --steps more than --warm-up")
    options.import_mib = mib_of_process("VmRSS")
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    return options


def train(options, model, samples):
    """`samples(count)` gives the tensors of a batch, `model` of some samples of them the loss. Prints a line of
    JSON when the first step has ended; returns what the steps took."""
    model = model.to(options.device)
    optimizer, optimizer_kind = adamw(model, 3e-4, options.device)
    forward = torch.compile(model) if options.compile else model
    pieces = options.batch // options.micro_batch

    seconds, losses = [], []
    peak_of_steps = False
    for step in range(options.steps):
        if step == options.warm_up:
            peak_of_steps = forget_peak(options.device)
        fields = samples(options.batch)
        wait_for(options.device)
        start = time.perf_counter()
        fields = [field.to(options.device) for field in fields]
        # read once a step: a GPU is not waited for in between
        loss_sum = torch.zeros((), device=options.device)
        for piece in zip(*(field.split(options.micro_batch) for field in fields)):
            with torch.autocast(options.device, dtype=torch.bfloat16, enabled=options.precision == "bf16"):
                loss = forward(*piece) / pieces
            loss.backward()
            loss_sum += loss.detach()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss_sum.item())
        wait_for(options.device)
        seconds.append(time.perf_counter() - start)
        if step == 0:
            print(json.dumps({"first_step_seconds": seconds[0]}), flush=True)

    peak = peak_mib(options.device)  # before the measurement of products
    result = {
        "samples_per_second": options.batch / statistics.median(seconds[options.warm_up:]),
        "step_seconds": seconds[options.warm_up:],
        "first_step_seconds": seconds[0],
        "peak_mib": peak,
        "peak_of_steps": peak_of_steps,
        "import_mib": options.import_mib,
        "loss_first": losses[0],
        "loss_last": losses[-1],
        "precision": options.precision,
        "batch": options.batch,
        "micro_batch": options.micro_batch,
        "threads": options.threads,
        "optimizer": optimizer_kind,
        "compiled": options.compile,
        "fused_attention": hasattr(F, "scaled_dot_product_attention"),
        "parameters": sum(p.numel() for p in model.parameters()),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    if options.peak:
        result["product_gflops"] = product_rate(
            torch.bfloat16 if options.precision == "bf16" else torch.float32, options.device)
    return result
