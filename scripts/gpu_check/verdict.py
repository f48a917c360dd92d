"""How time is shared among parts, and what all of them together say. No program is run here."""
from reading import FAILED, IN_PART, MISSING, PASSED, SKIPPED, TIMED_OUT

ALL_GOOD, SOMETHING_FAILED, NO_GPU = 0, 1, 69
LEAST = 5  # seconds that a part is begun with


def allowance(budget, spent, whole, later=0, most=0):
    """Seconds that a part may take of what is left, 0 where it is not worth beginning. `later`: budgets of all
    parts behind it; what is left beyond them is its own too, up to `most`."""
    left = min(max(budget, min(most, whole - spent - later)), whole - spent)
    return left if left >= min(LEAST, budget) else 0


def is_wrong(result, rehearsal):
    """What turns the verdict: a failure, a part that took too long, and on a GPU also tests that were
    skipped. What could not run because something is not installed here or because time was up is named, and
    turns nothing."""
    return result["outcome"] in (FAILED, TIMED_OUT) or (result["outcome"] == SKIPPED and not rehearsal)


def part_line(result):
    return "%-24s %-9s %6.1f s  %s" % (result["name"], result["outcome"], result["seconds"], result["why"])


def verdict(results, device, missed_goals, seconds, ended_by=""):
    """(exit code, the last lines). `ended_by`: the signal that has ended all from outside."""
    rehearsal = device != "cuda"
    wrong = [result["name"] for result in results if is_wrong(result, rehearsal)]
    count = {
        outcome: sum(result["outcome"] == outcome for result in results)
        for outcome in (PASSED, IN_PART, FAILED, TIMED_OUT, SKIPPED, MISSING)
    }
    lines = [part_line(result) for result in results]
    if missed_goals:
        lines.append("below what is wished for: " + ", ".join(missed_goals))
    if rehearsal:
        lines.append(
            "REHEARSAL on the processor, at tiny sizes: it says that the script runs, and nothing of any GPU")
    if ended_by:
        lines.append("ENDED from outside by %s: what is not named above has not run" % ended_by)
    absent = [result["name"] for result in results if result["outcome"] == MISSING]
    if absent and not rehearsal:
        lines.append("NOT RUN, for the reasons above: " + ", ".join(absent))
    counted = ", ".join("%d %s" % (number, outcome) for outcome, number in count.items() if number)
    lines.append("gpu-check: %s in %.0f s: %s" %
                 ("WRONG in " + ", ".join(wrong) if wrong else "ended early" if ended_by else
                  "nothing wrong in what ran" if absent and not rehearsal else "all good",
                  seconds, counted))
    return SOMETHING_FAILED if wrong or ended_by else ALL_GOOD, lines
