#!/usr/bin/env python3
"""Looks whether MindPipe is right and fast on this machine's GPU, within eight minutes, from a bundle that
needs no installation.

    gpu-check.sh [--device cuda|cpu] [--output FOLDER] [--minutes 8] [--only PART,...] [--python PYTHON]
    [--llmc PROGRAM] [--list]

Each part has seconds of its own. A part that fails, hangs or is killed does not stop the others. The verdict
stands in the last lines. FOLDER/gpu-check.json is whole after every part, FOLDER/logs.txt.gz has all logs,
FOLDER/gpu.json is the GPU's description. `--device cpu` rehearses all parts on the processor at tiny sizes: it
says that the script runs, and nothing of any GPU. PyTorch's interpreter is the one that runs this script, or
--python; --llmc names llm.c's train_gpt2cu. Exit codes: 0 nothing is wrong in what ran, 1 something is wrong, 2 usage, 69 there is
no GPU (the other parts are listed and not begun).
"""
import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time

import libraries
import parts
import tables
import verdict
from reading import FAILED, IN_PART, MISSING, PASSED
from report import Report

REHEARSAL_PATIENCE = 4  # a processor that computes for others too is no sign of anything


class EndedFromOutside(BaseException):
    """A signal asks all of this to end."""


class Check:
    """What all parts share: where things lie, in which environment programs run, and what was measured so
    far."""

    def __init__(self, options, bundle, work):
        self.bundle, self.device, self.python = bundle, options.device, options.python
        self.llm_c, self.work = options.llmc, work
        self.users_environment = dict(os.environ)
        with open(os.path.join(bundle, "bundle.json")) as file:
            self.built = json.load(file)
        found, self.nowhere = libraries.find(self.built["libraries"], libraries.candidates(self.python),
                                             libraries.known_to_the_loader())
        self.environment = libraries.environment_of(bundle, found, os.environ)
        self.missing = libraries.refused(self.built["libraries"], self.environment, work)
        self.libraries, self.kernels, self.runs, self.graphics = found, None, {}, ""
        self.description = ""

    def path(self, name):
        return os.path.join(self.work, name)

    def log(self, name):
        return self.path(name + ".log")

    def described(self, text):
        """Keeps what a part has printed of the GPU's properties."""
        mark = "description of this GPU: "
        for line in text.splitlines():
            if line.startswith(mark):
                self.description = line[len(mark):]

    def lacks(self, names):
        """Those of a part's libraries, told without versions, that cannot be opened here. A processor needs
        none."""
        return [
            library for library in self.missing
            if self.device == "cuda" and library.split(".so")[0] in names
        ]

    def has_no_gpu(self):
        """Whether doctor has looked, and found none. A doctor that hangs or crashes has found nothing."""
        return self.device == "cuda" and "no GPU" in self.graphics


def goals_of(runs):
    """Figures under the keys of the table of one GPU."""
    figures = {name: runs[name]["tokens_per_second"] for name in ("gpt2-124m", "gpt2-1.5b") if name in runs}
    for name in list(figures):
        if name + "-torch" in runs:
            figures[name + "-of-torch"] = figures[name] / runs[name + "-torch"]["tokens_per_second"]
    if runs.get("llama-8b", {}).get("of_products"):
        figures["llama-8b-share"] = runs["llama-8b"]["of_products"]
    return figures


def measured(check):
    """What all parts so far have measured."""
    return {
        "graphics": check.graphics, "training": check.runs, "goals": goals_of(check.runs),
        "heaviest": tables.kernel_rows(check.kernels) if check.kernels else []
    }


def outcome_of(part, check, seconds):
    """(outcome, why, figures); whatever goes wrong in a part is its outcome."""
    if seconds == 0:
        return MISSING, "no time was left for it", {}
    needed, used = check.lacks(part.needs), check.lacks(part.uses)
    if needed:
        return MISSING, "it needs " + "; ".join("%s (%s)" % (name, check.missing[name]) for name in needed), {}
    try:
        outcome, why, figures = part.work(check, seconds)
    except (Exception, SystemExit) as error:  # one part's trouble is not the others'
        return FAILED, "%s: %s" % (type(error).__name__, error), {}
    if used and outcome == PASSED:
        return IN_PART, "%s; not run: what takes %s" % (why, ", ".join(used)), figures
    return outcome, why, figures


