"""What the bench says of its figures, without measuring any."""
import contextlib
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "bench"))
import folding
import large_products
import layouts
import machine
import noise
import peers
import running
import verdicts
import versions
from figures import OF_TOKENIZERS, figures

TILES = verdicts.Machine(machine.TILES, packed_weights=False)
PAIRS = verdicts.Machine(machine.PAIRS, packed_weights=False)


def row_of(name, value, on=TILES):
    return next(row for row in verdicts.judge({name: value}, on) if row["name"] == name)


def verdict_of(name, value, on=TILES):
    return row_of(name, value, on)["verdict"]


class Verdicts(unittest.TestCase):
    def test_a_bound_from_below_is_met_at_the_bound_and_missed_by_what_lacks(self):
        self.assertEqual(verdict_of("speed f32", 1.3), "met")
        self.assertEqual(verdict_of("speed f32", 1.235), "missed by 5.0 %")

    def test_a_bound_from_above_is_missed_by_what_is_too_much(self):
        self.assertEqual(verdict_of("memory bf16", 0.75), "met")
        self.assertEqual(verdict_of("start", 3.9), "missed by 30.0 %")
        self.assertEqual(verdict_of("recording", 0.02), "missed by 100.0 %")

    def test_a_figure_that_is_none_is_no_success(self):
        self.assertEqual(verdict_of("start", float("nan")), "missed: no figure came of it")
        self.assertEqual(verdict_of("speed bf16", "not measurable here: no PyTorch"),
                         "not measurable here: no PyTorch")
        self.assertIn("not measured", verdict_of("waiting", None))

    def test_a_name_that_no_must_has_is_refused(self):
        with self.assertRaises(KeyError):
            verdicts.judge({"sped f32": 1}, TILES)

    def test_the_unit_decides_what_is_asked_for_in_bf16_and_the_row_says_why(self):
        self.assertEqual((verdict_of("speed bf16", 1.25, TILES), verdict_of("speed bf16", 1.25, PAIRS)),
                         ("missed by 3.8 %", "met"))
        self.assertIn("here is AMX", row_of("speed bf16", 1.25, TILES)["why"])
        without = row_of("speed bf16", 1.25, verdicts.Machine("avx2", False))
        self.assertEqual((without["must"], without["verdict"]), (1.2, "met"))
        self.assertIn("avx2", without["why"])

    def test_what_folding_gives_is_read_from_the_steps_of_its_test(self):
        line = "%s of 4 chunks on 4 x 2 x 1, sums %s f, messages 0.02 f, zero 0%s: %s ms, simulated 1.0 (+0.0 %%); idle time"
        text = "\n".join(line % row for sums in ("14.4", "45.2") for row in (
            ("breadth-first", sums, "", "100.0"), ("breadth-first", sums, folding.BEHIND, "120.0"),
            ("breadth-first", sums, folding.ONE_PIECE, "113.0"), ("1f1b", sums, folding.BEHIND, "130.0")))
        ratios = {"1f1b": 1.3, "unfolded": 1.2, "one piece": 1.13}
        self.assertEqual(folding.ratios_of(text), {14.4: ratios, 45.2: ratios})
        report = {"comparisons": {}, "layouts": {}, "folding": {name: [ratio] * 3 for name, ratio in ratios.items()}}
        found, _ = figures(report)
        self.assertEqual([verdict_of(name, found[name]) for name in ("folding 1f1b 0", "folding 1f1b 1", "folding one piece 2")],
                         ["met", "missed by 3.7 %", "met"])

    def test_packed_weights_may_take_more_memory(self):
        packed = TILES._replace(packed_weights=True)
        self.assertEqual((verdict_of("memory f32", 0.8, packed), row_of("memory f32", 0.8, TILES)["must"]),
                         ("met", 0.75))

    def test_only_processors_with_tiles_are_held_to_their_musts_yet_all_show_the_figure(self):
        for name in ("tiles", "onednn", "one row"):
            row = row_of(name, 0.1, PAIRS)
            self.assertEqual((row["measured"], row["verdict"][:12]), (0.1, "no must here"))
            self.assertIn("missed", verdict_of(name, 0.1, TILES))

    def test_the_summary_counts_all_and_names_what_is_missed(self):
        rows = verdicts.judge({"waiting": 0.96, "recording": 0.001, "tiles": 0.5}, PAIRS)
        self.assertEqual(verdicts.missed(rows), ["waiting"])
        self.assertEqual(verdicts.summary(rows),
                         "musts: 1 met, 1 missed (waiting), %d without a verdict" % (len(verdicts.MUSTS) - 2))
        self.assertEqual(len(verdicts.table(rows)), len(verdicts.MUSTS) + 1)


