#!/usr/bin/env python3
"""draw_schedules.py PICTURE NAME=RUN...: the last traced step of some runs, one below the other on one scale of time, as an SVG; and
a table of how long each step is and what share of it the stages stand idle."""
import json
import pathlib
import sys

LEFT, WIDTH, ROW, GAP, TOP, COPIES = 110, 1000, 16, 34, 40, 9
COLOURS = {"forward": "#4878a8", "backward": "#d88c3a", "backward_input": "#d88c3a", "backward_weight": "#6aa56e",
           "update": "#8c8c8c", "stash": "#b0487f", "unstash": "#5f4fb0"}
COPIED = ("stash", "unstash")


def block_of(event):
    """The first block of a pass, which "0..3" begins with; -1: an update has none."""
    return int(event["args"].get("blocks", "-1").split("..")[0])


def step_of(run):
    """Passes, updates and copies of tapes in the last traced step of a run: (rank, kind, block, begin, end), milliseconds, by begin."""
    events = json.loads((run / "trace.json").read_text())["traceEvents"]
    passes = [event for event in events if event.get("cat") in COLOURS]
    last = max(event["args"]["step"] for event in passes)
    passes = [event for event in passes if event["args"]["step"] == last]
    first = min(event["ts"] for event in passes)
    return sorted(((event["pid"], event["cat"], block_of(event), (event["ts"] - first) / 1e3,
                    (event["ts"] + event["dur"] - first) / 1e3) for event in passes), key=lambda one: one[3])


def main():
    picture, steps = pathlib.Path(sys.argv[1]), {}
    for argument in sys.argv[2:]:
        name, run = argument.split("=")
        steps[name] = step_of(pathlib.Path(run))
    longest = max(end for step in steps.values() for *_, end in step)
    stages = 1 + max(rank for step in steps.values() for rank, *_ in step)
    copies = any(kind in COPIED for step in steps.values() for _, kind, *_ in step)
    row = ROW + (COPIES if copies else 0)
    height = TOP + len(steps) * (stages * row + GAP)
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{height}" '
           'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>']
    x = LEFT
    for word, kind in (("forward", "forward"), ("backward of the input, or whole", "backward"),
                       ("weight gradients", "backward_weight"), ("update", "update"),
                       *((("tape to the host", "stash"), ("tape from the host", "unstash")) if copies else ())):
        svg.append(f'<rect x="{x}" y="10" width="12" height="12" fill="{COLOURS[kind]}"/><text x="{x + 17}" y="20">{word}</text>')
        x += 40 + 7 * len(word)
    print(f"{'run':<12} {'step':>9} {'idle':>7}")
    for number, (name, step) in enumerate(steps.items()):
        top = TOP + number * (stages * row + GAP)
        length = max(end for *_, end in step)
        busy = sum(end - begin for _, kind, _, begin, end in step if kind not in COPIED)
        idle = 100 * (1 - busy / (stages * length))
        print(f"{name:<12} {length:>6.1f} ms {idle:>5.1f} %")
        svg.append(f'<text x="8" y="{top + 13}" font-weight="bold">{name}</text><text x="8" y="{top + 30}">{length:.1f} ms</text>'
                   f'<text x="8" y="{top + 46}">idle {idle:.1f} %</text>')
        chunks = {rank: sorted({block for other, kind, block, *_ in step if other == rank and kind == "forward"})
                  for rank in range(stages)}
        for rank, kind, block, begin, end in step:
            # Passes of other chunks are paler; where passes come in pieces, none is.
            is_first = copies or len(chunks[rank]) == 1 or block < chunks[rank][1]
            y, high = top + rank * row, ROW - 2
            if kind in COPIED:
                y, high = y + ROW - 1 + 4 * COPIED.index(kind), 3
            svg.append(f'<rect x="{LEFT + WIDTH * begin / longest:.2f}" y="{y}" '
                       f'width="{max(0.3, WIDTH * (end - begin) / longest - 0.4):.2f}" height="{high}" fill="{COLOURS[kind]}" '
                       f'fill-opacity="{1 if is_first else 0.55}"/>')
    picture.write_text("\n".join([*svg, "</svg>\n"]))


if __name__ == "__main__":
    main()
