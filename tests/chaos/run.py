"""One run: a quiet measurement, the same in a flood, the storm, and the evidence it left."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from tests.chaos.checks import broken
from tests.chaos.delays import Probes, delays, send_probes
from tests.chaos.doors import DOORS
from tests.chaos.evidence import Delivered, Evidence, Size, TargetSeen, View, p99
from tests.chaos.faults import KILLED, PAUSED, kills_of, paused_seconds
from tests.chaos.live import Follower
from tests.chaos.plan import FLOODER, MEASURED, Plan
from tests.chaos.poison import Poisoner
from tests.chaos.readers import Poller, polling, views
from tests.chaos.settle import Log, all_taken, all_told, expected_at, wait_for_all
from tests.chaos.storm import doors_used, storm
from tests.chaos.targets import Desk
from tests.chaos.tenants import FLOODED, PROJECT, RUNTIME, STREAM
from tests.chaos.world import World, made, say
from tests.e2e.conftest import Hub

IN_DOUBT = (PAUSED, f"{KILLED} deliver")
"""What can keep a delivery from being written down."""


@dataclass(frozen=True)
class Outcome:
    plan: Plan
    evidence: Evidence
    broken: Mapping[str, list[str]]
    counts: Mapping[str, int]
    kills: Mapping[str, int]
    waited: Mapping[str, float]
    """Seconds from the last fault, or the last write, until each kind of reader had everything."""
    seconds: float


def run(hub: Hub, plan: Plan) -> Outcome:
    start = time.monotonic()
    with made(hub, plan) as world:
        say("measuring alone, then in a flood")
        probes = send_probes(world)
        for delay in delays(world, probes):
            say(f"{delay.name} p99 {p99(delay.alone):.2f} s alone, {p99(delay.flooded):.2f} s in the flood")
        say(f"storage itself took {probes.calls.slowdown:.1f} times as long in the flood")
        with polling([world.tenants[MEASURED]]) as pollers:
            say("storm")
            storm(world)
            quiet = time.monotonic()
            log = world.storage.log()
            say("waiting for what is late")
            waited = _settle(world, log, pollers, quiet)
        say("looking at everything")
        evidence = _evidence(world, log, pollers, probes, waited["deliveries"])
    history = world.history
    seconds = time.monotonic() - start
    return Outcome(plan, evidence, broken(evidence), dict(history.counts), kills_of(history), waited, seconds)


def _settle(world: World, log: Log, pollers: list[Poller], quiet: float) -> dict[str, float]:
    project = {one.tenant.name: len(log.get(one.tenant.ledger("sync", PROJECT), ())) for one in world.followers}
    stream = {one.tenant.name: len(log.get(one.tenant.ledger("streams", RUNTIME, STREAM), ())) for one in pollers}
    others = [desk for desk in world.desks if desk.tenant is not world.tenants[FLOODER]]
    conditions = {
        "deliveries": all_taken(world.desks, log),
        "deliveries of the others": all_taken(others, log),
        "delivery ledgers": all_told(world.desks, log, all_taken(world.desks, log)),
        "followers": lambda: all(len(one.seen) >= project[one.tenant.name] for one in world.followers),
        "pollers": lambda: all(len(one.seen) >= stream[one.tenant.name] for one in pollers),
        "archive": lambda: world.storage.is_archived(log),
    }
    readers: list[Follower | Poller] = [*world.followers, *pollers]
    return wait_for_all(
        quiet,
        world.plan.patience_seconds,
        conditions,
        lambda: [*(len(desk.posts) for desk in world.desks), *(len(reader.seen) for reader in readers)],
    )


def _evidence(world: World, log: Log, pollers: list[Poller], probes: Probes, delivered_after: float) -> Evidence:
    plan, history = world.plan, world.history
    poisoner = Poisoner(history, list(world.tenants.values()), world.rng("antidote"), 0)
    unanswered = poisoner.every_one(plan.bound_seconds)
    archive, findings = world.storage.archive(), world.storage.findings()
    return Evidence(
        answers=history.answers,
        refused=history.refused,
        log=log,
        strangers=sorted(log.keys() - _known(world)),
        views=_views(world, pollers),
        targets=[_seen(desk, log) for desk in world.desks],
        faults=[fault for fault in history.faults if fault.kind in IN_DOUBT],
        archive=archive,
        archive_findings=findings,
        poison_taken=history.accepted,
        poison_unanswered=[f"{dose.method} {dose.path}" for dose in unanswered],
        delivered_after=delivered_after,
        bound=plan.bound_seconds,
        delays=delays(world, probes),
        calls=probes.calls,
        ratio=plan.ratio,
        sizes=_sizes(world),
    )


def _known(world: World) -> set[str]:
    known = {tenant.ledger(door.contract, *door.scope) for tenant in world.tenants.values() for door in DOORS}
    known |= {tenant.ledger("audit") for tenant in world.tenants.values()}  # of its negotiations
    flooder, projects = world.tenants[FLOODER], range(world.plan.flood_projects)
    return known | {flooder.ledger("sync", f"{FLOODED}{number}") for number in projects}


def _views(world: World, pollers: list[Poller]) -> list[View]:
    read = [view for tenant in world.tenants.values() for view in views(tenant)]
    followed = [
        View("follower", one.tenant.name, one.tenant.ledger("sync", PROJECT), one.seen) for one in world.followers
    ]
    polled = [
        View("poller", one.tenant.name, one.tenant.ledger("streams", RUNTIME, STREAM), one.seen) for one in pollers
    ]
    return read + followed + polled


def _seen(desk: Desk, log: Log) -> TargetSeen:
    listed = [Delivered(one["event_id"], one["status"], one["attempts"]) for one in desk.deliveries()]
    return TargetSeen(desk.name, desk.tenant.name, expected_at(desk, log), desk.posts, listed)


def _sizes(world: World) -> list[Size]:
    plan, history = world.plan, world.history
    kills = kills_of(history)
    sizes = [
        Size("events acknowledged", plan.events, history.acknowledged),
        Size("kills", plan.kills, sum(kills.values())),
        Size("seconds of pauses", plan.pause_seconds, round(paused_seconds(history), 1)),
    ]
    sizes += [Size(f"answers of {door}", 1, count) for door, count in doors_used(history).items()]
    every_kind_has_its_turn = plan.kills >= len(world.hub.stack.functions)
    if every_kind_has_its_turn and "deliver" not in plan.spared:
        sizes.append(Size("kills of deliver", 1, kills.get("deliver", 0)))
    return sizes
