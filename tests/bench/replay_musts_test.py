"""What the bench of replay says of its figures, without measuring any."""
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "bench"))
import verdicts
from replay_musts import MUSTS, Found


def verdict_of(found, name):
    return next(row["verdict"] for row in found.verdicts() if row["name"] == name)


class ReplayMusts(unittest.TestCase):
    def test_shares_means_and_worst_ones_are_held_against_what_is_asked(self):
        found = Found()
        for number in range(40):
            found.add("culprit", value=number >= 2)
            found.add("cost", value=number >= 3)
            found.add("identity", value=-0.001 if number else -0.006)
            found.add("held out", "held out worst", value=0.01)
        self.assertEqual([verdict_of(found, name) for name in ("culprit", "cost", "identity", "held out", "held out worst")],
                         ["met", "missed by 2.6 %", "missed by 20.0 %", "met", "met"])
        self.assertEqual(verdicts.missed(found.verdicts()), ["identity", "cost"])

    def test_one_clean_run_that_is_accused_misses(self):
        found = Found()
        for accused in (False,) * 19 + (True,):
            found.add("clean", value=not accused)
        self.assertEqual(verdict_of(found, "clean"), "missed by 5.0 %")

    def test_too_few_what_ifs_are_not_judged(self):
        found = Found()
        for period in range(1, 11):
            self.assertIn("not" if period == 1 else "not judged", verdict_of(found, "order"))
            found.add("other", value=0.04)
            found.add_order(period, 2 * period)
        self.assertEqual((verdict_of(found, "other"), verdict_of(found, "order")), ("met", "met"))
        found.add("same", "same worst", value=0.5)
        self.assertEqual(verdict_of(found, "same worst"), "not judged: 1 of the 20 that it takes")
        self.assertEqual(verdicts.missed(found.verdicts()), [])

    def test_every_must_can_be_met(self):
        found = Found()
        for must in MUSTS:
            for number in range(22):
                found.add_order(number, number) if must.name == "order" else found.add(must.name, value=must.bound)
        self.assertEqual({row["verdict"] for row in found.verdicts()}, {"met"})


unittest.main()
