"""A hub as its operator sees it: each part is an attribute."""

from __future__ import annotations

from functools import cached_property

from millrace_client.operator.audit import OperatorAudit
from millrace_client.operator.events import Events
from millrace_client.operator.grants import BreakGlass
from millrace_client.operator.http import OperatorHttp
from millrace_client.operator.lake import LakeDoors, QuarantineDoors
from millrace_client.operator.ledgers import Ledgers
from millrace_client.operator.profiles import ProjectProfiles
from millrace_client.operator.standing import Standing
from millrace_client.operator.targets import RetentionRules, Targets


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

    @cached_property
    def targets(self) -> Targets:
        return Targets(self)

    @cached_property
    def retention(self) -> RetentionRules:
        return RetentionRules(self)

    @cached_property
    def profiles(self) -> ProjectProfiles:
        return ProjectProfiles(self)

    @cached_property
    def grants(self) -> BreakGlass:
        return BreakGlass(self)

    @cached_property
    def standing(self) -> Standing:
        """Overview, connections, degraded subscriptions."""
        return Standing(self)

    @cached_property
    def lake(self) -> LakeDoors:
        """Tables and registry."""
        return LakeDoors(self)

    @cached_property
    def quarantine(self) -> QuarantineDoors:
        return QuarantineDoors(self)
