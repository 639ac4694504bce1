"""The registry of receivers: a type that stands there can be put, configured and delivered to, on both sides (D7)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from millrace.delivery.adapters.hub_receivers import HubReceivers
from millrace.delivery.adapters.memory.targets import MemorySecrets
from millrace.delivery.domain.hub_targets import SecretSet, check_secrets, check_target
from millrace.delivery.domain.outcomes import Answer, judge_webhook
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.signing import new_secret
from millrace.delivery.domain.targets import Blocked
from millrace.delivery.ports.deliveries import DeliveryReceiver
from millrace.delivery.receivers.kind import Parts, ReceiverKind
from millrace.delivery.receivers.outbound import Outbound
from millrace.delivery.receivers.posting import JSON, Outgoing, answered
from millrace.delivery.receivers.registry import RECEIVERS
from millrace.ledger.domain.errors import BadRequest
from millrace_client.errors import Usage
from millrace_client.journal.config import load
from millrace_client.journal.drain import Drain
from millrace_client.journal.local_journal import LocalJournal
from millrace_client.journal.session import Surroundings, open_session
from tests.support.local_target import LocalTarget, answer, local_target, results
from tests.support.worlds import in_memory

PYTHONPATH = Path(__file__).parents[3] / "layers" / "common" / "python"
SECRET = new_secret(b"s" * 32)
SOURCES = [{"contract": "delivery", "scope": "*"}]


@dataclass(frozen=True)
class Chat:
    """A type that nobody has heard of: one message a request, to a URL that is its own secret."""

    url: str
    outbound: Outgoing
    clock: Callable[[], int]
    most_events: int = 1
    most_bytes: int = 40_000

    def gate(self) -> tuple[Blocked, str] | None:
        return None

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        body = json.dumps({"text": picks[0].event_id}).encode()
        return answered(lambda: self.outbound.post(self.url, JSON, body), picks, self.clock, judge_webhook)


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = ReceiverKind("chat", build=lambda parts: Chat(parts.url, parts.outbound, parts.clock))
    monkeypatch.setitem(RECEIVERS, kind.name, kind)


def on_hub(clock: Callable[[], int], **given: Any) -> DeliveryReceiver:
    """The receiver of a target as an operator puts it."""
    target = check_target("acme", "t", {"sources": SOURCES, **given}, None, 0, kinds=RECEIVERS, loopback=True)
    kept, secrets = SecretSet().changed(given, 0), MemorySecrets()
    check_secrets(RECEIVERS[target.kind], given, kept)
    receivers = HubReceivers(kinds=RECEIVERS, secrets=secrets, outbound=Outbound, clock=clock, loopback=True)
    return receivers(replace(target, sealed=secrets.seal(target.key, kept.text())), lambda: True)


def texts(target: LocalTarget) -> list[Any]:
    return [json.loads(request.text) for request in target.requests]


def test_a_new_type_is_delivered_to_by_the_hub(chat: None) -> None:
    world = in_memory()
    world.capture("e1", "e2")
    with local_target(answer(200)) as target:
        assert world.drain(on_hub(world.clock, type="chat", url=target.url)).complete
    assert texts(target) == [{"text": "e1"}, {"text": "e2"}]
    assert world.statuses() == {"e1": "success", "e2": "success"}


def test_the_hub_delivers_to_an_external_target_that_has_no_signing_secret() -> None:
    """D12"""
    world = in_memory()
    world.capture("e1")
    with local_target(results(e1="success")) as target:
        assert world.drain(on_hub(world.clock, type="external", url=target.url)).complete
    assert "webhook-signature" not in target.requests[0].headers


def test_a_new_type_is_delivered_to_by_the_client(chat: None, tmp_path: Path) -> None:
    with local_target(answer(200)) as target:
        settings = f'[sync]\nallow_loopback = true\n[sync.targets.room]\ntype = "chat"\nurl = "{target.url}"\n'
        (tmp_path / "config.toml").write_text(settings)
        with LocalJournal(tmp_path) as journal:
            journal.capture({"event_id": "e1", "event_type": "note"})
        session = open_session(tmp_path, None, Surroundings(environment={}))
        [result] = Drain(session, session.definitions)()
    assert result.drained.complete
    assert texts(target) == [{"text": "e1"}]


def test_what_a_new_type_needs_is_asked_of_operators_on_both_sides(chat: None, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="type chat needs a url"):
        on_hub(in_memory().clock, type="chat")
    with pytest.raises(BadRequest, match="type chat is no webhook"):
        on_hub(in_memory().clock, type="chat", mode="webhook", url="https://chat.example")
    (tmp_path / "config.toml").write_text('[sync.targets.room]\ntype = "chat"\n')
    with pytest.raises(Usage, match="needs a url"):
        load(tmp_path, {})


def test_a_type_that_is_not_in_the_registry_is_refused_with_those_that_are() -> None:
    with pytest.raises(BadRequest, match="type is one of teamspace, external, stub"):
        on_hub(in_memory().clock, type="chat", url="https://chat.example")


@pytest.mark.parametrize("name", RECEIVERS)
def test_every_type_of_the_registry_is_built_from_the_same_parts_and_delivers(name: str) -> None:
    """D7"""
    world = in_memory()
    world.capture("e1", "e2")
    with local_target(results(e1="success", e2="success")) as target:
        outbound = Outbound(RECEIVERS[name].reach(loopback=True))
        receiver = RECEIVERS[name].build(Parts(target.url, outbound, world.clock, auth="token", signing=[SECRET]))
        assert world.drain(receiver).complete
    assert world.statuses() == {"e1": "success", "e2": "success"}
    assert target.requests


@pytest.mark.parametrize("name", RECEIVERS)
def test_no_receiver_shows_a_secret_when_it_is_printed(name: str) -> None:
    parts = Parts("https://a.example", Outbound(), lambda: 0, auth="hush", signing=["hush"])
    assert "hush" not in repr(parts) + repr(RECEIVERS[name].build(parts))


def test_whoever_only_captures_loads_nothing_that_sends() -> None:
    heavy = ("boto3", "cryptography", "urllib3")
    code = f"import sys, millrace.delivery.receivers.registry; print([one for one in {heavy} if one in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(PYTHONPATH)}, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
