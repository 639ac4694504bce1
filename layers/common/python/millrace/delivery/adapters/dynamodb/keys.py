"""Keys of the delivery table. `%#` ends a ledger's name: in a name `%` is always followed by digits."""

from __future__ import annotations

from typing import Any

from millrace.delivery.domain.ranges import Range
from millrace.delivery.domain.states import Status
from millrace.ledger.domain.names import join_key

END = "%#"
TRANSIENT, WAITING, TERMINAL = "t", "w", "x"
POINTER_OF = {
    Status.TRANSIENT: TRANSIENT,
    Status.PENDING: WAITING,
    Status.REJECTED: WAITING,
    Status.TERMINAL_FAILED: TERMINAL,
}


def key(p: str, s: str) -> dict[str, Any]:
    return {"p": {"S": p}, "s": {"S": s}}


def targets(tenant: str) -> str:
    return join_key("targets", tenant)


def former(tenant: str) -> str:
    return join_key("former", tenant)


def drains(tenant: str) -> str:
    return join_key("drains", tenant)


def line(tenant: str) -> str:
    return join_key("line", tenant)


def cursors(target: str) -> str:
    return f"cursors#{target}"


def rows(target: str) -> str:
    return f"rows#{target}"


def pointers(target: str) -> str:
    return f"open#{target}"


def agenda(target: str) -> str:
    return f"agenda#{target}"


def row(ledger: str, last: int) -> str:
    return f"{ledger}{END}{last:020d}"


def pointer(ledger: str, run: Range) -> str:
    """The transient and the given up by position, those that wait by the time they wait for."""
    kind = POINTER_OF[run.delivery.status]
    at = [f"{run.first:020d}", f"{run.last:020d}"]
    if kind == WAITING:
        at.insert(0, moment(run.delivery.next_ms or 0))
    return END.join([kind, ledger, *at])


def leads_to(sort: str, ledger: str, run: Range) -> bool:
    """Whether a pointer is of this run, of which a part may have been cut off at its beginning."""
    if run.delivery.status not in POINTER_OF:
        return False
    mine, theirs = pointer(ledger, run).split(END), sort.split(END)
    return mine[:-2] == theirs[:-2] and mine[-1] == theirs[-1]


def pointers_of(kind: str, ledger: str) -> str:
    """What the pointers of a kind and ledger begin with."""
    return f"{kind}{END}{ledger}{END}"


def visit(when_ms: int, ledger: str) -> str:
    return f"{moment(when_ms)}{END}{ledger}"


def moment(ms: int) -> str:
    return f"{ms:015d}"