def run_parts(check, report, chosen, whole, results):
    """Runs the parts one after the other; `results` grows meanwhile. In less time than they want each has its
    share."""
    start, patience = time.monotonic(), 1 if check.device == "cuda" else REHEARSAL_PATIENCE
    share = min(1, whole / sum(part.seconds for part in chosen))
    for place, part in enumerate(chosen):
        later = share * sum(other.seconds for other in chosen[place + 1:])
        seconds = verdict.allowance(share * patience * part.seconds, time.monotonic() - start, whole, later,
                                    part.most)
        begun = time.monotonic()
        result = {"name": part.name, "settles": part.settles}
        if seconds:
            report.begins(part.name)
            report.say("... %s: %s (at most %.0f s)" % (part.name, part.settles, seconds))
        try:
            outcome, why, figures = outcome_of(part, check, seconds)
        except EndedFromOutside as sign:
            outcome, why, figures = FAILED, "ended from outside by %s" % sign, {}
            raise
        finally:
            result.update(outcome=outcome, why=why, seconds=time.monotonic() - begun, figures=figures)
            results.append(result)
            report.add(result, measured(check))
            report.keep_logs(part.name, check.work)
            if check.description:
                report.describe(check.description + "\n")
        report.say(verdict.part_line(result))
        if part.name == "doctor" and check.has_no_gpu():
            return


def options_of(words):
    parser = argparse.ArgumentParser(prog="gpu-check.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--output", default="gpu-check-results")
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--only", default="", metavar="PART,...")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--llmc", default="", metavar="PROGRAM")
    parser.add_argument("--list", action="store_true", help="the parts, and nothing else")
    options = parser.parse_args(words)
    there = list(parts.PARTS)
    if options.llmc:
        options.llmc = os.path.abspath(options.llmc)
        there.insert([part.name for part in there].index("parity-2"), parts.LLM_C)
    wished = set(filter(None, options.only.split(",")))
    options.chosen = [part for part in there if not wished or part.name in wished]
    unknown = wished - {part.name for part in there}
    if unknown:
        parser.error("--only names no part '%s'; --list shows them" % "', '".join(sorted(unknown)))
    if options.chosen[0].name != "doctor":
        options.chosen.insert(0, there[0])  # it says whether there is a GPU at all
    return options


def list_parts(chosen, say=print):
    for part in chosen:
        say("  %-24s %4.0f s  %s" % (part.name, part.seconds, part.settles))


def say_tables(check, report, device):
    if check.kernels:
        report.say("\n" + "\n".join(tables.kernel_table(check.kernels)))
    if check.runs:
        report.say("\n" + "\n".join(
            tables.training_table(check.runs, "" if device == "cuda" else "tiny, for ")))
    if device == "cuda":
        report.say("\n" + "\n".join(tables.goal_table(goals_of(check.runs))))


def whole_check(check, report, options, start):
    """All parts and the verdict; the exit code. `start`: when the time began that all may take."""
    results, ended_by = [], ""
    for name, words in check.missing.items():
        report.say("%s cannot be opened (%s)%s" %
                   (name, words, ": not in LD_LIBRARY_PATH, not known to the loader, not in /usr/local/cuda*, not "
                    "beside " + check.python if name in check.nowhere else ""))
    try:
        run_parts(check, report, options.chosen, 60 * options.minutes - (time.monotonic() - start), results)
    except EndedFromOutside as sign:
        ended_by = str(sign)
    if not ended_by and check.has_no_gpu():
        report.say("gpu-check: no GPU that this process may use (%s). On one this would have run:" % check.graphics)
        list_parts(options.chosen, report.say)
        report.learn(verdict="no GPU", code=verdict.NO_GPU)
        return verdict.NO_GPU
    missed = [
        goal.what.strip() for goal in tables.GOALS
        if options.device == "cuda" and goal.is_missed(goals_of(check.runs))
    ]
    seconds = time.monotonic() - start
    code, lines = verdict.verdict(results, options.device, missed, seconds, ended_by)
    report.learn(verdict=lines[-1], code=code, seconds=seconds, below=missed)
    if check.description:
        report.say("this GPU's description, for data/devices: " + check.description)
    say_tables(check, report, options.device)
    report.say("\n" + "\n".join(lines))
    return code


def ends(number, _):
    for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(sign, signal.SIG_IGN)  # once is enough
    raise EndedFromOutside(signal.Signals(number).name)


def main(words):
    options = options_of(words)
    if options.list:
        list_parts(options.chosen)
        return 0
    start, work = time.monotonic(), tempfile.mkdtemp(prefix="gpu-check-")
    report = Report(os.path.abspath(options.output),
                    {"date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "device": options.device})
    try:
        for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(sign, ends)
        check = Check(options, os.path.dirname(os.path.dirname(os.path.abspath(__file__))), work)
        report.learn(bundle=check.built, libraries=check.libraries, libraries_missing=check.missing)
        report.say("MindPipe %s" % check.built["commit"])
        return whole_check(check, report, options, start)
    except (Exception, EndedFromOutside) as error:
        how = "ended early, by %s" % error if isinstance(error, EndedFromOutside) else "%s: %s" % (type(error).__name__, error)
        report.learn(verdict="gpu-check: %s beside its parts" % how, code=verdict.SOMETHING_FAILED)
        report.say(report.whole["verdict"])
        return verdict.SOMETHING_FAILED
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
