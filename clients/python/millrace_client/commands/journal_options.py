"""What the delivery commands share: their options, and errors in plain words."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import typer

from millrace.ledger.domain.errors import BadRequest, MillraceError, TooLarge
from millrace_client.commands.connection import World
from millrace_client.errors import ClientError, Usage
from millrace_client.home import default_home
from millrace_client.journal.session import JournalSession, open_session

Home = Annotated[
    Path | None,
    typer.Option("--home", envvar="MILLRACE_HOME", help="Where config and journal are; default ~/.spec-kitty."),
]
Override = Annotated[
    bool, typer.Option("--process-override", help="Use SPEC_KITTY_SAAS_URL everywhere, whatever is configured.")
]
Token = Annotated[
    str | None, typer.Option("--token", envvar="MILLRACE_TOKEN", help="The bearer token for the Teamspace.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]

P = ParamSpec("P")


class JournalProblem(ClientError):
    """The journal will not do what was asked."""

    def as_json(self) -> dict[str, Any]:
        return {"code": "journal", "message": str(self)}


def session_of(
    ctx: typer.Context, home: Path | None, token: str | None, *, override: bool = False, lenient: bool = False
) -> JournalSession:
    world: World = ctx.obj
    return open_session(
        home or default_home(), token and token.strip(), world.around, process_override=override, lenient=lenient
    )


@contextmanager
def in_plain_words() -> Iterator[None]:
    try:
        yield
    except (BadRequest, TooLarge) as error:
        raise Usage(error.message) from error
    except MillraceError as error:
        raise JournalProblem(error.message) from error
    except sqlite3.Error as error:
        raise JournalProblem(f"The journal cannot be used: {error}.") from error


def plainly(command: Callable[P, None]) -> Callable[P, None]:
    """A command whose errors are one line."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with in_plain_words():
            command(*args, **kwargs)

    return run
