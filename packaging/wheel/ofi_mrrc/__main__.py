# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs a program over ofi_mrrc, libfabric's registration cache.

  python -m ofi_mrrc run [OPTION]... [--] COMMAND...
      run COMMAND, and say on standard error what the cache did
  python -m ofi_mrrc check [OPTION]... [[--] COMMAND...]
      say whether the cache can work with the libfabric that COMMAND
      would load, and what is missing (fi_mrrc_stat --check)

  --hook             set FI_HOOK=mrrc, not FI_PROVIDER: for a program that
                     names its provider, or registers memory itself
  --alloc            take the memory of MPI_Alloc_mem from fi_mr_alloc, so that it
                     is registered already: mpi4py's MPI.Alloc_mem, and arrays
                     and tensors over it
  --libfabric FILE   the libfabric that COMMAND loads, if the wrong one is found
"""
# The package has a folder of provider and fi_mrrc_stat for each major version of
# libfabric: libfabric1, libfabric2.  Flow of run: find the libfabric, ask for its
# version -> set the variables -> run -> add up FI_OFI_MRRC_STATS_FILE.

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SONAME = "libfabric.so.1"
# below the prefix of a program: environments of venv and conda, and the wheels of
# MPICH, Open MPI and Intel MPI; "*.libs" are those that auditwheel copied
BELOW = (
    "lib/" + SONAME,
    "lib/*/" + SONAME,
    "lib64/" + SONAME,
    "opt/mpi/libfabric/lib/" + SONAME,
    "lib/python3*/site-packages/*.libs/libfabric*.so*",
)
PASSED_ON = (signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
ASK = (
    "import ctypes, sys\n"
    "v = ctypes.CDLL(sys.argv[1]).fi_version()\n"
    "print(v >> 16, v & 0xffff)\n"
)


def say(text):
    try:
        os.write(2, os.fsencode("ofi_mrrc: %s\n" % text))
    except OSError:  # the reader of standard error has gone
        pass


def die(text, status=1):
    say(text)
    sys.exit(status)


def output(*command):
    try:
        return subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            universal_newlines=True,
            timeout=60,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def copies(command):
    """Yields the copies of libfabric that command may load, the likeliest first."""
    programs = [path for path in map(shutil.which, command) if path]
    for path in programs:
        yield from re.findall(r"libfabric\S* => (/.*) \(0x", output("ldd", path))
    for path in programs:
        # not the target of a link: an environment's python is one
        prefix = os.path.dirname(os.path.dirname(os.path.abspath(path)))
        if prefix in ("/", "/usr"):
            continue
        for pattern in BELOW:
            yield from sorted(glob.glob(os.path.join(glob.escape(prefix), pattern)))
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        path = os.path.join(folder, SONAME)
        if folder and os.path.exists(path):
            yield path
    for ldconfig in ("/sbin/ldconfig", "/usr/sbin/ldconfig"):
        yield from re.findall(
            r"%s .* => (/.*)" % re.escape(SONAME), output(ldconfig, "-p")
        )


def find(command, chosen):
    """Returns a libfabric, its major and its minor version."""
    for path in [chosen] if chosen else copies(command):
        version = output(sys.executable, "-c", ASK, path).split()
        if len(version) == 2:
            return path, int(version[0]), int(version[1])
    die(
        "%s is no libfabric" % chosen
        if chosen
        else "no libfabric is found; --libfabric FILE names one"
    )


def own(major, name):
    path = os.path.join(HERE, "libfabric%d" % major, name)
    if not os.path.exists(path):
        die("nothing here is for libfabric %d.x: %s is missing" % (major, path))
    return path


def has_device():
    return bool(glob.glob("/dev/infiniband/uverbs*"))


def choose(major):
    """Returns what FI_PROVIDER is to be."""
    given = os.environ.get("FI_PROVIDER", "")
    if "mrrc" in given:
        return given
    if re.search("[,^]", given):
        die("FI_PROVIDER=%s: name one provider, or use --hook" % given)
    if given:
        # for reliable datagrams libfabric puts ofi_rxm over one core by itself
        rxm = "" if ";" in given else ",%s;ofi_rxm;ofi_mrrc" % given
        return given + ";ofi_mrrc" + rxm
    if has_device():
        return "verbs;ofi_rxm;ofi_mrrc"
    # reliable datagrams, which tcp itself has in 2.x
    return "tcp;ofi_mrrc" if major > 1 else "tcp;ofi_rxm;ofi_mrrc"


def over_tcp():
    """Whether all providers that FI_PROVIDER names are over tcp."""
    given = os.environ.get("FI_PROVIDER")
    return bool(given) and all(name.startswith("tcp") for name in given.split(","))


def prepend(name, path):
    os.environ[name] = ":".join(filter(None, (path, os.environ.get(name))))


def prepare(command, hook, chosen):
    """Sets the variables; returns libfabric's path and major version."""
    path, major, minor = find(command, chosen)
    env = os.environ
    # with FI_PROVIDER_PATH set, libfabric no longer looks in its own folder, which
    # is prov beside that of Intel MPI
    beside = os.path.dirname(os.path.realpath(path))
    theirs = [os.path.join(beside, name) for name in ("libfabric", "prov")]
    given = env.get("FI_PROVIDER_PATH", "")
    # "@" before the list: the first provider of a name is taken, not the newest
    order = "@" if given.startswith("@") else ""
    given = given[len(order) :]
    folders = [given] if given else list(filter(os.path.isdir, theirs))
    env["FI_PROVIDER_PATH"] = order + ":".join(
        [os.path.dirname(own(major, "libmrrc-fi.so"))] + folders
    )
    name = "FI_HOOK" if hook else "FI_PROVIDER"
    env[name] = "mrrc" if hook else choose(major)
    setting = "%s=%s" % (name, env[name])
    if over_tcp() and not env.get("FI_OFI_MRRC_REGISTER"):
        # over tcp, which needs no registered buffers, nothing is cached otherwise
        env["FI_OFI_MRRC_REGISTER"] = "always"
        setting += " FI_OFI_MRRC_REGISTER=always"
    say("libfabric %d.%d, %s; %s" % (major, minor, path, setting))
    return path, major


