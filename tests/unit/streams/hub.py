"""The streams contract's use cases on in-memory stores, for tests."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from millrace.ledger.adapters.keyring import StagedKeys
from millrace.ledger.adapters.memory import MemoryClaims, MemoryLog, MemoryProjections, MemoryState, in_turn
from millrace.ledger.application.audit import AuditLedger
from millrace.ledger.application.commit import Commit
from millrace.ledger.application.failures import Failures
from millrace.ledger.application.heads import Heads
from millrace.ledger.application.prune import Prune
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.names import Ledger, stream_ledger
from millrace.streams.adapters.memory import MemoryRawValues, MemoryRows, MemoryRuntimes
from millrace.streams.adapters.sealing import AesSealer
from millrace.streams.application.announce import Announce
from millrace.streams.application.diagnostics import Diagnostics
from millrace.streams.application.emit import Emit, Emitted, Result
from millrace.streams.application.markers import ManageMarkers, SettleMarkers
from millrace.streams.application.poll import Poll, PolledBatch
from millrace.streams.application.runtime_access import Negotiate
from millrace.streams.application.runtime_status import RuntimeStatus
from millrace.streams.application.tell_policy import TellPolicy
from millrace.streams.domain.privacy import Policy, hasher
from millrace.streams.domain.transition import undone

RUNTIME, STREAM = "r1", "s"
CURRENT, PREVIOUS = "AWSCURRENT", "AWSPREVIOUS"


@dataclass
class Clock:
    """A time that stands still until a test moves it."""

    ms: int = 1_771_236_000_000

    def __call__(self) -> int:
        return self.ms

    def advance(self, ms: int) -> None:
        self.ms += ms


@dataclass
class StreamsHub:
    """The use cases are properties, called exactly as a door calls them; `send` and `next` are short for two of them.

    They are made anew at each use, so a test can put another store in the place of one at any time.
    A hub starts with the runtime r1 negotiated.
    """

    log: MemoryLog = field(default_factory=MemoryLog)
    state: MemoryState = field(default_factory=MemoryState)
    claims: MemoryClaims = field(default_factory=MemoryClaims)
    rows: MemoryRows = field(default_factory=MemoryRows)
    raw: MemoryRawValues = field(default_factory=MemoryRawValues)
    projections: MemoryProjections = field(default_factory=MemoryProjections)
    clock: Clock = field(default_factory=Clock)
    secrets: dict[str, str] = field(default_factory=lambda: {CURRENT: "first secret"})
    policy: Policy = field(default_factory=lambda: Policy.of({}))
    negotiated: bool = True
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.runtimes = MemoryRuntimes(self.state, self.clock)
        self.restart()
        if self.negotiated:
            self.agree()

    def restart(self) -> None:
        """Forget what a process remembers; only the stores survive."""
        self.heads = Heads(self.clock)
        self.tenants_told = set[str]()
        self.keys = StagedKeys(self.secrets.get, self.clock)

    def rotate(self, secret: str) -> None:
        self.secrets = {CURRENT: secret, PREVIOUS: self.secrets[CURRENT]}
        self.restart()

    def new_id(self) -> str:
        return f"{next(self.numbers):016x}"

    def identity(self, **claims: Any) -> Identity:
        everything = {"client_id": "me", "partitions": ["*"], "roles": ["producer", "consumer", "operator"]}
        return Identity.of({**everything, **claims})

    @property
    def commit(self) -> Commit:
        nonce = lambda: next(self.numbers).to_bytes(12, "big")  # noqa: E731
        return Commit(self.claims, self.log, self.state, self.heads, in_turn, self.clock, nonce, lambda _attempt: None)

    @property
    def emit(self) -> Emit:
        announce = Announce(self.rows, self.commit, self.new_id, lambda _attempt: None, undone)
        sealer = AesSealer(self.keys)
        stores = (self.commit, announce, self.runtimes, self.raw, sealer)
        return Emit(*stores, self.policy, self.hasher, in_turn, self.clock, self.tell_policy)

    @property
    def poll(self) -> Poll:
        stores = (self.log, self.state, self.runtimes, self.runtimes)
        return Poll(*stores, self.keys, self.heads, in_turn, self.clock, self.new_id)

    @property
    def negotiate(self) -> Negotiate:
        return Negotiate(self.runtimes, self.audit)

    @property
    def tell_policy(self) -> TellPolicy:
        return TellPolicy(self.announce_markers, self.audit, self.policy, self.tenants_told)

    @property
    def announce_markers(self) -> Announce:
        return Announce(self.rows, self.commit, self.new_id, lambda _attempt: None)

    @property
    def markers(self) -> ManageMarkers:
        rows = (self.announce_markers, self.rows, self.rows)
        keys, policy, new_id = self.keys, self.policy, self.new_id
        return ManageMarkers(
            *rows, self.runtimes, keys, policy, self.hasher, self.clock, new_id, tell_policy=self.tell_policy
        )

    def settle_markers(self, older_than_ms: int = 0, may_go_on: Callable[[], bool] = lambda: True) -> int:
        """As the scheduled function does, by default with every intent left before now."""
        failures = Failures()
        settle = SettleMarkers(self.announce_markers, self.rows, self.rows, self.clock, may_go_on)
        settled = settle(older_than_ms, failures)
        failures.raise_first()
        return settled

    @property
    def audit(self) -> AuditLedger:
        return AuditLedger(self.commit, self.log, self.state, self.heads, in_turn, self.clock, self.new_id)

    @property
    def diagnostics(self) -> Diagnostics:
        sealer = AesSealer(self.keys)
        return Diagnostics(self.runtimes, self.raw, sealer, self.audit, self.clock, self.new_id, self.new_id)

    @property
    def status(self) -> RuntimeStatus:
        stores = (self.log, self.state, self.projections, self.runtimes)
        return RuntimeStatus(*stores, self.heads, in_turn, self.clock)

    def hasher(self, tenant: str) -> Callable[[str], str]:
        return hasher(f"hash key of {tenant}".encode())

    def prune(self, stream: str, through: int, runtime: str = RUNTIME) -> int:
        return Prune(self.log, self.state, ())(self.ledger(stream, runtime), through).removed

    def ledger(self, stream: str = STREAM, runtime: str = RUNTIME, tenant: str = "default") -> Ledger:
        return stream_ledger(tenant, runtime, stream)

    def agree(self, runtime: str = RUNTIME, **asked: Any) -> dict[str, Any]:
        """Negotiate, with the capabilities and limits that are asked for."""
        return self.negotiate(self.identity(), runtime, {"supported_contract_versions": [2], **asked})

    def send(self, *events: Any, stream: str = STREAM, runtime: str = RUNTIME, **claims: Any) -> list[Result]:
        return self.emit(self.identity(**claims), runtime, stream, events)

    def next(
        self,
        cursor: str | None = None,
        max_events: int | None = None,
        *,
        stream: str = STREAM,
        runtime: str = RUNTIME,
        **claims: Any,
    ) -> PolledBatch:
        return self.poll(self.identity(**claims), runtime, stream, cursor, max_events)

    def stored(self, stream: str = STREAM, runtime: str = RUNTIME) -> list[dict[str, Any]]:
        """Every event in the log, pruned ones left out, with its seq_no."""
        pages = self.log.pages.get(self.ledger(stream, runtime).name, {})
        events = [event for first in sorted(pages) for event in pages[first].events()]
        return [{**json.loads(e.record.body), "seq_no": e.position} for e in events if e.record.body is not None]


def event(event_id: Any, event_type: Any = "RuntimeStateChanged", **changes: Any) -> dict[str, Any]:
    return {
        "event_id": event_id,
        "contract_version": 2,
        "ts_ms": 1_771_236_000_000,
        "event_type": event_type,
        "severity": "info",
        "source_component": "router",
        "payload": {"to": "up"},
        **changes,
    }


def transition(event_id: Any, message_id: Any, to: Any, **changes: Any) -> dict[str, Any]:
    return event(event_id, "DeliveryStateTransition", message_id=message_id, payload={"to": to}, **changes)


def odd(*values: Any) -> tuple[Any, ...]:
    """Values of all kinds, for tables of bad input."""
    return values


def told(batch: PolledBatch) -> list[dict[str, Any]]:
    """A batch's events, read."""
    return [json.loads(text) for text in batch.events]


def codes(results: list[Result]) -> list[str | int]:
    """Per result its position, or its error's code without the prefix."""
    return [r.position if isinstance(r, Emitted) else r.code.removeprefix("SDK_") for r in results]


def accepted(result: Result) -> Emitted:
    assert isinstance(result, Emitted), result.body()
    return result
