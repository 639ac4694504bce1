"""`millrace sync`: deliver what was captured, see how it stands, and look after the journal."""

from __future__ import annotations

import typer

from millrace_client.commands.groups import with_examples
from millrace_client.commands.sync.archive import archive
from millrace_client.commands.sync.audit import audit
from millrace_client.commands.sync.conflicts import conflicts
from millrace_client.commands.sync.gc import gc
from millrace_client.commands.sync.migrate import migrate
from millrace_client.commands.sync.now import now
from millrace_client.commands.sync.retry import retry
from millrace_client.commands.sync.status import status
from millrace_client.commands.sync.targets import targets

app = typer.Typer(
    help=with_examples(
        "Deliver captured events to their targets, and look after the local journal.", "millrace sync status"
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
)
for command in (now, targets, status, gc, archive, retry, migrate, conflicts, audit):
    app.command()(command)
