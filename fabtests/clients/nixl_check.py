# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""NIXL with libfabric's plug-in: two agents of this process, and buffers that are
registered for each write, unmapped after it, and mapped again at the same address;
then many views of one pool, registered at once."""

import ctypes
import mmap
import time

import numpy
from nixl_cu12 import nixl_agent, nixl_agent_config

SIZE = 4 << 20
VIEWS = 2000


def agent(name):
    new = nixl_agent(name, nixl_agent_config(backends=[]))
    new.create_backend("LIBFABRIC", {})
    return new


def address(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def write(writer, target, data, step):
    """Writes data, a byte value, into new memory of the target."""
    source, sink = mmap.mmap(-1, SIZE), mmap.mmap(-1, SIZE)
    source[:] = bytes([data]) * SIZE
    at = address(source), address(sink)
    kept = [side.register_memory([(start, SIZE, 0, "")], "DRAM")
            for side, start in zip((writer, target), at)]
    writer.add_remote_agent(target.get_agent_metadata())
    handle = writer.initialize_xfer(
        "WRITE", *(writer.get_xfer_descs([(start, SIZE, 0)], "DRAM")
                   for start in at), target.name, b"step %d" % step)
    state, told, end = writer.transfer(handle), {}, time.monotonic() + 60
    while state != "DONE" or not told:
        assert state != "ERR" and time.monotonic() < end, state
        state = writer.check_xfer_state(handle)
        told = told or target.get_new_notifs()
    right = bytes(sink) == bytes([data]) * SIZE
    writer.release_xfer_handle(handle)
    for side, registered in zip((writer, target), kept):
        side.deregister_memory(registered)
    assert right, f"step {step}: wrong data"
    return at


one, two = agent("one"), agent("two")
places = {write(one, two, 17 * step + 1, step) for step in range(10)}
assert len(places) < 10, "no address came again"
pool = numpy.zeros(VIEWS * 4096, numpy.uint8)
for step in range(3):
    one.deregister_memory(one.register_memory(
        [(pool.ctypes.data + view * 4096, 4096, 0, "") for view in range(VIEWS)],
        "DRAM"))
print("all data is right: nixl")