def lines(path):
    try:
        with open(path) as file:
            return file.readlines()
    except FileNotFoundError:  # no domain was closed
        return []


def result(domains, hook):
    """Returns in words what lines of FI_OFI_MRRC_STATS_FILE say, one of each domain."""
    total, pids, core, lacks = {}, set(), "", ""
    for line in domains:
        try:
            domain = json.loads(line)
        except ValueError:  # a process that was killed, or a full disk
            continue
        pids.add(domain["pid"])
        core = domain["provider"]
        lacks = domain.get("lacks") or lacks
        for name, value in domain["counters"].items():
            total[name] = total.get(name, 0) + value
    if not pids:
        return "nothing was cached; %spython -m ofi_mrrc check -- COMMAND tells why" % (
            "" if hook else "if COMMAND names its provider, use --hook; "
        )
    text = "%d process%s over %s: %d lookups, %d hits (%.1f%%), %d registrations" % (
        len(pids),
        "es" if len(pids) > 1 else "",
        core,
        total["lookups"],
        total["hits"],
        100.0 * total["hits"] / (total["lookups"] or 1),
        total["registrations"],
    )
    if total["allocations"]:
        text += ", %d allocations" % total["allocations"]
    return text + ("; it lacks " + lacks if lacks else "")


def start(command):
    """Starts command; signals to this process reach it, too."""
    child, early = [], []

    def pass_on(number, _):
        if not child:
            early.append(number)
            return
        try:
            child[0].send_signal(number)
        except OSError:  # it has ended, or is another user's
            pass

    for number in PASSED_ON:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, pass_on)
    # launchers of MPI hand descriptors down
    try:
        child.append(subprocess.Popen(command, close_fds=False))
    except OSError as error:
        # as the shell has it
        status = 127 if isinstance(error, FileNotFoundError) else 126
        die("%s: %s" % (command[0], error.strerror), status)
    for number in early:
        pass_on(number, None)
    return child[0]


def run(command, hook, alloc, chosen):
    _, major = prepare(command, hook, chosen)
    if alloc:
        library = own(major, "libmrrc_mpi.so")
        if re.search("[ :]", library):
            die("--alloc: LD_PRELOAD takes no path with a space or colon: " + library)
        prepend("LD_PRELOAD", library)
    # in a folder, so that a process that ends later leaves no file
    folder = tempfile.mkdtemp(prefix="ofi_mrrc-")
    ours = os.path.join(folder, "stats")
    file = os.environ.get("FI_OFI_MRRC_STATS_FILE") or ours
    os.environ["FI_OFI_MRRC_STATS_FILE"] = file
    try:
        child = start(command)
        # signals from the keyboard are for the program
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)
        status = child.wait()
        if file == ours:
            say(result(lines(ours), hook))
        else:
            say("what was cached is in FI_OFI_MRRC_STATS_FILE=" + file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 128 - status if status < 0 else status


def check(command, hook, chosen):
    path, major = prepare(command or [sys.executable], hook, chosen)
    tool = own(major, "fi_mrrc_stat")
    os.execv(tool, [tool, "--check", "--libfabric=" + path])


def main():
    words = sys.argv[1:]
    what = words.pop(0) if words else ""
    hook, alloc, chosen = False, False, None
    if what in ("-h", "--help") or words[:1] in (["-h"], ["--help"]):
        print(__doc__, end="")
        return 0
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word == "--":
            break
        if word == "--hook":
            hook = True
        elif word == "--alloc":
            alloc = True
        elif word == "--libfabric" and words:
            chosen = words.pop(0)
        elif word.startswith("--libfabric="):
            chosen = word.partition("=")[2]
        else:
            what = ""
    if what == "check":
        return check(words, hook, chosen)
    if what == "run" and words:
        return run(words, hook, alloc, chosen)
    print(__doc__, end="", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
