# thorough
"""Plans beside steps that others have measured and published."""
import os
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import published_steps as steps_of

PROGRAM = sys.argv.pop(1)


def device(name):
    return os.path.join(ROOT, "configs", "devices", name + ".yaml")


class PublishedSteps(unittest.TestCase):
    def planned(self, group, name, extra=()):
        steps = [step for step in steps_of.published() if step.group == group]
        return steps, steps_of.planned_seconds(PROGRAM, steps, device(name), extra)

    def test_the_steps_that_a100_was_fitted_to(self):
        mean, worst = steps_of.mean_and_worst(*self.planned("K", "a100"))
        self.assertLessEqual(mean, 0.05)
        self.assertLessEqual(worst, 0.06)

    def test_steps_of_the_same_software_that_it_was_not_fitted_to(self):
        mean, worst = steps_of.mean_and_worst(*self.planned("N", "a100"))
        self.assertLessEqual(mean, 0.08)
        self.assertLessEqual(worst, 0.15)

    def test_ratios_between_steps_of_other_software(self):
        steps, seconds = self.planned("M", "a100")
        for step, planned in zip(steps[1:], seconds[1:]):
            published = step.seconds / steps[0].seconds
            self.assertLessEqual(abs(planned / seconds[0] / published - 1), 0.05, step.name)

    def test_llama_405b(self):
        _, worst = steps_of.mean_and_worst(*self.planned("L", "h100"))
        self.assertLessEqual(worst, 0.15)

    def test_layouts_of_one_node_are_told_apart(self):
        steps = list(steps_of.vtrain_single())
        seconds = steps_of.planned_seconds(PROGRAM, steps, device("a100-node"))
        fitted = set(range(0, len(steps), len(steps) // 64))
        others = [i for i in range(len(steps)) if i not in fitted]
        mean, _ = steps_of.mean_and_worst([steps[i] for i in others], [seconds[i] for i in others])
        groups, by_rule = (list(steps_of.groups(steps, keys)) for keys in (seconds, steps_of.as_much_data_as_fits(steps)))
        self.assertEqual(len(groups), 96)
        self.assertAlmostEqual(sum(steps_of.regret(one, order, 1) for one, order in by_rule) / 96, 0.098, delta=0.002)

        def mean_of(figure):
            return sum(figure(one, planned) for one, planned in groups) / len(groups)

        self.assertLessEqual(mean, 0.12)
        self.assertGreaterEqual(
            mean_of(lambda one, planned: steps_of.rank_correlation([step.seconds for step in one], planned)), 0.88)
        self.assertLessEqual(mean_of(lambda one, planned: steps_of.regret(one, planned, 1)), 0.06)
        self.assertLessEqual(mean_of(lambda one, planned: steps_of.regret(one, planned, 3)), 0.02)


if __name__ == "__main__":
    unittest.main()
