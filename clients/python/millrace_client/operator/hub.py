"""A hub as its operator sees it: each part is an attribute."""

from __future__ import annotations

from functools import cached_property

from millrace_client.operator.audit import OperatorAudit
from millrace_client.operator.events import Events
from millrace_client.operator.http import OperatorHttp
from millrace_client.operator.ledgers import Ledgers


class Operator(OperatorHttp):
    """Needs a token with the role operator. A context manager, as `Client` is."""

    @cached_property
    def ledgers(self) -> Ledgers:
        return Ledgers(self)

    @cached_property
    def events(self) -> Events:
        return Events(self)

    @cached_property
    def audit(self) -> OperatorAudit:
        return OperatorAudit(self)
