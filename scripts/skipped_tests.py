#!/usr/bin/env python3
"""skipped_tests.py JUNIT.xml: the tests that ctest skipped, each with the reason that its output gives, a line each."""
import sys
import xml.etree.ElementTree


def reason_of(output):
    """What GoogleTest prints below "file:line: Skipped", once each; else the last line of a script, which says why."""
    lines = [line.strip() for line in output.splitlines()]
    reasons = [below for line, below in zip(lines, lines[1:]) if line.endswith(": Skipped") and below]
    if not reasons:
        reasons = [line for line in lines if line][-1:]
    return "; ".join(dict.fromkeys(reasons)) or "it does not say why"


def skipped(report):
    """(name, reason) of each test of a report of ctest --output-junit that was skipped."""
    return [(case.get("name"), reason_of(case.findtext("system-out") or "")) for case in report.iter("testcase")
            if case.find("skipped") is not None]


def main(path):
    found = skipped(xml.etree.ElementTree.parse(path))
    if found:
        print("\nSkipped, and why:")
    for name, reason in found:
        print("  %s: %s" % (name, reason))


if __name__ == "__main__":
    main(sys.argv[1])
