"""`millrace retention`: how long events are kept, and what would go now."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from millrace_client.commands.groups import group
from millrace_client.commands.hub_command import Contract, HubCall, Scope, on_hub
from millrace_client.commands.output import err, print_fields, print_json, print_table
from millrace_client.errors import Usage


def list_rules(
    call: HubCall, contract: Annotated[str | None, typer.Option(help="Only rules of this contract.")] = None
) -> None:
    """List the rules; with --json one a line."""
    with call.operator() as hub:
        rules = list(hub.retention.list(contract))
    if call.as_json:
        for rule in rules:
            print_json(rule)
        return
    names = ("contract", "scope", "partition", "max_age_days", "max_events", "advance_to")
    if not print_table(names, ([rule[name] for name in names] for rule in rules)):
        err.print("No rules: everything is kept. Set one with `millrace retention set`.")


def set_rule(
    call: HubCall,
    contract: Contract,
    scope: Annotated[str, typer.Argument(help="The project, session, … or a prefix ending in *.")],
    partition: Annotated[str | None, typer.Option(help="A rule of this partition of a project.")] = None,
    max_age_days: Annotated[int | None, typer.Option(min=0, help="Keep for so many days; 0: no bound.")] = None,
    max_events: Annotated[int | None, typer.Option(min=0, help="Keep the newest; 0: no bound.")] = None,
    advance_to: Annotated[
        int | None, typer.Option(min=1, help="Nothing up to this position is needed; it never goes back.")
    ] = None,
) -> None:
    """Set what is given and leave the rest. What is pruned is gone; `plan` shows what that is."""
    given: dict[str, Any] = {} if advance_to is None else {"advance_to": advance_to}
    given |= {} if max_age_days is None else {"max_age_days": max_age_days or None}
    given |= {} if max_events is None else {"max_events": max_events or None}
    if not given:
        raise Usage("Give --max-age-days, --max-events or --advance-to.")
    with call.operator(contract, scope) as hub:
        answer = hub.retention.put(contract, scope, given if partition is None else {"partition": partition, **given})
    if call.as_json:
        print_json(answer)
    else:
        err.print(f"Set. `millrace retention plan {contract} {scope}` says what would go.", markup=False)


def show(call: HubCall, contract: Contract, scope: Scope) -> None:
    """Show the rules of one scope, with those of its partitions."""
    with call.operator(contract, scope) as hub:
        answer = hub.retention.get(contract, scope)
    if call.as_json:
        print_json(answer)
        return
    names = ("max_age_days", "max_events", "advance_to")
    rules = [{"partition": "(all)", **answer}, *answer["partitions"]]
    print_table(("partition", *names), ([rule[name] for name in ("partition", *names)] for rule in rules))


def plan(call: HubCall, contract: Contract, scope: Scope) -> None:
    """Say what would go of a ledger now, and who holds back the rest. Nothing is removed."""
    with call.operator(contract, scope) as hub:
        answer = hub.retention.plan(contract, scope)
    if call.as_json:
        print_json(answer)
        return
    spans = ", ".join(f"{first} to {last}" for first, last in answer["goes"]) or "nothing"
    print_fields(
        [
            ("ledger", f"{contract} {scope}, {answer['floor']} to {answer['head']}"),
            ("would go", f"{spans}: {answer['events']} events, {answer['bytes']} bytes"),
            ("held by", f"{answer['held_by']} at {answer['limit']}" if answer["held_by"] else None),
            ("not asked", ", ".join(answer["not_asked"])),
            ("complete", None if answer["complete"] else "no: more may go than is shown"),
        ]
    )
    print_table(("reader", "lets go up to"), sorted(answer["holders"].items()))


app = group(
    "See and set how long events are kept. Needs the role operator.",
    "millrace retention set sync demo --max-age-days 90",
    "millrace retention list",
    "millrace retention show sync demo",
    "millrace retention plan sync demo",
    list=on_hub(list_rules),
    set=on_hub(set_rule),
    show=on_hub(show),
    plan=on_hub(plan),
)
