# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
wire.py's streams: how they are changed, what is recorded of them, and the proxy
that they go through.
"""
import re
import selectors
import socket
import time

QUIET = 0.1  # seconds without a byte: nothing more comes of a trial
LOST = 5     # the same, as long as nothing was changed
HANG = 120   # a process that has not ended or answered by then hangs
STORM = 64   # connections of a session that dials for ever: an honest one has 6
MARK = b"MCRM"  # in a request for a control connection of ours
UP, DOWN = "up", "down"  # to the side that listens, and from it


# ---- changes -----------------------------------------------------------------

class Editor:
    """Changes a stream on its way. Edits are (op, begin, end, argument)."""

    def __init__(self, edits):
        self.edits = sorted(edits, key=lambda e: e[1])
        self.pos, self.held, self.ended, self.any = 0, b"", False, False

    def feed(self, data, flush=False):
        self.held += data
        out = b""
        while self.edits and not self.ended:
            op, begin, end, arg = self.edits[0]
            if self.pos + len(self.held) < end:
                break
            self.edits.pop(0)
            if begin >= self.pos:  # does not overlap the one before
                out += self.take(begin - self.pos)
                out += self.change(op, self.take(end - begin), arg)
                self.any = True
        last = len(self.held)
        if self.edits and not flush:
            last = max(0, min(last, self.edits[0][1] - self.pos))
        return out + self.take(last)

    def take(self, n):
        data, self.held = self.held[:n], self.held[n:]
        self.pos += len(data)
        return b"" if self.ended else data

    def change(self, op, data, arg):
        if op in ("set", "ins"):
            return bytes.fromhex(arg)
        if op in ("addl", "addb"):
            order = "little" if op == "addl" else "big"
            value = int.from_bytes(data, order) + int(arg)
            return (value % (1 << 8 * len(data))).to_bytes(len(data), order)
        if op == "swap":
            return data[int(arg):] + data[:int(arg)]
        self.ended = op == "cut"
        return {"dup": data + data}.get(op, b"")


def random_edit(rng, size, starts):
    """Fields are near the begin of what was sent at once."""
    def spot():
        if rng.random() < 0.75:
            return min(rng.choice(starts) + rng.randrange(96), size - 1)
        return rng.randrange(size)

    op = rng.choices(["set", "addl", "addb", "ins", "dup", "drop", "swap",
                      "cut"], [9, 6, 3, 1, 2, 2, 2, 1])[0]
    at = spot()
    if op in ("set", "addl", "addb"):
        width = rng.choice([1, 2, 4, 8])
        at -= at % width if rng.random() < 0.5 else 0
        width = min(width, size - at)
        if op != "set":
            add = rng.choice([8, 64, 4096, 1 << 16, 1 << 31, 1 << 33,
                              1 << rng.randrange(8 * width)])
            return op, at, at + width, str(rng.choice([1, -1, add, -add]))
        ones = b"\xff" * (width - 1)
        return op, at, at + width, rng.choice([
            bytes(width), ones + b"\xff", b"\x7f" + ones, ones + b"\x7f",
            b"\x80" + bytes(width - 1), bytes(width - 1) + b"\x80",
            rng.randbytes(width)]).hex()
    if op in ("ins", "cut"):
        new = rng.randbytes(rng.choice([1, 4, 24, 200])).hex()
        return op, at, at, new if op == "ins" else ""
    first, last = sorted(rng.choice(starts) if rng.random() < 0.6 else spot()
                         for _ in range(2))
    last = min(max(last, first + rng.choice([1, 8, 24, 80])), size)
    return op, first, last, str(rng.randrange(last - first))


def parse(text):
    return [(op, int(begin), int(end), arg) for op, begin, end, arg in
            re.findall(r"(\w+)@(\d+)-(\d+)=(-?\w*)", text)]


class Record:
    """A session: what came, in order, as (connection, direction, bytes)."""

    def __init__(self, listens_):
        self.events, self.ports, self.repeats = [], [], {}
        self.listens = listens_

    def stream(self, conn, way):
        return b"".join(d for c, w, d in self.events if (c, w) == (conn, way))

    def starts(self, conn, way):
        at, found = 0, []
        for c, w, data in self.events:
            if (c, w) == (conn, way):
                found.append(at)
                at += len(data)
        return found

    def find_repeats(self):
        """Where four bytes of the client's are ones that it was sent."""
        def fours(conn, way):
            data = self.stream(conn, way)[:8192]
            for i in range(len(data) - 3):
                four = data[i:i + 4]
                if len(set(four)) == 4 and 0 not in four:
                    yield i, four
        seen = {four: (conn, i) for conn in range(len(self.ports))
                for i, four in fours(conn, DOWN)}
        self.repeats = {conn: [(i, *seen[four]) for i, four in fours(conn, UP)
                               if four in seen]
                        for conn in range(len(self.ports))}


