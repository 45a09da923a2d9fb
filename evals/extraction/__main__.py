"""`python -m evals.extraction`: values right and proved, missing ones null, near misses never verified."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import click

from evals.extraction.measure import Filled, fill_in, read_forms


@click.command()
@click.option(
    "--judge", "judges", multiple=True, default=("right", "none"), help="right, trusted (says only yes), none."
)
@click.option("--values", is_flag=True, help="Print each value that is not as it should be.")
def main(judges: tuple[str, ...], values: bool) -> None:
    """Fill in the forms with a careful and with a careless model, and count."""
    for judge in judges:
        for careless in (False, True):
            asyncio.run(_measure(judge, careless=careless, values=values))


async def _measure(judge: str, *, careless: bool, values: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        filled, model = await fill_in(read_forms(), Path(folder), judge=judge, careless=careless)
    asked = sum(len(one.form.values.keys() - (one.form.near if careless else {}).keys()) for one in filled)
    right, null = (sum(len(getattr(one, kind)) for one in filled) for kind in ("right", "null"))
    near = [status for one in filled for status in one.statuses(list(one.form.near))]
    click.echo(
        f"judge {judge}, model {'careless' if careless else 'careful'}: "
        f"{right} of {asked} values right and proved, {null} of {len(filled)} missing ones null, "
        + (f"{near.count('verified')} of {len(near)} near misses verified, " if careless else "")
        + f"{len(model.unshown)} not shown"
    )
    if values:
        for one in filled:
            _print_wrong(one)


def _print_wrong(one: Filled) -> None:
    for value in one.body.values:
        if value.status != "verified":
            cited = value.citation.quote if value.citation else None
            click.echo(f"  {one.form.name} {value.pointer} {value.value!r}: {value.status}, {value.reason} ({cited})")


if __name__ == "__main__":
    main()
