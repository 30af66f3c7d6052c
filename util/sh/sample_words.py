#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Prints sentences of this tree at random, for a reader who did not write them.

Each has to be understood alone, by somebody who has never seen the project: the
reader counts those that stop him.  The same seed gives the same sentences.
"""

import argparse
import pathlib
import random
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
# a string that a log, a message or an error consists of
MESSAGE = re.compile(r"\b(?:MRRC_(?:WARN|INFO)\w*|fprintf|err_set|said?)"
                     r"\s*\(([^;]*?);", re.S)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
# not prose: tables, blocks of code, headings, pictures, a page's header
NO_PROSE = re.compile(r"\A---.*?^---|^```.*?^```|^(?:\||#|!\[|<!|    ).*?$",
                      re.S | re.M)
SHORT = 8  # words


def line(text, match):
    return text.count("\n", 0, match.start()) + 1


def sentences(text):
    return re.split(r"(?<=[.:])\s+(?=[A-Z*`@])", " ".join(text.split()))


def of_source(text):
    for match in COMMENT.finditer(text):
        prose = re.sub(r"\n\s*\*?", " ", match[1])
        if "SPDX" not in prose:
            for sentence in sentences(prose):
                yield "comment", line(text, match), sentence
    for match in MESSAGE.finditer(text):
        prose = " ".join(STRING.findall(match[1]))
        yield "message", line(text, match), " ".join(prose.split())


def of_page(text, kind):
    kept = NO_PROSE.sub(lambda gone: "\n" * gone[0].count("\n"), text)
    for match in re.finditer(r"\S.*?(?=\n\s*\n|\Z)", kept, re.S):
        for sentence in sentences(match[0]):
            yield kind, line(kept, match), sentence


def of_file(name):
    text = (ROOT / name).read_text(errors="replace")
    if name.endswith((".c", ".h")):
        return of_source(text)
    if name.endswith(".md"):
        return of_page(text, "manual" if name.startswith("man/") else "page")
    return ()


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("-s", "--seed", type=int, default=1)
    args.add_argument("-n", "--count", type=int, default=60,
                      help="sentences, as many of each kind (default: 60)")
    args = args.parse_args()
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split()
    kinds = {}
    for name in names:
        if "/test/" in name:
            continue
        for kind, at, sentence in of_file(name):
            if len(sentence.split()) >= SHORT:
                kinds.setdefault(kind, []).append((name, at, sentence))
    chance = random.Random(args.seed)
    for kind, found in sorted(kinds.items()):
        for name, at, sentence in chance.sample(found, args.count // 4):
            print(f"{kind} {name}:{at}: {sentence}\n")


if __name__ == "__main__":
    main()
