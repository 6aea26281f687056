# SPDX-License-Identifier: Apache-2.0
"""``uir db``: measured schedules, listed, shown, copied, thinned out."""

from __future__ import annotations

import pathlib
from typing import Any

import attrs
import click

from ..errors import DatabaseError
from ..time_text import time_text
from .base import OUT, Commands, emit, global_options, wide
from .print import table_of

#: Options and arguments that several commands share.
DATABASE = click.argument("database", type=click.Path(path_type=pathlib.Path))
KEEP = click.option(
    "--keep", type=click.IntRange(1), metavar="N", help="So many schedules of each kernel, fastest first."
)


@click.group("db", cls=Commands)
@global_options
def database_commands() -> None:
    """Databases of measured schedules: folders that `uir compile --database DIR` takes schedules from.

    \b
    uir db list DIR                     kernels, sites of graphs, their best time, and what is stale
    uir db best DIR --kernel NAME       the schedule itself
    uir db export DIR OUT               the best of each kernel, of this machine, as a database to ship
    uir db merge DIR OTHER...           take over what others measured
    uir db prune DIR --keep 5           drop slower schedules
    uir db list shipped                 the one that comes with the package
    """


def _existing(path: pathlib.Path) -> Any:
    from ..tune import ScheduleDatabase

    return ScheduleDatabase.existing(path)


@database_commands.command("list")
@DATABASE
@global_options
@click.pass_context
def list_command(ctx: click.Context, database: pathlib.Path) -> None:
    """List the kernels of DATABASE: how many schedules, the best mean time, whether they are used here.

    Of a kernel with open sizes: the representative ones, their weights, and its times there.

    Then the sites of kernel graphs (how products run, and what shares a kernel), with what each takes.
    """
    from ..explain.tuning_summary import size_times

    found = _existing(database)
    rows, sites = _kernels(found), _sites(found)
    is_open = any(row["by_size"] for row in rows)
    shown = [
        {
            "target": f"{row['target']}:{row['hardware']}",
            "kernel": row["kernel"],
            "origin": row["origin"],
            "schedules": row["schedules"],
            "best": time_text(row["seconds"]) + (" modelled" if row["place"] == "model" else ""),
            **({"by size": "\n".join(map(str, size_times(row["by_size"])))} if is_open else {}),
            "used here": row["stale"] or "yes",
        }
        for row in rows
    ]
    shown_sites = [
        {
            "target": f"{row['target']}:{row['hardware']}",
            "site": row["site"],
            "takes": row["chosen"] or "the default",
            "default": time_text(row["default_seconds"]) if row["default_seconds"] else "",
            "gain": f"{row['gain']:.2f}x",
            "used here": row["stale"] or "yes",
        }
        for row in sites
    ]

    def human() -> None:
        for table in (shown, shown_sites):
            if table or table is shown:
                wide().print(table_of(table))

    emit(ctx, rows + sites, human)


def _sites(database: Any) -> list[dict[str, Any]]:
    """A row for each site of kernel graphs that was measured."""
    from ..tune.database import stale

    rows = []
    for key, site in database.sites():
        default = next((default for default, _ in site.options.values()), None)
        default = site.options[site.chosen][0] if site.chosen else default
        rows.append(
            {
                "target": key.target,
                "hardware": key.hardware,
                "place": key.place,
                "versions": dict(key.versions),
                **site.to_json(),
                "default_seconds": default,
                "gain": site.gain,
                "stale": stale(key),
            }
        )
    return rows


def _kernels(database: Any) -> list[dict[str, Any]]:
    """A row for each kernel of each key."""
    from ..tune.database import stale

    rows: dict[tuple[str, str], dict[str, Any]] = {}
    why: dict[str, str] = {}
    for entry in database.entries():  # best first
        folder = entry.key.folder
        if folder not in why:
            why[folder] = stale(entry.key)
        row = rows.setdefault(
            (folder, entry.origin),
            {
                "target": entry.key.target,
                "hardware": entry.key.hardware,
                "place": entry.key.place,
                "versions": dict(entry.key.versions),
                "kernel": entry.name,
                "origin": entry.origin,
                "schedules": 0,
                "seconds": entry.mean,
                "by_size": [attrs.asdict(time) for time in entry.by_size],
                "stale": why[folder],
            },
        )
        row["schedules"] += 1
    return list(rows.values())