# ---- the proxy ---------------------------------------------------------------

class Link:
    """A connection: side[UP] has connected, side[DOWN] listens."""

    def __init__(self, proxy, sock, port):
        self.index, self.proxy, self.reflects = len(proxy.links), proxy, None
        self.edit = {UP: Editor([]), DOWN: Editor([])}
        self.side = {UP: sock, DOWN: socket.create_connection(
            ("127.0.0.1", port))}
        for way, s in self.side.items():
            s.settimeout(5)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            proxy.sel.register(s, selectors.EVENT_READ, (self.ready, way))

    def ready(self, way):
        try:
            data = self.side[way].recv(65536)
        except OSError:
            data = b""
        if data and self.proxy.record:
            self.proxy.record.events.append((self.index, way, data))
        self.proxy.marks += way == UP and MARK in data
        self.pass_on(way, data, not data)
        if not data or self.edit[way].ended:
            self.close()

    def pass_on(self, way, data, flush=False):
        self.proxy.changed |= self.reflects == way
        data = self.edit[way].feed(data, flush)
        self.proxy.changed |= self.edit[way].any
        to = way if self.reflects == way else DOWN if way == UP else UP
        try:
            self.side[to].sendall(data)
        except OSError:
            self.close()

    def close(self):
        for sock in self.side.values():
            if sock.fileno() >= 0:
                self.proxy.sel.unregister(sock)
            sock.close()


class Proxy:
    def __init__(self):
        self.sel = selectors.DefaultSelector()
        self.sock = socket.create_server(("0.0.0.0", 0), backlog=256)
        self.port = self.sock.getsockname()[1]
        self.sel.register(self.sock, selectors.EVENT_READ, (self.accept, None))
        self.total = 0
        self.begin()

    def begin(self, conn=None, way=None, edits=(), record=None, shut=False):
        """conn: which connection of the session is changed"""
        self.links, self.conn, self.way, self.edits = [], conn, way, edits
        self.record, self.changed, self.shut = record, False, shut
        self.marks = 0  # requests for control connections

    def accept(self, _):
        sock, _ = self.sock.accept()
        at = sock.getsockname()[0].split(".")
        port = int(at[1]) << 8 | int(at[2])
        try:
            if at[0] != "127" or self.shut:
                raise ConnectionRefusedError
            link = Link(self, sock, port)
        except OSError:
            sock.close()
            return
        self.total += 1
        if self.record:
            self.record.ports.append(port)
        if link.index == self.conn:
            if self.edits == "reflect":
                link.reflects = self.way
            else:
                link.edit[self.way] = Editor(parse(self.edits))
        self.links.append(link)

    def step(self, timeout):
        """Returns whether anything happened."""
        events = self.sel.select(timeout)
        for key, _ in events:
            if key.fileobj.fileno() >= 0:
                key.data[0](key.data[1])
        return bool(events)

    def relay(self, fd, end=lambda: None):
        """Until fd can be read; calls end() if nothing more comes, or
        connections without end (docs/upstream/net-simultaneous.md)."""
        over, quiet = [], time.monotonic()
        self.sel.register(fd, selectors.EVENT_READ, (over.append, True))
        while not over and len(self.links) <= STORM:
            limit = HANG if self.conn is None else \
                QUIET if self.changed else LOST
            if self.step(QUIET):
                quiet = time.monotonic()
            elif any(e.held for li in self.links for e in li.edit.values()):
                for link in self.links:
                    for way, edit in link.edit.items():
                        if edit.held:
                            edit.any = True
                            link.pass_on(way, b"", True)
            elif time.monotonic() - quiet > limit:
                break
        self.shut = True
        for link in self.links:
            link.close()
        if not over:
            end()
        late = time.monotonic() + HANG
        while not over and time.monotonic() < late:
            self.step(QUIET)
        self.sel.unregister(fd)
        return bool(over)
