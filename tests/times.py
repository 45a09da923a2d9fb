"""Where the minutes of a test run go, from pytest's JUnit reports: `python -m tests.times REPORT.xml …`."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from defusedxml.ElementTree import parse

ROWS = 40


def read_times(reports: Iterable[Path]) -> dict[str, tuple[float, int]]:
    """File of tests → (seconds with fixtures, number of tests)."""
    times: defaultdict[str, list[float]] = defaultdict(list)
    for report in reports:
        for case in parse(report).iter("testcase"):
            module = str(case.get("classname")).split(".")
            while module and not Path(*module).with_suffix(".py").exists():
                module.pop()  # a class
            times["/".join(module)].append(float(case.get("time", 0)))
    return {name: (sum(seconds), len(seconds)) for name, seconds in times.items()}


def main() -> None:
    times = read_times(map(Path, sys.argv[1:]))
    total = sum(seconds for seconds, _ in times.values())
    write = sys.stdout.write
    write(f"{total:8.1f} s in {sum(number for _, number in times.values())} tests of {len(times)} files\n")
    for name, (seconds, number) in sorted(times.items(), key=lambda one: -one[1][0])[:ROWS]:
        write(f"{seconds:8.1f} s {number:5} tests  {name}\n")


if __name__ == "__main__":
    main()
