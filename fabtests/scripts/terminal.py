#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs a program on a terminal of a given size, and plays the user.

Steps, in turn; each waits for a minute at most:
  see:REGEX     the screen has it, and what was drawn fits on it
  press:TEXT    type it; escapes as in Python
  size:RxC      the terminal's size changes
  signal:NAME   send a signal, as TERM
  stops:        a signal has stopped it
  some:REGEX    the output so far has it, escape sequences included
  never:REGEX   it does not
  screen:       print the screen
  end:STATUS    the program ends with it (-N: by signal N), and leaves the
                terminal as it was
"""

import argparse
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

LIMIT = 60  # seconds
TOKEN = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)|(.)",
                   re.S)


class Terminal:
    def __init__(self, rows, cols, command):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            # the program begins when the size is set
            sys.stdin.readline()
            for signo in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
                signal.signal(signo, signal.SIG_DFL)
            os.execvp(command[0], command)
        self.modes = termios.tcgetattr(self.fd)
        self.resize(rows, cols)
        os.write(self.fd, b"\n")
        self.output = ""
        self.open = True

    def resize(self, rows, cols):
        self.rows, self.cols = rows, cols
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, cols, 0, 0))

    def read(self):
        """Some output, if any comes within a tenth of a second."""
        if self.open and select.select([self.fd], [], [], .1)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            self.open = bool(data)
            self.output += data.decode(errors="replace")

    def lines(self):
        """What is drawn since the screen was cleared last."""
        lines, row, col = [""], 0, 0
        for args, code, end, text, other in TOKEN.findall(
                self.output.rpartition("\x1b[H\x1b[J")[2]):
            if code == "H":
                row, col = (int(n) - 1 for n in args.split(";"))
            elif code == "K":
                lines[row] = lines[row][:col]
            elif end == "\r":
                col = 0
            elif end == "\n":
                row += 1
            elif text:
                lines += [""] * (row + 1 - len(lines))
                lines[row] = lines[row][:col].ljust(col) + text
                col += len(text)
            elif other or code not in "mlh":
                sys.exit(f"unknown sequence: {args}{code}{other!r}")
        return lines

    def fits(self):
        lines = self.lines()
        return len(lines) <= self.rows and max(map(len, lines)) <= self.cols

    def see(self, regex):
        text = "\n".join(line.rstrip() for line in self.lines())
        return self.fits() and re.search(regex, text, re.M)

    def ended(self):
        pid, self.status = os.waitpid(self.pid, os.WNOHANG)
        return pid

    def stopped(self):
        pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        return pid and os.WIFSTOPPED(status)

    def wait(self, what, done):
        until = time.monotonic() + LIMIT
        while not done():
            if time.monotonic() > until:
                print(*self.lines(), sep="\n")
                sys.exit(f"not {what}")
            self.read()

    def end(self, status):
        self.wait("the end", self.ended)
        while self.open:
            self.read()
        status_ = os.waitstatus_to_exitcode(self.status)
        if status_ != status:
            sys.exit(f"{self.output[-200:]}: status {status_}, not {status}")
        if self.output.rfind("\x1b[?25l") > self.output.rfind("\x1b[?25h"):
            sys.exit("the cursor is hidden")
        if termios.tcgetattr(self.fd) != self.modes:
            sys.exit("the terminal's modes are others")


def size(text):
    return map(int, text.split("x"))


def play(terminal, step):
    kind, _, arg = step.partition(":")
    if kind == "see":
        terminal.wait(step, lambda: terminal.see(arg))
    elif kind == "press":
        os.write(terminal.fd, arg.encode().decode("unicode_escape").encode())
    elif kind == "size":
        terminal.resize(*size(arg))
    elif kind == "signal":
        os.kill(terminal.pid, signal.Signals["SIG" + arg])
    elif kind == "stops":
        terminal.wait(step, terminal.stopped)
    elif kind in ("some", "never"):
        if bool(re.search(arg, terminal.output)) != (kind == "some"):
            sys.exit(f"not {step}: {terminal.output!r}")
    elif kind == "screen":
        print(*(line.rstrip() for line in terminal.lines()), sep="\n")
    elif kind == "end":
        terminal.end(int(arg))
    else:
        sys.exit(f"unknown step: {step}")


def main():
    args = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("-s", "--size", default="24x80", metavar="RxC")
    args.add_argument("-n", "--no-color", action="store_true")
    args.add_argument("steps", nargs="+", metavar="STEP",
                      help="and, after --, COMMAND [ARGUMENT]...")
    if "--" not in sys.argv:
        args.error("no command")
    at = sys.argv.index("--")
    command = sys.argv[at + 1:]
    args = args.parse_args(sys.argv[1:at])
    os.environ.update(TERM="xterm", NO_COLOR="1" if args.no_color else "")
    terminal = Terminal(*size(args.size), command)
    for step in args.steps:
        play(terminal, step)
    if terminal.open:
        os.kill(terminal.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
