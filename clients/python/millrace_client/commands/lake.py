"""`millrace lake`: tables, quarantine and registry through the hub's doors, without access to its storage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from millrace_client.commands.files import json_lines, json_object
from millrace_client.commands.groups import group
from millrace_client.commands.hub_command import HubCall, on_hub
from millrace_client.commands.output import err, out, print_fields, print_json, print_table, utc
from millrace_client.errors import Usage
from millrace_client.sync.http import Json

Id = Annotated[str, typer.Argument(metavar="ID", help="The id that `lake quarantine` shows.")]
Reason = Annotated[str | None, typer.Option(help="Only what was set aside for this reason.")]


def tables(call: HubCall) -> None:
    """Show the published tables, the last runs of compaction, and what waits."""
    with call.operator() as hub:
        answer = hub.lake.tables()
    if call.as_json:
        print_json(answer)
        return
    waiting, quarantine = answer["waiting"], answer["quarantine"]
    print_fields(
        [
            (
                "edition",
                f"{answer['edition']}, published {utc(answer['published_ms'])}" if answer["edition"] else "none",
            ),
            ("waiting", waiting and f"{waiting['objects']}{'+' if waiting['more'] else ''} archive objects"),
            ("oldest", waiting and utc(waiting["oldest_ms"])),
            ("quarantine", quarantine and f"{quarantine['lines']} lines, {quarantine['objects']} objects"),
        ]
    )
    names = ("table", "rows", "files", "bytes")
    print_table(names, ([one[name] for name in names] for one in answer["tables"] or ()))
    counted = ("objects", "new", "duplicates", "quarantined")
    runs = (
        [utc(run["published_ms"]), *((run["counts"] or {}).get(name) for name in counted)] for run in answer["runs"]
    )
    print_table(("run", *counted), runs)
    if answer["tables"] is None:
        err.print("The numbers tell of the whole hub: the tenant `default` with every partition sees them.")


def quarantine(
    call: HubCall,
    reason: Reason = None,
    every: Annotated[bool, typer.Option("--all", help="Also what was driven again.")] = False,
) -> None:
    """List what compaction set aside; with --json one entry a line."""
    found = 0
    with call.operator() as hub:
        for found, entry in enumerate(hub.quarantine.list(reason, every=every), start=1):  # noqa: B007 - the count
            if call.as_json:
                print_json(entry)
            else:
                print_fields(_fields(entry))
                out.print()
    err.print(f"{found} in quarantine." if found else "Nothing is in quarantine.")


def show(
    call: HubCall,
    id_: Id,
    line: Annotated[bool, typer.Option("--line", help="Print the line alone, to edit and repair it.")] = False,
) -> None:
    """Show an entry with its line."""
    with call.operator() as hub:
        entry = hub.quarantine.get(id_)
    if line:
        print(entry["line"] or "")
    elif call.as_json:
        print_json(entry)
    else:
        print_fields([*_fields(entry), ("line", entry["line"])])


def redrive(
    call: HubCall,
    ids: Annotated[list[str] | None, typer.Argument(help="Ids of entries.")] = None,
    reason: Reason = None,
) -> None:
    """Put entries into the archive again as they are, for instance after their version was registered."""
    if bool(ids) == (reason is not None):
        raise Usage("Name ids or a --reason.")
    done: dict[str, str] = {}
    with call.operator() as hub:
        for step in [hub.quarantine.redrive(ids)] if ids else hub.quarantine.redrive_all(reason or ""):
            done |= step
    _driven(call, done)


def repair(
    call: HubCall,
    id_: Id,
    file: Annotated[Path, typer.Option(help="The repaired line, or lines of an object that could not be read.")],
) -> None:
    """Put repaired lines into the archive in place of an entry."""
    lines = json_lines(file)
    with call.operator() as hub:
        _driven(call, hub.quarantine.repair(id_, lines))


def registry(call: HubCall) -> None:
    """Print which versions of which types the tables take, as it was put."""
    with call.operator() as hub:
        answer = hub.lake.registry()
    if call.as_json:
        print_json(answer)
        return
    if answer["registry"] is None:
        err.print("There is no registry yet: compaction sets every event of the catalog aside.", style="yellow")
    print(json.dumps(answer["registry"] or {}, indent=1, ensure_ascii=False))


def put_registry(call: HubCall, file: Annotated[Path, typer.Argument(help="The registry, as JSON.")]) -> None:
    """Put a registry in place of the last one; the next compaction goes by it."""
    held = json_object(file)
    with call.operator() as hub:
        answer = hub.lake.put_registry(held)
    if call.as_json:
        print_json(answer)
    else:
        err.print(f"{answer['types']} types with {answer['versions']} versions; what is unknown: {answer['policy']}.")
        err.print("What is in quarantine stays there until `millrace lake redrive`.")


def _fields(entry: Json) -> list[tuple[str, object]]:
    """As a block of lines: an id is there to be copied whole."""
    version = "" if entry["event_version"] is None else f" v{entry['event_version']}"
    position = "" if entry["position"] is None else f", position {entry['position']}"
    return [
        ("id", entry["id"]),
        ("reason", f"{entry['reason']}: {entry['field']}" if entry["field"] else entry["reason"]),
        ("event", entry["event_type"] and f"{entry['event_type']}{version}"),
        ("ledger", entry["contract"] and f"{entry['contract']} {entry['scope']}{position}"),
        ("object", entry["object"]),
        ("driven again", entry["redriven"]),
    ]


def _driven(call: HubCall, done: Mapping[str, Any]) -> None:
    if call.as_json:
        print_json({"redriven": dict(done)})
        return
    if not done:
        err.print("Nothing waits for this reason.")
        return
    for id_, name in done.items():
        out.print(f"{id_} → {name}", markup=False)
    err.print(f"{len(done)} driven again; the next compaction takes them.")


app = group(
    "See the tables, and steer quarantine and registry, with a token. Needs the role operator.",
    "millrace lake tables",
    "millrace lake put-registry registry.json",
    "millrace lake registry",
    "millrace lake quarantine --reason unknown_version",
    "millrace lake redrive --reason unknown_version",
    tables=on_hub(tables),
    quarantine=on_hub(quarantine),
    show=on_hub(show),
    redrive=on_hub(redrive),
    repair=on_hub(repair),
    registry=on_hub(registry),
    **{"put-registry": on_hub(put_registry)},
)
