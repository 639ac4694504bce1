"""Types of target: what an operator has to give for each, and where it may be. The receivers' registry lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from millrace.delivery.domain.addresses import Reach


@dataclass(frozen=True, slots=True)
class Kind:
    """What is true of all targets of one type."""

    name: str
    needs_url: bool = True
    takes_webhook: bool = False
    """Whether it may be sent one event a request, any 2xx being success (`mode: webhook`)."""
    auth: str = ""
    """What its `auth_secret` is; empty: it has none."""
    needs_auth: bool = False
    signed: bool = False
    """Its requests are signed if it has a signing secret; a target without one is `unsigned`."""
    local: bool = False
    """It is on this machine or nowhere."""
    is_login: bool = False
    """For a client it is the server that it is logged in to, and none of the targets that it lists."""

    def reach(self, *, loopback: bool) -> Reach:
        return Reach(public=not self.local, loopback=loopback)

    def reach_from_client(self, *, loopback: bool) -> Reach:
        """On a developer's machine a local target needs no permission: that is what it is for."""
        return self.reach(loopback=loopback or self.local)


Kinds = Mapping[str, Kind]
"""By name."""
