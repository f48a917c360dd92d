"""Runs one program for a limited time and keeps what it prints, as far as it fits."""
import collections
import ctypes
import os
import select
import signal
import subprocess
import time

HEAD, TAIL = 256 << 10, 1 << 20  # bytes that are kept of what a program prints
PATIENCE = 3  # seconds between asking a program to end, killing it, and leaving it behind


class Kept:
    """The begin and the end of a long text. The begin reaches a file as it comes."""

    def __init__(self, path):
        self.file, self.head, self.tail, self.tail_bytes, self.left_out = open(path, "wb"), b"", collections.deque(), 0, 0

    def add(self, data):
        room = HEAD - len(self.head)
        if room > 0:
            self.head += data[:room]
            self.file.write(data[:room])
            self.file.flush()
        if data[room if room > 0 else 0:]:
            self.tail.append(data[max(0, room):])
            self.tail_bytes += len(self.tail[-1])
        while self.tail_bytes - len(self.tail[0] if self.tail else b"") > TAIL:
            self.left_out += len(self.tail[0])
            self.tail_bytes -= len(self.tail.popleft())

    def close(self):
        gap = b"\n[%d bytes are left out]\n" % self.left_out if self.left_out else b""
        rest = gap + b"".join(self.tail)
        self.file.write(rest)
        self.file.close()
        return (self.head + rest).decode("utf-8", "replace")


def dies_with_us():
    """Makes a new process end when this one does, however that ends."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        pass


def end(process):
    """Ends a process and all that it has started in its group: asked first, then killed. What a driver holds
    may outlive even that."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            return
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            continue
        try:
            os.killpg(process.pid, signal.SIGKILL)  # what it has left behind
        except ProcessLookupError:
            pass
        return


def read_some(pipe, seconds, kept):
    """Takes what has been printed, after waiting for it; whether more may come."""
    if not select.select([pipe], [], [], seconds)[0]:
        return True
    data = os.read(pipe, 1 << 16)
    kept.add(data)
    return bool(data)


def run(command, environment, seconds, log, done=lambda: False):
    """Returns (exit code, output, seconds taken); the code is None where time ran out. Once `done` says so
    the program is ended with 0."""
    start, kept, code = time.monotonic(), Kept(log), None
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, cwd=os.path.dirname(os.path.abspath(log)),
                               start_new_session=True, preexec_fn=dies_with_us)
    pipe, is_open, looked = process.stdout.fileno(), True, start
    try:
        while time.monotonic() - start < seconds:
            if is_open:
                is_open = read_some(pipe, 0.1, kept)
            else:
                time.sleep(0.05)
            if process.poll() is not None:
                code = process.returncode
                break
            if time.monotonic() - looked > 0.2:
                looked = time.monotonic()
                if done():
                    code = 0
                    break
    finally:
        if process.poll() is None:
            end(process)
        drained = time.monotonic() + 1
        while is_open and time.monotonic() < drained and select.select([pipe], [], [], 0)[0]:
            is_open = read_some(pipe, 0, kept)
        process.stdout.close()
        text = kept.close()
    return code, text, time.monotonic() - start


def how_it_ended(code):
    """The end of a program in words."""
    if code is None:
        return "took too long"
    if code < 0:
        try:
            return "was ended by " + signal.Signals(-code).name
        except ValueError:
            return "was ended by signal %d" % -code
    return "ended with exit code %d" % code
