"""The lake's store, for commands that work on it with the caller's own AWS credentials."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from millrace.lake.adapters.store import open_objects
from millrace.lake.ports.objects import Objects
from millrace.ledger.domain.errors import MillraceError, Rejected, Unavailable
from millrace_client import local_stack
from millrace_client.errors import Refused, Unreachable, Usage

Store = Annotated[
    str | None,
    typer.Option(
        "--store", envvar="MILLRACE_STORE", help="s3://bucket/prefix or a directory; default: the local hub's."
    ),
]


def open_store(store: str | None) -> Objects:
    """The store of this address, or of the hub that runs here."""
    address, settings = located(store)
    return open_objects(address, **settings)


def located(store: str | None) -> tuple[str, dict[str, str]]:
    """A store's address and the settings of its AWS clients."""
    if store is not None:
        return store, {}
    stack = local_stack.required("name a --store")
    if stack.archive_bucket is None:
        raise Usage("The local hub names no archive bucket; name a --store.")
    settings = {
        "endpoint_url": stack.endpoint_url,
        "region_name": stack.region,
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
    }
    return f"s3://{stack.archive_bucket}", settings


@contextmanager
def translated() -> Iterator[None]:
    """The hub's errors as the command line's."""
    try:
        yield
    except Rejected as error:
        raise Refused(error.status, error.code, error.message, error.details) from error
    except Unavailable as error:
        raise Unreachable(error.message) from error
    except MillraceError as error:
        raise Refused(error.status, error.code, error.message, error.details) from error
