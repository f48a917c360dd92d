"""The parts of gpu-check in the order of their worth, each with its seconds."""
import json
import os
import shutil

import running
import tables
import training
from devices import device_memory, looked_at, tuned
from reading import FAILED, MISSING, PASSED, TIMED_OUT, first_complaint, read_sanitizer, read_tests


class Part:
    """work(check, seconds) returns (outcome, why, figures). `seconds` are kept for it; it may take `most` where
    parts before it have left time. Without a library that it `needs` it does not run; without one that it `uses`
    only the rest of it does."""

    def __init__(self, name, settles, seconds, work, most=0, needs=(), uses=()):
        self.name, self.settles, self.seconds, self.work = name, settles, seconds, work
        self.most, self.needs, self.uses = most or seconds, needs, uses


def program(check, name):
    return os.path.join(check.bundle, "bin", name)


def test(name, only="*", ranks=0):
    """A GoogleTest program of the bundle, under mpirun where ranks are asked for."""
    def work(check, seconds, wrapper=(), read=read_tests, log=name):
        if not os.path.exists(program(check, name)):
            return MISSING, "the bundle has no bin/%s" % name, {}
        environment = dict(check.environment, MINDPIPE_TEST_DEVICE=check.device, MINDPIPE_STEPS="3",
                           MINDPIPE_CONFIGS=os.path.join(check.bundle, "configs"))
        if check.device != "cuda":
            environment["MINDPIPE_ALL_LAYOUTS"] = "600"  # one layout in 600: a rehearsal
        command = [*wrapper, program(check, name), "--gtest_color=no", "--gtest_filter=" + only]
        if ranks:
            environment["OMP_NUM_THREADS"] = "1"
            command = [
                program(check, "mpirun"), "--oversubscribe", "--bind-to", "none", "-np",
                str(ranks), *command
            ]
        code, text, _ = running.run(command, environment, seconds,
                                    check.log(log + ("-%d" % ranks if ranks else "")))
        check.described(text)
        return read(code, text)
    return work


def sanitized(tool, name, only):
    """The same under one of compute-sanitizer's tools."""
    def work(check, seconds):
        found = shutil.which("compute-sanitizer",
                             path=check.environment["PATH"] + ":/usr/local/cuda/bin:/opt/cuda/bin")
        if found is None:
            return MISSING, "compute-sanitizer is not on this machine", {}
        wrapper = (found, "--tool", tool, "--error-exitcode", "99", "--print-limit", "20")
        return test(name, only)(check, seconds, wrapper, read_sanitizer, tool)
    return work


def measured_kernels(check, seconds):
    """Ceilings and kernels; what trains is compared with the former."""
    tiny = [] if check.device == "cuda" else [
        "--samples", "2", "--sequence", "64", "--width", "64", "--heads", "2", "--layers", "2",
        "--vocabulary", "256", "--product", "256", "--copy-mib", "4", "--least-seconds", "0.0005"
    ]
    output = check.path("kernels.json")
    code, text, _ = running.run(
        [program(check, "kernels_bench"), "--device", check.device, "--json", output, *tiny],
        check.environment, seconds, check.log("kernels_bench"))
    if code != 0:
        return (TIMED_OUT, "after: " + first_complaint(text),
                {}) if code is None else (FAILED, "%s: %s" %
                                          (running.how_it_ended(code), first_complaint(text)), {})
    with open(output) as file:
        report = json.load(file)
    tables.kernel_rows(report)  # fails here, and not where all parts are told of
    line = "a large product %.1f TFLOP/s, a large copy %.0f GB/s" % (
        report["operations_per_second"] * 1e-12, report["bytes_per_second"] * 1e-9)
    check.kernels = report
    return PASSED, line, report


def keep(check, name, case, figures):
    """A training's figures stand beside the others', with their share of what large products reach."""
    if check.kernels:
        work = tables.operations_per_token(case.parameters, case.layers, case.width, case.sequence)
        figures["of_products"] = figures["tokens_per_second"] * work / check.kernels["operations_per_second"]
    check.runs[name] = figures


def trained(name):
    def work(check, seconds):
        case = training.CASES[name] if check.device == "cuda" else training.REHEARSAL
        code, text, figures = training.train(case, name, check, seconds)
        if figures is None:
            return (TIMED_OUT if code is None else FAILED), first_complaint(text), {}
        keep(check, name, case, figures)
        return PASSED, "%.0f tokens/s, loss %.4f after %d steps" % (
            figures["tokens_per_second"], figures["loss"], figures["steps"]), figures
    return work


