"""Runs one program for a limited time and keeps what it prints."""
import os
import signal
import subprocess
import time


def end(process):
    """Ends a process and all that it has started in its group: asked first, then killed."""
    for sign, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            return
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
        return


def run(command, environment, seconds, log, done=lambda: False):
    """Returns (exit code, output, seconds taken); the code is None where time ran out. Once `done` says so
    the program is ended with 0."""
    start = time.monotonic()
    with open(log, "wb") as file:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=file,
                                   stderr=subprocess.STDOUT, cwd=os.path.dirname(os.path.abspath(log)),
                                   start_new_session=True)
        try:
            code = None
            while time.monotonic() - start < seconds:
                try:
                    code = process.wait(0.2)
                    break
                except subprocess.TimeoutExpired:
                    if done():
                        code = 0
                        break
        finally:
            if process.poll() is None:
                end(process)
    with open(log, "rb") as file:
        file.seek(max(0, os.path.getsize(log) - (4 << 20)))
        text = file.read().decode("utf-8", "replace")
    return code, text, time.monotonic() - start
