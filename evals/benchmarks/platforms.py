"""Whether the default dependencies install as wheels, and how much that downloads, by platform and Python version.

Needs the program `uv` and the network; it resolves for other platforms and installs nothing.
"""

from __future__ import annotations

import os
import subprocess
import tomllib

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "Linux x86-64": "x86_64-manylinux_2_28",
    "Linux ARM64": "aarch64-manylinux_2_28",
    "macOS 14 ARM64": "aarch64-apple-darwin",
    "macOS 14 x86-64": "x86_64-apple-darwin",
    "Windows x86-64": "x86_64-pc-windows-msvc",
}
_ENVIRONMENT = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": "14.0"}


def print_platforms() -> None:
    """Print a Markdown table: packages and megabytes; a dash where a package has no wheel."""
    print(f"| platform | {' | '.join(f'Python {version}' for version in PYTHONS)} |")  # noqa: T201
    print("|---" * (len(PYTHONS) + 1) + "|")  # noqa: T201
    for name, platform in PLATFORMS.items():
        cells = [describe(resolve(platform, version)) for version in PYTHONS]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)  # noqa: T201


def resolve(platform: str, python: str) -> str | None:
    """The lock (PEP 751) of the default dependencies; None if they cannot be installed from wheels."""
    command = ["uv", "pip", "compile", "pyproject.toml", "--only-binary", ":all:", "--format", "pylock.toml"]
    target = ["--python-platform", platform, "--python-version", python]
    done = subprocess.run([*command, *target], env=_ENVIRONMENT, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout if done.returncode == 0 else None


def describe(lock: str | None) -> str:
    """Packages and megabytes of a lock; of several wheels that fit the largest counts."""
    if lock is None:
        return "–"
    packages = tomllib.loads(lock)["packages"]
    size = sum(max(wheel["size"] for wheel in package["wheels"]) for package in packages)
    return f"{len(packages)}, {size / 1e6:.0f} MB"


if __name__ == "__main__":
    print_platforms()