def trained_by_others(name, others, train):
    """What another program cannot do here is no fault of ours: named, and nothing more."""
    def work(check, seconds):
        case = training.CASES[name] if check.device == "cuda" else training.REHEARSAL
        try:
            code, text, figures = train(case, name, check, seconds)
        except OSError as error:
            return MISSING, "%s cannot be started: %s" % (others, error), {}
        if figures is None:
            return MISSING, "%s %s: %s" % (others, running.how_it_ended(code), first_complaint(text)), {}
        keep(check, name + "-" + others, case, figures)
        return PASSED, "%.0f tokens/s" % figures["tokens_per_second"], figures
    return work


KERNELS, LIBRARY = "test_kernels_cuda_kernels", "test_kernels_cuda_library"
MODELS, PARITY = "test_models_cuda", "test_runtime_mpi"
MEMCHECKED = ("Cuda.NormOf*:Cuda.ResidualNorm*:Cuda.SumsOverRows*:Cuda.Embedding*:"
              "Cuda.Classifier*:Cuda.Updates*:Cuda.Rotary*:Cuda.Moves*:"
              "Cuda.BothGradients*:Cuda.LossesAndGradients*:Cuda.SeveralRanges*")
RACECHECKED = ("Cuda.NormOf*:Cuda.SumsOverRows*:Cuda.Embedding*:Cuda.Classifier*:Cuda.SumsOfSquares*:"
               "Cuda.BothGradients*:Cuda.LossesAndGradients*:Cuda.SeveralRanges*")

# Every product is cuBLASLt's. Attention is cuDNN's, whose frontend wants the runtime beside it, or else our own.
PRODUCTS, ATTENTION = ("libcublasLt",), ("libcudnn", "libcudart")
COMPUTES = {"needs": PRODUCTS, "uses": ATTENTION}

PARTS = (
    Part("doctor", "what this machine has", 15, looked_at),
    Part("kernels", "each operation that is a kernel of our own, per dtype, against the processor; how data/devices "
         "would describe this GPU", 35, test(KERNELS)),
    Part(
        "library",
        "products by cuBLASLt, attention by cuDNN and by our own kernels, against the processor and the book",
        40, test(LIBRARY), **COMPUTES),
    Part("ceilings",
         "what this GPU does at best, and the share of it that each kernel of a step of GPT-2 124M has", 30,
         measured_kernels, **COMPUTES),
    Part("gpt2-124m", "training GPT-2 124M", 30, trained("gpt2-124m"), **COMPUTES),
    Part("gpt2-124m-torch", "the same by PyTorch: compiled, fused attention, fused AdamW", 35,
         trained_by_others("gpt2-124m", "torch", training.train_torch), 90),
    Part("parity-2", "the bits of one rank on grids of two that share this GPU", 25,
         test(PARITY, "Parity.EveryLayout*", 2), 60, **COMPUTES),
    Part("parity-4", "the same on grids of four", 25, test(PARITY, "Parity.EveryLayout*", 4), 60, **COMPUTES),
    Part("subnets-2", "a supernet on two stages, and on two lanes, of this GPU", 15,
         test(PARITY, "Subnets.OnTheDeviceOfTheTests*", 2), **COMPUTES),
    Part("models", "losses and gradients of small models against the processor", 20, test(MODELS), **COMPUTES),
    Part("gpt2-1.5b", "training GPT-2 1.5B", 20, trained("gpt2-1.5b"), **COMPUTES),
    Part("llama-8b", "training a quarter of Llama 8B, sequences of 8192", 20, trained("llama-8b"), **COMPUTES),
    Part("tune", "GPT-2 124M with the fastest algorithm of each product", 25, tuned, **COMPUTES),
    Part("memory", "what the device holds of GPT-2 124M beside the ledger", 15, device_memory, **COMPUTES),
    Part("nccl-self", "communicators of one rank, on several streams, that send to themselves", 10,
         test(PARITY, "NcclOfOneRank.*", 1), needs=(*PRODUCTS, "libnccl")),
    Part("memcheck", "no kernel of ours reads or writes beside its operands", 15,
         sanitized("memcheck", KERNELS, MEMCHECKED)),
    Part("racecheck", "no two threads of a block meet in shared memory", 15,
         sanitized("racecheck", KERNELS, RACECHECKED)),
    Part("racecheck-attention", "the same in our own attention", 15,
         sanitized("racecheck", LIBRARY, "CudaAttentionCases.OurOwn*"), needs=PRODUCTS),
    Part("paper", "engines and workspaces of plans beside those on paper, and this GPU in cuDNN's words", 60,
         test("test_paper_on_gpu"), needs=(*PRODUCTS, *ATTENTION)),
    Part("gpt2-1.5b-torch", "GPT-2 1.5B by PyTorch, compiled", 15,
         trained_by_others("gpt2-1.5b", "torch", training.train_torch), 120),
)
LLM_C = Part("gpt2-124m-llm.c", "the same by llm.c", 30,
             trained_by_others("gpt2-124m", "llm.c", training.train_llm_c))