def _some(count: int, which: str = "") -> str:
    return f"{count} {which}schedule{'' if count == 1 else 's'}"


@database_commands.command("best")
@DATABASE
@click.option("--kernel", help="A name or origin from `uir db list`; default: all kernels.")
@global_options
@click.pass_context
def best_command(ctx: click.Context, database: pathlib.Path, kernel: str | None) -> None:
    """Show the fastest schedule of kernels: the instructions that make it again."""
    best: dict[tuple[str, str], Any] = {}
    for entry in _existing(database).entries():
        if kernel is None or kernel in (entry.name, entry.origin):
            best.setdefault((entry.key.folder, entry.origin), entry)
    if not best:
        raise DatabaseError(
            f"{database} has no schedule of {kernel or 'any kernel'}.", remedy="see `uir db list`"
        )
    rows = [
        {
            "kernel": entry.name,
            "origin": entry.origin,
            "key": entry.key.to_json(),
            "seconds": list(entry.seconds),
            "trace": str(entry.trace),
        }
        for entry in best.values()
    ]

    def human() -> None:
        for row in rows:
            where = f"{row['key']['target']}:{row['key']['hardware']}"
            mean = time_text(sum(row["seconds"]) / len(row["seconds"]))
            click.echo(f"# {row['kernel']} ({row['origin']}) on {where}: {mean}")
            click.echo(row["trace"])

    emit(ctx, rows, human)


@database_commands.command("export")
@DATABASE
@click.argument("out", type=click.Path(path_type=pathlib.Path))
@KEEP
@click.option("--all", "everything", is_flag=True, help="Also what is stale on this machine.")
@global_options
@click.pass_context
def export_command(
    ctx: click.Context, database: pathlib.Path, out: pathlib.Path, keep: int | None, everything: bool
) -> None:
    """Copy the best schedules of DATABASE into a new one, OUT."""
    from ..tune import ScheduleDatabase
    from ..tune.database import stale

    source = _existing(database)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DatabaseError(f"{out} exists.", need="a new folder", remedy="name another; or `uir db merge`")
    keys = [records.key for records in source.all_records() if everything or not stale(records.key)]
    copied = ScheduleDatabase(out).merge(source, keep or 1, keys)
    if not copied:
        raise DatabaseError(
            f"Nothing of {database} is for this machine.", remedy="see `uir db list`, or export --all"
        )
    emit(ctx, {"schedules": copied, "database": str(out)}, lambda: OUT.print(f"{_some(copied)} in {out}"))


@database_commands.command("merge")
@DATABASE
@click.argument("others", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path))
@KEEP
@global_options
@click.pass_context
def merge_command(
    ctx: click.Context, database: pathlib.Path, others: tuple[pathlib.Path, ...], keep: int | None
) -> None:
    """Add the schedules of OTHERS to DATABASE, which is made if need be; what it has already stays once."""
    from ..tune import ScheduleDatabase

    into = ScheduleDatabase(database)
    sources = [_existing(path) for path in others]
    new = sum(into.merge(source, keep) for source in sources)
    said = f"{_some(new, 'new ')} in {database}"
    emit(ctx, {"new": new, "database": str(database)}, lambda: OUT.print(said))


@database_commands.command("prune")
@DATABASE
@KEEP
@global_options
@click.pass_context
def prune_command(ctx: click.Context, database: pathlib.Path, keep: int | None) -> None:
    """Drop the slower schedules of every kernel of DATABASE; one of each stays by default."""
    gone = _existing(database).prune(keep or 1)
    emit(ctx, {"dropped": gone, "database": str(database)}, lambda: OUT.print(f"{_some(gone)} dropped"))