class Layouts(unittest.TestCase):
    def test_a_machine_that_grows_slower_favours_no_layout(self):
        at = [{"tokens_per_second": rate} for rate in (100.0, 90.0, 80.0, 70.0, 60.0)]
        runs = {"one": at[::2], "data": at[1::2]}
        self.assertEqual(layouts.ratios_of(runs, "data"), [1.0, 1.0])


class Instructions(unittest.TestCase):
    VECTORS = {"avx2", "fma", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl"}

    def test_the_best_set_is_the_last_that_is_whole(self):
        for flags, name in ((set(), "baseline"), (self.VECTORS - {"avx512vl"}, "avx2"),
                            (self.VECTORS, "avx512"), (self.VECTORS | {"avx512_bf16"}, "avx512+bf16"),
                            (self.VECTORS | {"amx_tile", "amx_bf16"}, "avx512+amx"),
                            ({"avx2", "fma", "bmi2", "avx512_bf16", "amx_tile", "amx_bf16"}, "avx2")):
            self.assertEqual(machine.best_instructions(flags), name)

    def test_a_setting_decides(self):
        self.assertEqual(machine.instructions(["train.clip=1", "device.instructions=avx2"]), "avx2")


class Options:
    def __init__(self, repeats=2, not_compiled=""):
        self.repeats, self.not_compiled = repeats, not_compiled
        self.peers = [peers.EAGER] if not_compiled else [peers.EAGER, peers.COMPILED]


def run_of(rate, mib=100.0):
    return {"tokens_per_second": rate, "peak_mib": mib}


def quiet(call, *arguments):
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(
            nowhere):
        return call(*arguments)


class Peers(unittest.TestCase):
    def test_the_better_peer_is_the_faster_one_of_each_comparison(self):
        runs = {"mindpipe": [run_of(200.0), run_of(220.0)], peers.EAGER: [run_of(100.0), run_of(110.0)],
                peers.COMPILED: [run_of(160.0, 200.0), run_of(160.0, 200.0)]}
        found = peers.against(runs, "tokens_per_second", "")
        self.assertEqual(found["better"], peers.COMPILED)
        self.assertEqual((found[peers.EAGER]["speed_ratio"], found[peers.COMPILED]["memory_ratio"]), (2.0, 0.5))
        runs[peers.COMPILED] = [run_of(90.0), run_of(95.0)]
        self.assertEqual(peers.against(runs, "tokens_per_second", "")["better"], peers.EAGER)

    def test_runs_go_in_turn_and_another_begins_each_round(self):
        order = []
        quiet(peers.in_turn, Options(), "f32", lambda: order.append("ours"), order.append)
        self.assertEqual(order, ["ours", False, True, True, False, "ours"])

    def test_a_peer_that_fails_to_compile_is_left_out_and_the_reason_kept(self):
        def theirs(compiled):
            if compiled:
                running.fail("'torch_gpt.py' ended with 1:\nTraceback\nInductorError: no compiler\nset VERBOSE=1")
            return run_of(100.0)

        runs, why = quiet(peers.in_turn, Options(), "f32", lambda: run_of(150.0), theirs)
        self.assertEqual((list(runs), why), (["mindpipe", peers.EAGER], "InductorError: no compiler"))
        found = peers.against(runs, "tokens_per_second", why)
        self.assertEqual((found["better"], found["not_compiled"]), (peers.EAGER, why))

    def test_an_eager_peer_that_fails_ends_the_bench(self):
        with self.assertRaises(SystemExit):
            quiet(peers.in_turn, Options(not_compiled="no g++"), "f32", lambda: run_of(150.0),
                  lambda compiled: running.fail("out of memory"))


def shape(form, ours, peak=100.0, k=3072, onednn=50.0):
    return {"form": form, "n": 1024, "k": k, "m": 768, "cold": False, "ours": ours, "real_peak": peak,
            "raw_peak": 2 * peak, "onednn": onednn, "ours_bf16": ours, "real_peak_bf16": peak,
            "raw_peak_bf16": 2 * peak, "onednn_bf16": onednn}


class LargeProducts(unittest.TestCase):
    SHAPES = [shape("forward", 60.0), shape("forward", 70.0), shape("forward", 50.0), shape("input", 80.0),
              shape("weight", 40.0, onednn=20.0), shape("weight", 1.0, k=768),
              dict(shape("forward", 3.0), n=1),
              dict(shape("forward", 1.0), n=1, cold=True, weight_gbs=20.0, weight_gbs_bf16=15.0, copy_gbs=20.0,
                   read_gbs=25.0)]

    def test_of_each_form_the_median_and_of_the_forms_the_least_counts(self):
        large = large_products.by_form(self.SHAPES)["bf16"]
        self.assertEqual([large[form]["of_real_peak"] for form in large_products.FORMS], [0.6, 0.8, 0.4])
        self.assertEqual(large["weight"]["of_raw_peak"], 0.2)
        self.assertEqual(large_products.least(large, "of_real_peak"), 0.4)
        self.assertEqual(large_products.least(large, "of_onednn"), 1.2)

    def test_one_row_is_a_share_of_a_copy(self):
        row = large_products.one_row(self.SHAPES)
        self.assertEqual((row["bf16"], row["cached_bf16"]), (0.75, 2.25))


class Noise(unittest.TestCase):
    def test_a_measured_step_is_held_against_its_neighbours(self):
        shares = noise.shares_of([9, 10, 11, 12, 12.5, 13], [False, True, False, False, True, False])
        self.assertEqual(shares, [0, 0])
        self.assertAlmostEqual(noise.shares_of([10, 11, 10], [False, True, False])[0], 0.1)

    def test_it_is_judged(self):
        self.assertEqual(verdict_of("noise", 0.004), "met")
        self.assertEqual(verdict_of("noise", 0.01), "missed by 100.0 %")


class Figures(unittest.TestCase):
    COMPARISON = {peers.EAGER: {"speed_ratio": 1.6, "memory_ratio": 0.6},
                  peers.COMPILED: {"speed_ratio": 1.35, "memory_ratio": 0.7}, "better": peers.COMPILED,
                  "to_first_step_seconds": 2.0}
    REPORT = {
        "comparisons": {"f32": COMPARISON},
        "products": {"large": quiet(large_products.by_form, LargeProducts.SHAPES), "one_row": {"bf16": 0.9}},
        "layouts": {"bf16": {name: {"ratio": 0.9}
                             for name in ("data", "tensor", "pipeline", "shards")}},
        "runtime": {"recording": [{"share": 0.001}], "waiting": [{"share": 0.99}, {"share": 0.95}]}
    }

    ORDERS = {"made_s": 61.0, "more_than_plain_s": 1.5, "copies": 1.01}
    TOKENIZERS = {
        "training_s": 9.0, "import_mb": 201.0,
        "tokenizers": {"a": {"rate": 12.0, "theirs": 4.0, "ratio": 2.9, "two_threads": 1.7, "letter": 2.0, "spaces": 0.3},
                       "b": {"rate": 20.0, "theirs": 9.0, "ratio": 2.2, "two_threads": 1.8, "letter": 0.4, "spaces": 3.0}}
    }

    def test_of_tokenizers_and_orders_each_must_is_judged_by_the_worst(self):
        rows = self.judged(orders=self.ORDERS, tokenizing=self.TOKENIZERS)
        self.assertEqual(
            {name: rows[name]["verdict"].split(" by ")[0]
             for name in rows if name.startswith(("order", "tokens", "tokenizer", "import"))},
            {"order made": "missed", "order kept": "met", "order memory": "met", "tokens": "met",
             "tokens fast peer": "met", "tokens slow peer": "missed", "tokens threads": "met",
             "tokens letter": "met", "tokens spaces": "missed", "tokenizer trained": "met", "import memory": "missed"})
        self.assertEqual((rows["tokens"]["measured"], rows["tokens threads"]["measured"]), (12.0, 1.7))

    def test_twice_a_fast_peer_is_enough_and_without_one_there_is_a_reason(self):
        fast = dict(self.TOKENIZERS, tokenizers={"b": self.TOKENIZERS["tokenizers"]["b"]})
        rows = self.judged(tokenizing=fast)
        self.assertEqual((rows["tokens fast peer"]["verdict"], rows["tokens slow peer"]["verdict"]),
                         ("met", "no must here: tokenizers reaches 8 MB/s with each"))
        rows = self.judged(tokenizing={"missing": "bench.py: no tokenizers"})
        self.assertEqual({rows[name]["verdict"] for name in OF_TOKENIZERS}, {"not measurable here: no tokenizers"})

    def judged(self, on=TILES, **changes):
        found, against = figures(dict(self.REPORT, **changes))
        return {row["name"]: row for row in verdicts.judge(found, on, against)}

    def test_all_of_a_report_is_judged_and_the_worst_counts(self):
        rows = self.judged()
        self.assertEqual(
            {name
             for name, row in rows.items() if row["verdict"] == "met"},
            {"speed f32", "memory f32", "start", "onednn", "one row", "data bf16", "tensor bf16",
             "pipeline bf16", "recording"})
        self.assertEqual((rows["waiting"]["measured"], rows["tiles"]["measured"]), (0.95, 0.4))
        self.assertIn("not measured", rows["step f32"]["verdict"])

    def test_the_better_peer_is_judged_and_named(self):
        row = self.judged()["speed f32"]
        self.assertEqual((row["measured"], row["against"]), (1.35, peers.COMPILED))
        eager = dict(self.COMPARISON, better=peers.EAGER)
        row = self.judged(comparisons={"f32": eager})["speed f32"]
        self.assertEqual((row["measured"], row["against"]), (1.6, peers.EAGER))

    def test_memory_of_gpt2_is_held_against_the_compiled_peer_of_others_against_the_better_one(self):
        eager = dict(self.COMPARISON, better=peers.EAGER)
        rows = self.judged(comparisons={"f32": eager}, models={"f32": {"bert": eager}})
        self.assertEqual([(rows[name]["measured"], rows[name]["against"])
                          for name in ("memory f32", "bert memory f32")],
                         [(0.7, peers.COMPILED), (0.6, peers.EAGER)])

    def test_without_a_compiled_peer_the_eager_one_is_judged(self):
        alone = {peers.EAGER: self.COMPARISON[peers.EAGER], "better": peers.EAGER, "not_compiled": "no g++",
                 "to_first_step_seconds": 2.0}
        rows = self.judged(comparisons={"f32": alone})
        self.assertEqual([(rows[name]["measured"], rows[name]["against"]) for name in ("speed f32", "memory f32")],
                         [(1.6, peers.EAGER), (0.6, peers.EAGER)])

    def test_without_a_peer_there_is_no_verdict_on_it(self):
        alone = {"f32": {"to_first_step_seconds": 2.0, "share_of_own_products": 0.6}}
        rows = self.judged(comparisons=alone)
        self.assertEqual(rows["speed f32"]["verdict"], "not measurable here: no PyTorch")
        self.assertEqual((rows["start"]["verdict"], rows["step f32"]["verdict"]), ("met", "met"))


class Versions(unittest.TestCase):
    def test_the_interval_leaves_out_as_many_at_each_end_as_the_binomial_distribution_allows(self):
        # 2 x 0.5^6 = 3.1 % for 6, 2 x (1 + 9) / 2^9 = 3.9 % for 9, 2 x (1 + 12 + 66) / 2^12 = 3.9 % for 12
        for count, left_out in ((6, 0), (8, 0), (9, 1), (11, 1), (12, 2), (20, 5)):
            ratios = [1 + 0.01 * (7 * i % count) for i in range(count)]
            ordered = sorted(ratios)
            self.assertEqual(versions.interval_of(ratios), (ordered[left_out], ordered[-1 - left_out]), count)

    def test_five_repeats_have_no_interval(self):
        self.assertIsNone(versions.interval_of([0.99, 1, 1.01, 1.02, 0.98]))
        self.assertIn("new at 1.000 of old's speed, too few for an interval (0.980, 0.990, ",
                      versions.line_of("lanes", [0.99, 1, 1.01, 1.02, 0.98]))
        self.assertIn("new at 1.005 of old's speed, 95 %: 0.980 to 1.030 (0.980, 0.990, ",
                      versions.line_of("lanes", [0.99, 1, 1.01, 1.02, 0.98, 1.03]))


if __name__ == "__main__":
    unittest.main()
