"""`millrace ledgers`: which ledgers there are, how long they are, and how far their readers have got."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from millrace_client.commands.hub_command import HubCall, Limit
from millrace_client.commands.output import err, print_fields, print_json, print_table, utc
from millrace_client.operator.ledgers import LedgerView, ReaderLag

HELP = "List the hub's ledgers, or show one of them with the lag of each reader. Needs the role operator."
EXAMPLES = ("millrace ledgers sync", "millrace ledgers sync demo", "millrace ledgers realtime --prefix call-")
CONTRACTS = ("sync", "realtime", "streams", "catalog", "delivery")


def ledgers(
    call: HubCall,
    contract: Annotated[
        str | None, typer.Argument(help="sync, realtime, streams, catalog or delivery; all of them if left out.")
    ] = None,
    scope: Annotated[str | None, typer.Argument(help="One ledger: a project, session, domain, team …")] = None,
    prefix: Annotated[str | None, typer.Option(help="Only ledgers whose name begins so.")] = None,
    count: Limit = None,
) -> None:
    with call.operator(contract or "", scope or prefix or "") as hub:
        if contract is not None and scope is not None:
            _show(hub.ledgers.get(contract, scope), call)
            return
        found: list[LedgerView] = []
        for one in CONTRACTS if contract is None else (contract,):
            for ledger in hub.ledgers.list(one, prefix):
                if count is not None and len(found) == count:
                    break
                found.append(ledger)
    if call.as_json:
        for ledger in found:
            print_json(as_json(ledger))
        return
    rows = [(one.contract, one.scope, one.head, one.floor, utc(one.last_commit_ms), worst(one)) for one in found]
    if not print_table(("contract", "scope", "head", "floor", "last commit (UTC)", "behind"), rows):
        err.print("No ledgers.")


def worst(ledger: LedgerView) -> str:
    """The reader that is furthest behind; nothing if none is."""
    readers = {**ledger.stages, **ledger.targets}
    behind = {name: lag for name, lag in readers.items() if lag.lag_events}
    if not behind:
        return ""
    name = max(behind, key=lambda one: behind[one].lag_events)
    return f"{name}: {behind[name].lag_events}"


def as_json(ledger: LedgerView) -> dict[str, object]:
    def lags(readers: Mapping[str, ReaderLag]) -> dict[str, object]:
        return {
            name: {"position": one.position, "lag_events": one.lag_events, "lag_seconds": one.lag_seconds}
            for name, one in readers.items()
        }

    return {
        "contract": ledger.contract,
        "scope": ledger.scope,
        "head": ledger.head,
        "floor": ledger.floor,
        "events": ledger.events,
        "last_commit_ms": ledger.last_commit_ms,
        "stages": lags(ledger.stages),
        "targets": lags(ledger.targets),
    }


def _show(ledger: LedgerView, call: HubCall) -> None:
    if call.as_json:
        print_json(as_json(ledger))
        return
    print_fields(
        [
            ("ledger", f"{ledger.contract} {ledger.scope}"),
            ("head", ledger.head),
            ("floor", ledger.floor),
            ("events kept", ledger.events),
            ("last commit", utc(ledger.last_commit_ms)),
        ]
    )
    readers = [*ledger.stages.items(), *((f"target {name}", lag) for name, lag in ledger.targets.items())]
    print_table(
        ("reader", "position", "events behind", "seconds behind"),
        [(name, one.position, one.lag_events, one.lag_seconds) for name, one in readers],
    )
