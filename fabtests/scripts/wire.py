#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
wire.py: records the byte streams between two programs over a provider, and
plays them again with changes, against both. A process that dies of it, that
takes memory without end, or that serves no honest peer any more is a failure.

Flow: connections come to a proxy (functional/hostile/wire_shim.c). The first session is
recorded. Each trial changes one connection in one direction: in a session of
both programs ("live"), or in one where this program plays all of the recorded
client ("replay"), and puts in place what the client repeats of the server's
random bytes. A trial is a text, which -T runs alone; the seed and its number
determine it, given the lengths recorded.
"""
import argparse
import collections
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from wire_stream import DOWN, HANG, QUIET, STORM, UP, Editor, Proxy, Record, parse, \
    random_edit

RSS = 1 << 20  # KiB that no process needs
CHECK = 100    # trials between two honest sessions
SUSPECTS = 6   # the latest trials: one of them has killed the server


# ---- processes ---------------------------------------------------------------

def function_at(module, offset):
    """The function's name, or without debug information the place."""
    name, line = subprocess.run(["addr2line", "-f", "-e", module, offset],
                                text=True, capture_output=True
                                ).stdout.splitlines()[:2] or ("??", "??")
    return "%s+%s" % (os.path.basename(module), offset) \
        if line.startswith("??") else name


def stack(text):
    """What it died of, and the frames above libc's and sanitizers': or None."""
    kind = re.search(r"ERROR: AddressSanitizer:? ([\w-]+)|(runtime error: .*)|"
                     r"WIRE: signal (\d+)", text)
    if not kind:
        return None
    frames = []
    for line in text[kind.end():].splitlines():
        frame = re.match(r"\s+#\d+ 0x\w+ (?:in (\S+) [^( ]+:\d|"
                         r".*\((\S+)\+(0x\w+)\))|"
                         r"()(\S+)\(\w*\+(0x\w+)\)\[", line)
        if frame:
            name, *at = [g for g in frame.groups() if g] + [""]
            if re.match(r"(wire_shim|libc|libasan|libubsan)\.so|__|died$",
                        os.path.basename(name)):
                continue
            frames.append(function_at(name, at[0]) if at[0] else name)
        elif frames and not line.strip():
            break
    name = signal.Signals(int(kind[3])).name if kind[3] else kind[1] or kind[2]
    return "%s: %s" % (name, " < ".join(frames[:4]))


def listens(pid):
    """The ports where a process listens, in the order of their descriptors."""
    with open("/proc/%d/net/tcp" % pid) as f:
        lines = [line.split() for line in f]
    inodes = {line[9]: int(line[1][9:], 16) for line in lines
              if line[3] == "0A"}
    found = []
    for fd in sorted(map(int, os.listdir("/proc/%d/fd" % pid))):
        try:
            link = os.readlink("/proc/%d/fd/%d" % (pid, fd))
        except FileNotFoundError:
            continue
        if link[8:-1] in inodes:
            found.append(inodes[link[8:-1]])
    return found


