"""Checks the golden texts, or rewrites them for review: `python -m tests.golden --write [PART OF A NAME]`.

`--make` writes the inputs of `tests.golden.make` anew before.
"""

from __future__ import annotations

import argparse
import difflib
import sys

from tests.golden import FOLDER, expectation, inputs, read
from tests.golden.make import MAKERS, made


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace what is expected by what is read")
    parser.add_argument("--make", action="store_true", help="write the inputs that are made by code")
    parser.add_argument("part", nargs="?", default="", help="of the names of the inputs; default: all")
    options = parser.parse_args()
    for name in MAKERS if options.make else ():
        if options.part in name:
            (FOLDER / name).parent.mkdir(exist_ok=True)
            (FOLDER / name).write_bytes(made(name))
    changed = 0
    for path in inputs():
        name = path.relative_to(FOLDER).as_posix()
        if options.part not in name:
            continue
        expected = expectation(path)
        before, now = expected.read_text(encoding="utf-8") if expected.exists() else "", read(path)
        if before == now:
            continue
        changed += 1
        sys.stdout.writelines(
            difflib.unified_diff(before.splitlines(True), now.splitlines(True), f"{name}, expected", f"{name}, read")
        )
        if options.write:
            expected.write_text(now, encoding="utf-8")
    sys.stdout.write(f"{changed} {'rewritten: review the changes' if options.write else 'differ'}\n")
    return 0 if options.write else min(changed, 1)


if __name__ == "__main__":
    sys.exit(main())
