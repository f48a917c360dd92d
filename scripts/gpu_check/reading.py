"""What the output of a test or of compute-sanitizer says: an outcome and why, in one line. No program is run
here."""
import re

from running import how_it_ended

PASSED, FAILED, SKIPPED, TIMED_OUT, MISSING = "passed", "failed", "skipped", "timed out", "not run"
IN_PART = "in part"  # all was good until time ended


def number(pattern, text):
    """The last number that the pattern finds, 0 where there is none."""
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def first_complaint(text):
    """The first failure of a test in one line, else the last line that says anything."""
    found = re.search(r"^\S+:\d+: Failure\n((?:.+\n?){1,6})", text, re.MULTILINE)
    lines = [line.strip() for line in (found.group(1) if found else text).splitlines() if line.strip()]
    return " | ".join(lines[:6] if found else lines[-1:])[:400]


def read_tests(code, text):
    """A GoogleTest program's outcome: (outcome, why, figures)."""
    passed, skipped = number(r"\[  PASSED  \] (\d+) test", text), number(r"\[  SKIPPED \] (\d+) test", text)
    failed = sorted(set(re.findall(r"^\[  FAILED  \] (\w+\.\w+)", text, re.MULTILINE)))
    figures = {"tests_passed": passed, "tests_skipped": skipped, "tests_failed": failed}
    layouts = re.findall(r"(\d+) of (\d+) layouts, (\d+) failed", text)
    if code is None and layouts and not failed and int(layouts[-1][2]) == 0:
        figures["layouts"] = int(layouts[-1][0])
        return IN_PART, "%s of %s layouts had passed when time ended" % layouts[-1][:2], figures
    if code is None:
        running = re.findall(r"\[ RUN      \] (\S+)", text)
        return TIMED_OUT, "in %s, %d tests before it were over" % (
            running[-1], len(running) - 1) if running else "nothing had run", figures
    if code != 0:
        named = ", ".join(failed) if failed else how_it_ended(code)
        return FAILED, ("%s: %s" % (named, first_complaint(text))).rstrip(": "), figures
    if passed == 0 and skipped == 0:
        return FAILED, "no test has run: the filter names none", figures
    if passed == 0:
        reason = re.search(r": Skipped\n(.+)", text)
        lacks = reason and re.search(r"no cuDNN|cannot be opened", reason.group(1))
        return MISSING if lacks else SKIPPED, reason.group(1) if reason else "every test was skipped", figures
    return PASSED, "%d test%s" % (passed, "" if passed == 1 else "s") + (", %d skipped" %
                                                                         skipped if skipped else ""), figures


# What the tool says where it cannot watch this machine's GPU, though it may start the program all the same; and what it says of kernels.
REFUSED = re.compile(r"^=+ .*(?:Device not supported|Failed to initialize|No attachable process|Internal Sanitizer Error).*", re.MULTILINE)
OF_KERNELS = re.compile(r"^=+ ((?:Invalid|Race|Uninitialized|Potential).+)", re.MULTILINE)


def read_sanitizer(code, text):
    """compute-sanitizer's outcome over a test: it counts errors, hazards, or both are the test's own."""
    counts = re.findall(r"^=+ (ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards?)", text, re.MULTILINE)
    wrong = sum(int(count) for _, count in counts)
    outcome, why, figures = read_tests(code, text)
    refusal = None if OF_KERNELS.search(text) else REFUSED.search(text)
    if code is not None and (refusal or not counts and "[ RUN      ]" not in text) and "[  FAILED  ]" not in text:
        return MISSING, "the tool does not run here: %s" % (refusal.group(0) if refusal else first_complaint(text)), figures
    figures["complaints"] = wrong
    if wrong:
        first = re.search(r"^=+ ((?:Invalid|Error|Race|Warning|Program hit|Uninitialized|Potential).+)", text,
                          re.MULTILINE)
        return FAILED, "%d complaint%s, the first: %s" % (wrong, "" if wrong == 1 else "s",
                                                          first.group(1) if first else "see the log"), figures
    if outcome == PASSED and not counts:
        return FAILED, "the tool has written no summary: %s" % first_complaint(text), figures
    return outcome, why, figures
