"""What a bench's report has for the musts of verdicts.py. No program is run here."""
import large_products
import peers

NO_TOKENIZERS = "not measurable here: no tokenizers"
OF_TOKENIZERS = ("tokens", "tokens fast peer", "tokens slow peer", "tokens threads", "tokens letter", "tokens spaces",
                 "tokenizer trained", "import memory")
FAST_PEER = 8  # MB/s of tokenizers, from which on twice its rate is demanded
NO_PEER = "not measurable here: no PyTorch"


def compared(comparison, memory_of):
    """Speed and memory, each with the peer that it is held against: of speed the better one."""
    if "better" not in comparison:
        return {"speed": (NO_PEER, ""), "memory": (NO_PEER, "")}
    better = comparison["better"]
    return {
        "speed": (comparison[better]["speed_ratio"], better),
        "memory": (comparison[memory_of]["memory_ratio"], memory_of)
    }


def compared_models(report):
    """Of each must that holds our figures against PyTorch's: figure and peer. GPT-2's memory is held against the
    compiled peer where there is one, the other models' against the better one."""
    found = {}
    for precision, comparison in report["comparisons"].items():
        memory_of = peers.COMPILED if peers.COMPILED in comparison else peers.EAGER
        for must, figure in compared(comparison, memory_of).items():
            found["%s %s" % (must, precision)] = figure
    for precision, of_kinds in report.get("models", {}).items():
        for kind, comparison in of_kinds.items():
            for must, figure in compared(comparison, comparison.get("better")).items():
                found["%s %s %s" % (kind, must, precision)] = figure
    return found


def of_texts(report):
    """Figures of orders of samples and of tokenizers: of each the tokenizer that is farthest from its must."""
    found = {}
    if "orders" in report:
        order = report["orders"]
        found = {"order made": order["made_s"], "order kept": order["more_than_plain_s"], "order memory": order["copies"]}
    if "tokenizing" in report:
        tokenizing = report["tokenizing"]
        if "missing" in tokenizing:
            return dict(found, **{must: NO_TOKENIZERS for must in OF_TOKENIZERS})
        all_of_them = list(tokenizing["tokenizers"].values())
        for must, key in (("tokens", "rate"), ("tokens threads", "two_threads"), ("tokens letter", "letter"),
                          ("tokens spaces", "spaces")):
            found[must] = min(one[key] for one in all_of_them)
        fast = [one["ratio"] for one in all_of_them if one["theirs"] >= FAST_PEER]
        slow = [one["ratio"] for one in all_of_them if one["theirs"] < FAST_PEER]
        found["tokens fast peer"] = min(fast, default="no must here: tokenizers reaches no 8 MB/s")
        found["tokens slow peer"] = min(slow, default="no must here: tokenizers reaches 8 MB/s with each")
        found["tokenizer trained"] = tokenizing["training_s"]
        found["import memory"] = tokenizing["import_mb"]
    return found


def figures(report):
    """What verdicts.judge is told, by the names of its musts: all that was measured, and the peer of those
    figures that have one."""
    with_peers = compared_models(report)
    found = {must: figure for must, (figure, _) in with_peers.items()}
    for precision, comparison in report["comparisons"].items():
        found["step " + precision] = comparison.get("share_of_own_products")
    starts = [comparison["to_first_step_seconds"] for comparison in report["comparisons"].values()]
    if starts:
        found["start"] = max(starts)
    if "products" in report:
        large = report["products"]["large"]["bf16"]
        found["tiles"] = large_products.least(large, "of_real_peak")
        found["onednn"] = large_products.least(large, "of_onednn")
        found["one row"] = report["products"]["one_row"]["bf16"]
    for precision, results in report["layouts"].items():
        found.update(
            {"%s %s" % (name, precision): results[name]["ratio"]
             for name in ("data", "tensor", "pipeline")})
    if "runtime" in report:
        found["waiting"] = min(line["share"] for line in report["runtime"]["waiting"])
        found["recording"] = report["runtime"]["recording"][0]["share"]
    if "noise" in report:
        found["noise"] = report["noise"]["share"]
    for name, ratios in report.get("folding", {}).items():
        found.update({"folding %s %d" % (name, place): ratio for place, ratio in enumerate(ratios)})
    for ranks, line in report.get("checkpoints", {}).items():
        for name in ("save", "load", "background_cost", "stood_still"):
            found["%s %s" % (name, ranks)] = line[name]
    found.update(of_texts(report))
    return found, {must: peer for must, (_, peer) in with_peers.items() if peer}