class Victim:
    def __init__(self, run):
        self.run, self.log = run, os.path.join(run.dir, "err")

    def start_with(self, args, **more):
        with open(self.log, "wb") as log:
            self.proc = subprocess.Popen(args, env=self.run.env, stderr=log,
                                         stdout=subprocess.PIPE, **more)
        return self.line()

    def line(self):
        """The next line that it prints, or b"" if none comes in time"""
        self.stuck = not select.select([self.proc.stdout], [], [], HANG)[0]
        return b"" if self.stuck else self.proc.stdout.readline()

    def said(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def end(self):
        self.proc.kill()
        self.proc.wait()

    def hang(self):
        """Where its main thread waits. The process dies of the question."""
        self.proc.send_signal(signal.SIGABRT)
        try:
            self.proc.wait(HANG)
        except subprocess.TimeoutExpired:
            pass
        said = stack(self.said())
        return "hang: " + (said.split(": ", 1)[1] if said else "no answer")

    def fault(self):
        """What has become of it, or None."""
        if self.proc.poll() is not None:
            said = re.search(r"^FAIL: .*c:\d+: (.*): \d+ bytes",
                             self.said(), re.M)
            return stack(self.said()) or \
                (said[1] if said else "status %d" % self.proc.returncode)
        with open("/proc/%d/status" % self.proc.pid) as f:
            kib = re.search(r"VmRSS:\s*(\d+)", f.read())
        if kib and int(kib[1]) > RSS:
            return "memory: more than %d MiB" % (RSS >> 10)
        if self.run.proxy.marks > STORM // 2:
            return "storm: %d control connections" % self.run.proxy.marks
        return self.hang() if self.stuck else None


class Server(Victim):
    """fi_mrrc_serve, with a fi_mrrc_get for each session"""

    name = "server"

    def __init__(self, run):
        super().__init__(run)
        self.type = "rdm" if run.rdm else "msg"
        self.src, self.dst = (os.path.join(run.dir, n) for n in "sd")
        os.makedirs(os.path.join(self.src, "dir"))
        for name, size in {"a": 10, "dir/b": 3000, "c": 20000,
                           "d": 150000}.items():
            with open(os.path.join(self.src, name), "wb") as f:
                f.write(random.Random(name).randbytes(size))

    def start(self):
        for _ in range(20):
            self.port = random.SystemRandom().randrange(10000, 30000)
            if b": serving " in self.start_with(
                    [self.run.bin + "fi_mrrc_serve", "--root", "--private",
                     "-e", self.type, "-p", str(self.port), "--timeout=2",
                     "--idle=5", "--grace=1", self.src]):
                return
            self.end()
        sys.exit("the server does not run: " + self.said())

    def session(self):
        """Whether the client was content"""
        shutil.rmtree(self.dst, ignore_errors=True)
        os.mkdir(self.dst)
        log = os.path.join(self.run.dir, "get.err")
        with open(log, "wb") as f:
            proc = subprocess.Popen(
                [self.run.bin + "fi_mrrc_get", "-q", "-e", self.type, "-p",
                 str(self.port), "--timeout=2", "--part=64K", "--no-sync",
                 "-C", self.dst, "127.0.0.1:"], env=self.run.env, stderr=f)
        with os.fdopen(os.pidfd_open(proc.pid)) as pidfd:
            ended = self.run.proxy.relay(pidfd)
        if not ended:
            proc.kill()
        _, status, usage = os.wait4(proc.pid, 0)
        proc.returncode = os.waitstatus_to_exitcode(status)
        with open(log, errors="replace") as f:
            said = f.read()
        why = stack(said)
        if not ended:
            why = "hang: it does not end"
        elif usage.ru_maxrss > RSS:
            why = why or "memory: %d MiB" % (usage.ru_maxrss >> 10)
        elif proc.returncode not in (0, 1):
            why = why or "status %d" % proc.returncode
        if why:
            self.run.died("client", why, said)
        return proc.returncode == 0


class App(Victim):
    """fi_mrrc_wire_app: both sides of an application, in one process"""

    name = "app"

    def start(self):
        line = self.start_with([self.run.bin + "fi_mrrc_wire_app", "-t",
                                "1000000", "-p", self.run.provider],
                               stdin=subprocess.PIPE, bufsize=0).split()
        if len(line) != 2:
            sys.exit("the application does not run: " + self.said())
        self.port = int(line[1])

    def session(self):
        line = b""
        try:
            self.proc.stdin.write(b"g")
            self.stuck = not self.run.proxy.relay(
                self.proc.stdout, lambda: self.proc.stdin.write(b"e"))
            line = b"" if self.stuck else self.line()
        except BrokenPipeError:
            pass
        if not line and not self.stuck:
            try:
                self.proc.wait(HANG)  # it is dying, which takes time
            except subprocess.TimeoutExpired:
                self.stuck = True
        return line == b"ok\n"


# ---- trials ------------------------------------------------------------------

class Run:
    def __init__(self, args):
        self.args, self.provider = args, args.provider
        self.rdm = not args.provider.startswith("tcp;ofi_mrrc")
        self.bin = args.bin and os.path.join(args.bin, "")
        self.dir = tempfile.mkdtemp(prefix="wire.")
        self.proxy = Proxy()
        self.env = dict(
            os.environ, FI_PROVIDER=self.provider, LD_PRELOAD=args.shim,
            WIRE_PROXY=str(self.proxy.port), FI_OFI_MRRC_REGISTER="always",
            IPATH_NO_BACKTRACE="1", UBSAN_OPTIONS="print_stacktrace=1:"
            "halt_on_error=1", ASAN_OPTIONS="verify_asan_link_order=0:"
            "detect_leaks=0:quarantine_size_mb=8:handle_abort=1")
        self.victim = (App if args.app else Server)(self)
        self.deaths, self.trials = {}, 0
        self.last = collections.deque(maxlen=SUSPECTS)
        version = subprocess.run(["fi_info", "--version"], text=True,
                                 capture_output=True).stdout
        self.version = re.search(r"libfabric: (\S+)", version)[1]
        self.known = []
        for path in args.known:
            with open(path) as f:
                self.known += [re.compile(line.strip()) for line in f
                               if line.strip() and line[0] != "#"]

    def live(self, conn, way, edits):
        self.proxy.begin(conn, way, edits)
        self.victim.session()

    def replay(self, conn, way, edits):
        """The recorded client, with other bytes on one connection."""
        record, got, socks, sent = self.record, {}, {}, {}
        up = {c: record.stream(c, UP) for c in range(len(record.ports))}
        if way == DOWN:
            up[conn] = record.stream(conn, DOWN)
        editor = Editor(parse(edits))
        self.proxy.begin(shut=True)
        try:
            for c, w, data in record.events:
                if c not in socks:
                    socks[c] = self.dial(c, got)
                    got[c], sent[c] = b"", 0
                if not socks[c]:
                    continue
                if w == DOWN:
                    want = len(got[c]) + len(data)
                    while len(got[c]) < want:
                        got[c] += socks[c].recv(65536) or b"\0" * want
                    continue
                begin, sent[c] = sent[c], sent[c] + len(data)
                data = bytearray(up[c][begin:sent[c]])
                for i, conn_, j in record.repeats[c] if way == UP else ():
                    new = got.get(conn_, b"")[j:j + 4]
                    if begin <= i < sent[c] - 3 and len(new) == 4:
                        data[i - begin:i - begin + 4] = new
                socks[c].sendall(editor.feed(data) if c == conn else data)
                if c == conn and editor.ended:
                    break
        except (OSError, IndexError):  # it is gone
            pass
        for sock in filter(None, socks.values()):
            sock.close()
        self.proxy.step(0)

    def dial(self, conn, got):
        """To what listens there now; None: it was the client that did."""
        port = self.record.ports[conn]
        if port in self.record.listens:
            port = listens(self.victim.proc.pid)[
                self.record.listens.index(port)]
        else:  # told on a connection before
            told = [got.get(c, b"")[i:i + 2] for c in range(conn) for i in
                    [self.record.stream(c, DOWN).find(port.to_bytes(2, "big"))]
                    if i >= 0] or [b""]
            port = int.from_bytes(told[0], "big")
        if not port:
            return None
        sock = socket.create_connection(("127.0.0.1", port))
        sock.settimeout(QUIET)
        self.proxy.total += 1
        return sock

    def honest(self, record=None):
        self.proxy.begin(record=record)
        return self.victim.session()

    def begin(self):
        self.victim.start()
        for _ in range(5):
            self.record = Record(listens(self.victim.proc.pid))
            if self.honest(self.record) and self.record.ports:
                self.record.find_repeats()
                return
        sys.exit("nothing to record: " + self.victim.said())

    def choose(self, number):
        rng = random.Random("%s:%s" % (self.args.seed, number))
        kind = "live" if rng.random() < self.args.live else "replay"
        conn = rng.randrange(len(self.record.ports))
        way = DOWN if rng.random() < (.5 if kind == "live" else .1) else UP
        size = len(self.record.stream(conn, way))
        edits = "reflect"
        if size and (kind == "replay" or rng.random() > .02):
            edits = ",".join(
                "%s@%d-%d=%s" % random_edit(rng, size,
                                            self.record.starts(conn, way))
                for _ in range(rng.choice([1, 1, 1, 2, 3])))
        return "%s %d %s %s" % (kind, conn, way, edits)

    def one(self, number, trial):
        kind, conn, way, edits = trial.split(" ", 3)
        self.last.append("%d: %s" % (number, trial))
        self.trials += 1
        if kind == "live":
            self.live(int(conn), way, edits)
        elif int(conn) < len(self.record.ports):
            self.replay(int(conn), way, edits)
        self.look()

    def look(self, why=None):
        """If the server has died there is a new one."""
        why = why or self.victim.fault()
        if why:
            self.victim.end()
            said = self.victim.said()
            self.victim.start()
            self.died(self.victim.name, why, said)
        return bool(why)

    def died(self, who, why, said):
        key = "%s: %s" % (who, why)
        if key not in self.deaths:
            self.deaths[key] = [0, list(self.last), said]
            print("%s; %s" % (key, " ".join(list(self.last)[-1:])), flush=True)
        self.deaths[key][0] += 1

    def check(self):
        if not any(self.honest() or self.look() for _ in range(3)):
            self.look("hang: no honest peer is served")

    def culprit(self, key):
        """The one of the latest trials that does it alone, or None."""
        for text in reversed(self.deaths[key][1]):
            number, trial = text.split(": ", 1)
            count = self.deaths[key][0]
            self.one(int(number), trial)
            self.check()
            if self.deaths[key][0] > count:
                return trial
        return None

    def main(self):
        args, number = self.args, self.args.first
        self.begin()
        start = time.monotonic()
        while time.monotonic() - start < args.seconds and \
                self.proxy.total < args.connections:
            self.one(number, args.trial or self.choose(number))
            number += 1
            if args.trial or number % CHECK == 0:
                self.check()
            if args.trial:
                break
        self.check()
        took = time.monotonic() - start
        bad = self.report()
        print("%s, %s: seed %s, %d trials, %d connections, %.0f a second, %d "
              "deaths, %d of them unknown" % (
                  self.provider, self.victim.name, args.seed, self.trials,
                  self.proxy.total, self.proxy.total / took,
                  sum(d[0] for d in self.deaths.values()), bad))
        self.victim.end()
        return 1 if bad else 0

    def report(self):
        bad = 0
        for key, (count, last, said) in list(self.deaths.items()):
            name = "%s %s: %s" % (self.version, self.provider, key)
            if any(p.search(name) for p in self.known):
                print("known: %d times: %s" % (count, name))
                continue
            bad += count
            trial = self.args.trial or self.culprit(key)
            print("FAIL: %d times: %s" % (count, name))
            print("  | " + "\n  | ".join(
                said[max(0, said.find("ERROR: AddressSanitizer")):
                     ].splitlines()[-40 if "WIRE" in said else 0:][:40]))
            if trial:
                print("  again: %s %s-b %s -l %s '%s' -T '%s'" % (
                    sys.argv[0], "-a " if self.args.app else "", self.args.bin,
                    self.args.shim, self.provider, trial))
            else:
                print("  none of these does it alone: " + "; ".join(last))
        return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("provider", nargs="?", default="tcp;ofi_mrrc")
    add("-b", "--bin", default="", help="folder of the programs")
    add("-l", "--shim", required=True, help="wire_shim.so")
    add("-a", "--app", action="store_true", help="not the file server")
    add("-k", "--known", action="append", default=[],
        help="file with expressions for deaths that are no failures")
    add("-S", "--seed", default="1")
    add("-f", "--first", type=int, default=0, help="trial's number")
    add("-L", "--live", type=float, default=.3, help="share of live trials")
    add("-s", "--seconds", type=float, default=30)
    add("-n", "--connections", type=int, default=1 << 40)
    add("-T", "--trial", help="this one alone")
    run = Run(parser.parse_args())
    try:
        status = run.main()
    finally:
        shutil.rmtree(run.dir, ignore_errors=True)
    sys.exit(status)


if __name__ == "__main__":
    main()
