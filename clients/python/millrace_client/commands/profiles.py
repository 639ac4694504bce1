"""`millrace profiles`: which shape of events a project takes."""

from __future__ import annotations

from typing import Annotated

import typer

from millrace_client.commands.groups import group
from millrace_client.commands.hub_command import HubCall, on_hub
from millrace_client.commands.output import err, print_fields, print_json, print_table
from millrace_client.sync.http import Json

Project = Annotated[str, typer.Argument(help="The project.")]
Projects = Annotated[
    list[str] | None, typer.Option("--project", help="On the hub of this machine: a project to ask for; repeatable.")
]
DEFAULT = "default"


def list_profiles(call: HubCall, project: Projects = None) -> None:
    """List the projects whose profile was set, of those that the token names; with --json one a line."""
    with call.operator_of(*(project or ())) as hub:
        profiles = list(hub.profiles.list())
    if call.as_json:
        for one in profiles:
            print_json(one)
        return
    names = ("project", "profile", "set_by")
    if not print_table(names, ([one[name] for name in names] for one in profiles)):
        err.print("No profile was set: these projects take any type of event.")


def show(call: HubCall, project: Project) -> None:
    """Show the profile of a project, and who set it."""
    with call.operator_of(project) as hub:
        _tell(call, hub.profiles.get(project))


def set_(
    call: HubCall,
    project: Project,
    profile: Annotated[str, typer.Argument(help="open, canonical, compatibility; default takes back what was set.")],
) -> None:
    """Set the profile of a project. Submits follow within seconds; committed events stay as they are."""
    with call.operator_of(project) as hub:
        _tell(call, hub.profiles.put(project, None if profile == DEFAULT else profile))


def _tell(call: HubCall, answer: Json) -> None:
    if call.as_json:
        print_json(answer)
    else:
        print_fields(list(answer.items()))


app = group(
    "See and set which shape of events a project takes. Needs the role operator.",
    "millrace profiles set demo canonical",
    "millrace profiles show demo",
    "millrace profiles list --project demo",
    "millrace profiles set demo default",
    list=on_hub(list_profiles),
    show=on_hub(show),
    set=on_hub(set_),
)
