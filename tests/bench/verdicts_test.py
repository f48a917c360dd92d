"""What the bench says of its figures, without measuring any."""
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "bench"))
import bench
import layouts
import verdicts


def verdict_of(name, value):
    return next(row["verdict"] for row in verdicts.judge({name: value}) if row["name"] == name)


class Verdicts(unittest.TestCase):
    def test_a_bound_from_below_is_met_at_the_bound_and_missed_by_what_lacks(self):
        self.assertEqual(verdict_of("speed f32", 1.1), "met")
        self.assertEqual(verdict_of("speed f32", 1.045), "missed by 5.0 %")

    def test_a_bound_from_above_is_missed_by_what_is_too_much(self):
        self.assertEqual(verdict_of("memory bf16", 0.8), "met")
        self.assertEqual(verdict_of("start", 3.9), "missed by 30.0 %")
        self.assertEqual(verdict_of("recording", 0.02), "missed by 100.0 %")

    def test_a_figure_that_is_none_is_no_success(self):
        self.assertEqual(verdict_of("start", float("nan")), "missed: no figure came of it")
        self.assertEqual(verdict_of("tiles", "not measurable here: no AMX"), "not measurable here: no AMX")
        self.assertIn("not measured", verdict_of("waiting", None))

    def test_a_name_that_no_must_has_is_refused(self):
        with self.assertRaises(KeyError):
            verdicts.judge({"sped f32": 1})

    def test_the_summary_counts_all_and_names_what_is_missed(self):
        rows = verdicts.judge({"waiting": 0.96, "recording": 0.001, "tiles": "not measurable here: no AMX"})
        self.assertEqual(verdicts.missed(rows), ["waiting"])
        self.assertEqual(verdicts.summary(rows),
                         "musts: 1 met, 1 missed (waiting), %d without a figure" % (len(verdicts.MUSTS) - 2))
        self.assertEqual(len(verdicts.table(rows)), len(verdicts.MUSTS) + 1)


class Layouts(unittest.TestCase):
    def test_a_machine_that_grows_slower_favours_no_layout(self):
        at = [{"tokens_per_second": rate} for rate in (100.0, 90.0, 80.0, 70.0, 60.0)]
        runs = {"one": at[::2], "data": at[1::2]}
        self.assertEqual(layouts.ratios_of(runs, "data"), [1.0, 1.0])


class Figures(unittest.TestCase):
    REPORT = {
        "comparisons": {
            "f32": {"torch": {"speed_ratio": 1.2, "memory_ratio": 0.6}, "to_first_step_seconds": 2.0}
        }, "products": {"large_shares": {"bf16": 0.5}}, "tiles": False,
        "layouts": {"bf16": {name: {"ratio": 0.9}
                             for name in ("data", "tensor", "pipeline", "shards")}},
        "runtime": {"recording": [{"share": 0.001}], "waiting": [{"share": 0.99}, {"share": 0.95}]}
    }

    def test_all_of_a_report_is_judged_and_the_worst_counts(self):
        rows = {row["name"]: row for row in verdicts.judge(bench.figures(self.REPORT))}
        self.assertEqual(
            {name
             for name, row in rows.items() if row["verdict"] == "met"},
            {"speed f32", "memory f32", "start", "data bf16", "tensor bf16", "pipeline bf16", "recording"})
        self.assertEqual(rows["waiting"]["measured"], 0.95)
        self.assertEqual(rows["tiles"]["verdict"], "not measurable here: no AMX")
        self.assertIn("not measured", rows["step f32"]["verdict"])

    def test_without_a_peer_there_is_no_verdict_on_it(self):
        alone = {"f32": {"to_first_step_seconds": 2.0, "share_of_own_products": 0.6}}
        rows = {
            row["name"]: row["verdict"]
            for row in verdicts.judge(bench.figures(dict(self.REPORT, comparisons=alone)))
        }
        self.assertEqual(rows["speed f32"], "not measurable here: no PyTorch")
        self.assertEqual((rows["start"], rows["step f32"]), ("met", "met"))

    def test_a_machine_with_tiles_is_judged_by_them(self):
        rows = verdicts.judge(bench.figures(dict(self.REPORT, tiles=True)))
        self.assertEqual(next(row["verdict"] for row in rows if row["name"] == "tiles"), "met")


if __name__ == "__main__":
    unittest.main()
