"""What this machine's processors have."""
import platform

# In ascending order, as kernels/cpu/isa.cpp names them, with the flags of Linux that each adds.
INSTRUCTIONS = (("baseline", set()), ("avx2", {"avx2", "fma", "bmi2"}),
                ("avx512", {"avx512f", "avx512bw", "avx512dq", "avx512vl"}), ("avx512+bf16", {"avx512_bf16"}),
                ("avx512+amx", {"amx_tile", "amx_bf16"}))
TILES, PAIRS = "avx512+amx", "avx512+bf16"


def cpuinfo(key):
    with open("/proc/cpuinfo") as file:
        return next((line.split(":", 1)[1].strip() for line in file if line.startswith(key)), "")


def processor():
    return cpuinfo("model name") or platform.machine()


def best_instructions(flags):
    """The best set of a processor with these flags; the last two need what stands before both alone."""
    best, basis = "baseline", True
    for name, needed in INSTRUCTIONS:
        if basis and needed <= flags:
            best = name
        elif name not in (TILES, PAIRS):
            basis = False
    return best


def instructions(settings):
    """The set that our runs take: the processor's best, or the one that a setting names."""
    named = [setting.split("=", 1)[1] for setting in settings if setting.startswith("device.instructions=")]
    if named and named[-1] != "auto":
        return named[-1]
    return best_instructions(set(cpuinfo("flags").split()))
