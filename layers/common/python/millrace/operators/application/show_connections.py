"""Show connections: who is connected to which project, and what each has subscribed to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from millrace.lake.domain.retention_rules import scope_of
from millrace.ledger.domain.access import OPERATOR, Identity
from millrace.ledger.ports import Together
from millrace.live.ports import OpenSocket, OpenSockets
from millrace.operators.domain.reach import is_reached

Section = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ShowConnections:
    sockets: OpenSockets
    together: Together

    def __call__(self, identity: Identity, project: str, after: str, limit: int) -> Section:
        """Connections to projects that the token names. `limit` are looked at, so a page may be short, and even empty,
        before the end."""
        identity.require(OPERATOR)
        if project:
            identity.require_project(project)
        ids = self.sockets.page(identity.tenant, after, limit)
        wanted = frozenset({project}) if project else identity.projects
        found: Sequence[OpenSocket | None] = (
            self.together([partial(self.sockets.look, id_) for id_ in ids]) if ids else []
        )
        shown = [_socket_json(identity, one) for one in found if one is not None and one.connection.project in wanted]
        return {"connections": shown, "next": ids[-1] if len(ids) == limit else None}


def _socket_json(identity: Identity, socket: OpenSocket) -> Section:
    known = socket.connection
    return {
        "connection": known.id,
        "client_id": known.identity.client_id if known.identity else "",
        "project": known.project,
        "subscriptions": [
            {"subscription_id": id_, "contract": scope.contract, "scope": scope.text}
            for id_, scope in (
                (id_, scope_of(name)) for id_, name in socket.subscriptions if is_reached(identity, name)
            )
        ],
    }
