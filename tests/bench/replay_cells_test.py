"""What the bench of replay draws, without running any."""
import os
import random
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "bench"))
from replay_cells import (CONTENTION, COVERING, FAULTS, GRIDS, draw_fault, layers_of, layout, other_grids, paired, same_grid,
                          scaled_backwards, settings_for, uneven_cuts)


def even_cuts(settings):
    blocks, stages = 2 * layers_of(settings) + 2, settings["grid.pipeline"]
    return [blocks * stage // stages for stage in range(1, stages)]


def cause(kind, rank=-1, stage=-1, other_stage=-1, text=""):
    return {"kind": kind, "rank": rank, "stage": stage, "other_stage": other_stage, "text": text}


class ReplayCells(unittest.TestCase):
    def test_a_fault_of_each_kind_is_named_by_its_own_cause_alone(self):
        rng = random.Random(1)
        for kind in FAULTS * 5:
            settings = settings_for(rng, kind)
            fault = draw_fault(rng, settings, kind, even_cuts(settings))
            name, rank, stages = fault.culprit
            right = cause(name, -1 if rank is None else rank, *(stages or (-1,)), text=rng.choice(CONTENTION) + ": 3 ms of a step")
            self.assertTrue(fault.is_named_by(right), kind)
            for wrong in ({**right, "kind": "host" if name != "host" else "jitter"},
                          {**right, "rank": right["rank"] + 1, "stage": right["stage"] + 1, "text": "gathers of values hold up moves"}):
                self.assertFalse(fault.is_named_by(wrong), kind)

    def test_uneven_cuts_give_a_stage_more_blocks_and_no_stage_none(self):
        rng = random.Random(2)
        for _ in range(200):
            cuts, stage = uneven_cuts(rng, [5, 9, 14], 18)
            before, now = [0, 5, 9, 14, 18], [0, *cuts, 18]
            sizes = [[edges[k + 1] - edges[k] for k in range(4)] for edges in (before, now)]
            self.assertGreaterEqual(min(sizes[1]), 1)
            self.assertGreaterEqual(sizes[1][stage], sizes[0][stage] + 2)
            self.assertEqual(sum(1 for was, is_now in zip(*sizes) if is_now > was), 1)

    def test_what_ifs_keep_the_ranks_and_change_something(self):
        rng = random.Random(3)
        for grid in GRIDS * 4:
            settings = layout(rng, grid)
            cuts = even_cuts(settings) if settings["schedule.chunks"] == 1 else None
            ranks = settings["grid.pipeline"] * settings["grid.data"]
            for change in same_grid(settings, cuts):
                self.assertFalse(change.other_grid)
                self.assertTrue(change.inject or change.backward != 1 or
                                any(settings.get(key) != value for key, value in change.settings.items()))
            others = other_grids(settings)
            self.assertTrue(others)
            for change in others:
                self.assertTrue(change.other_grid)
                now = {**settings, **change.settings}
                self.assertEqual(now["grid.pipeline"] * now["grid.data"], ranks)
                self.assertNotEqual((now["grid.pipeline"], now["grid.data"]), (settings["grid.pipeline"], settings["grid.data"]))

    def test_layouts_cover_all_schedules_shardings_sums_and_lanes(self):
        steps = [one for one in COVERING if "grid.supernet" not in one]
        self.assertEqual({one["schedule.kind"] for one in steps},
                         {"1f1b", "gpipe", "zb-h1", "interleaved", "breadth-first", "zb-v", "dualpipe-v", "v-half", "elastic", "searched"})
        self.assertEqual({one["train.zero"] for one in steps}, {0, 1, 2})
        ranks = [one.get("grid.supernet", 1) * one["grid.pipeline"] * one.get("grid.data", 1) * one.get("grid.tensor", 1)
                 for one in COVERING]
        self.assertEqual((len(COVERING), min(ranks), max(ranks)), (22, 2, 16))
        self.assertEqual(sum(1 for one, count in zip(COVERING, ranks) if count == 2 and one.get("device.kind") != "emulated"
                             and one.get("device.threads")), 6)

    def test_backwards_of_a_profile_are_scaled_and_nothing_else(self):
        profile = 'factor: 1.5\npasses:\n  w01: {block: "a b", forward: 0.002, input: 0.001, weight: 2e-3, spread: 0.01}\n'
        self.assertEqual(scaled_backwards(profile, 0.5), profile.replace("input: 0.001", "input: 0.0005").replace("2e-3", "0.001"))

    def test_a_mean_of_pairs_is_as_sure_as_student_says(self):
        mean, off = paired([0.9, 1.0, 1.1])
        self.assertAlmostEqual(mean, 1.0)
        self.assertAlmostEqual(off, 4.303 * 0.1 / 3 ** 0.5)


unittest.main()
