"""What can be wrong with a cursor when a reader comes back with it."""

from __future__ import annotations

from millrace_client.errors import ClientError


class CursorAhead(ClientError):
    """The hub's newest position is below the cursor: it is another hub, or it was set back."""

    def __init__(self, cursor: int, newest: int) -> None:
        super().__init__(
            f"The cursor is at {cursor}, but the hub's newest position is {newest}: it is another hub or was set back. "
            "Read everything again with --resync (in code: on_future_cursor='resync')."
        )
        self.cursor = cursor
        self.newest = newest


class HistoryPruned(ClientError):
    """Events after the cursor are no longer kept. Nothing was skipped yet."""

    def __init__(self, cursor: int, pruned_through: int) -> None:
        super().__init__(f"The cursor is at {cursor}, but events up to {pruned_through} are no longer kept.")
        self.cursor = cursor
        self.pruned_through = pruned_through
