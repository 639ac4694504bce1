"""Audited: do what an operator asks for, and record who asked for what, when, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from millrace.ledger.application.audit import AuditLedger
from millrace.ledger.domain.access import OPERATOR, Identity
from millrace.ledger.domain.errors import MillraceError, Rejected
from millrace.ledger.domain.naming import MAX_NAME_BYTES, is_text

T = TypeVar("T")

BEGUN, DONE, REFUSED, FAILED = "begun", "done", "refused", "failed"


@dataclass(frozen=True, slots=True)
class Audited:
    audit: AuditLedger

    def __call__(self, identity: Identity, action: str, act: Callable[[], T], **subject: str) -> T:
        """`subject` names what is acted on, never what it is given: no bodies, no secrets. `target_id`, `project`,
        `partition` and `runtime_id` decide who may read of it.

        The entry `begun` is durable before anything is done, so that a process which dies hides nothing. Who is no
        operator does nothing here that could be recorded: `act` refuses.
        """
        if OPERATOR not in identity.roles:
            return act()
        entry = {name: _clipped(value) for name, value in subject.items()}
        entry["action_id"] = self.audit.new_id()
        self.audit.append(identity, action, outcome=BEGUN, **entry)
        try:
            done = act()
        except MillraceError as error:
            outcome = REFUSED if isinstance(error, Rejected) else FAILED
            self.audit.append(identity, action, outcome=outcome, code=error.code, **entry)
            raise
        except Exception:
            self.audit.append(identity, action, outcome=FAILED, code=MillraceError.code, **entry)
            raise
        self.audit.append(identity, action, outcome=DONE, **entry)
        return done


def _clipped(value: str) -> str:
    """What a request named may be no name at all."""
    text = value if is_text(value) else value.encode("utf-8", "replace").decode()
    return text.encode()[: 4 * MAX_NAME_BYTES].decode("utf-8", "ignore")
