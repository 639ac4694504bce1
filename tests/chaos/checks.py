"""The promises, each with a check that looks for what breaks it. A check tells every breach in a line."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from millrace.ledger.domain.names import split_key
from tests.chaos.doubles import unexcused
from tests.chaos.evidence import Evidence, TargetSeen
from tests.chaos.history import Sight

Check = Callable[[Evidence], Iterator[str]]
DONE = ("success", "duplicate")


def acknowledged_is_readable_once(evidence: Evidence) -> Iterator[str]:
    times = {ledger: Counter(sight.id for sight in sights) for ledger, sights in evidence.log.items()}
    for ledger, id_ in sorted({(one.ledger, one.id) for one in evidence.answers}):
        found = times.get(ledger, Counter())[id_]
        if found != 1:
            yield f"{ledger}: {id_} is there {found} times"
    for ledger, counted in times.items():
        yield from (f"{ledger}: {id_} is there {found} times" for id_, found in counted.items() if found > 1)


def positions_are_dense(evidence: Evidence) -> Iterator[str]:
    for ledger, sights in evidence.log.items():
        for number, sight in enumerate(sights, 1):
            if sight.position != number:
                yield f"{ledger}: {sight.position} where {number} should be"
                break


def one_id_has_one_answer(evidence: Evidence) -> Iterator[str]:
    """And it is the position at which the event is."""
    stored = {(ledger, sight.id): sight.position for ledger, sights in evidence.log.items() for sight in sights}
    for answer in evidence.answers:
        position = stored.get((answer.ledger, answer.id))
        if None not in (answer.position, position) and answer.position != position:
            yield f"{answer.ledger}: {answer.id} was answered {answer.position}, it is at {position}"


def good_events_are_taken(evidence: Evidence) -> Iterator[str]:
    yield from evidence.refused


def readers_see_the_ledger(evidence: Evidence) -> Iterator[str]:
    for view in evidence.views:
        problem = _difference(view.sights, evidence.log.get(view.ledger, ()))
        if problem:
            yield f"{view.name} of {view.ledger}: {problem}"


def _difference(seen: Sequence[Sight], stored: Sequence[Sight]) -> str | None:
    for saw, is_ in zip(seen, stored, strict=False):
        if (saw.position, saw.id) != (is_.position, is_.id):
            return f"saw {saw.id} at {saw.position} where the ledger has {is_.id} at {is_.position}"
    return None if len(seen) == len(stored) else f"saw {len(seen)} events of {len(stored)}"


def targets_have_every_event(evidence: Evidence) -> Iterator[str]:
    for target in evidence.targets:
        taken = {id_ for post in target.posts if post.taken for id_ in post.ids}
        got = {id_ for post in target.posts for id_ in post.ids}
        yield from (f"{_name(target)} never got {id_}" for id_ in sorted(target.expected - taken))
        yield from (f"{_name(target)} got {id_}, which it should not" for id_ in sorted(got - target.expected))


def deliveries_say_what_targets_got(evidence: Evidence) -> Iterator[str]:
    """Each event has one delivery, done; and it counts no request that was never made."""
    for target in evidence.targets:
        requests = Counter(id_ for post in target.posts for id_ in post.ids)
        rows = Counter(one.event_id for one in target.deliveries)
        for id_ in sorted(target.expected | rows.keys()):
            if rows[id_] != (1 if id_ in target.expected else 0):
                yield f"{_name(target)} has {rows[id_]} deliveries of {id_}"
        for one in target.deliveries:
            if one.status not in DONE:
                yield f"{_name(target)}: {one.event_id} is {one.status}"
            if one.attempts > requests[one.event_id]:
                yield f"{_name(target)}: {one.event_id} was sent {requests[one.event_id]} times, not {one.attempts}"


def doubles_only_in_doubt(evidence: Evidence) -> Iterator[str]:
    for target in evidence.targets:
        yield from (f"{_name(target)}: {problem}" for problem in unexcused(target.posts, evidence.faults))


def deliveries_are_in_time(evidence: Evidence) -> Iterator[str]:
    if evidence.delivered_after > evidence.bound:
        yield f"complete {evidence.delivered_after:.0f} s after the last fault, not {evidence.bound:.0f} s"


def the_archive_is_sound(evidence: Evidence) -> Iterator[str]:
    yield from evidence.archive_findings
    for ledger, stored in evidence.log.items():
        lines = Counter((sight.position, sight.id) for sight in evidence.archive.get(ledger, ()))
        for sight in stored:
            if lines[sight.position, sight.id] != 1:
                yield f"{ledger}: {sight.id} is archived {lines[sight.position, sight.id]} times"
    for ledger in evidence.archive.keys() - evidence.log.keys():
        yield f"{ledger} is in the archive alone"


def nothing_leaks(evidence: Evidence) -> Iterator[str]:
    """Whoever saw an event of one tenant saw that tenant named in it, and no other; an audit need not name it."""
    for ledger, sights in (*evidence.log.items(), *evidence.archive.items()):
        contract, tenant, *_ = split_key(ledger)
        named = [sight for sight in sights if sight.tenants] if contract == "audit" else sights
        yield from _foreign(ledger, tenant, named)
    for view in evidence.views:
        yield from _foreign(f"{view.name} of {view.ledger}", view.tenant, view.sights)
    for target in evidence.targets:
        for post in target.posts:
            if post.tenants != {target.tenant}:
                yield f"{_name(target)} was sent events of {_named(post.tenants)}"


def _foreign(where: str, tenant: str, sights: Sequence[Sight]) -> Iterator[str]:
    for sight in sights:
        if sight.tenants != {tenant}:
            yield f"{where}: {sight.id} names {_named(sight.tenants)}"


def poison_is_refused(evidence: Evidence) -> Iterator[str]:
    yield from (f"taken: {dose}" for dose in evidence.poison_taken)
    yield from (f"no answer to {dose}" for dose in evidence.poison_unanswered)
    yield from (f"a ledger that nobody made: {ledger}" for ledger in evidence.strangers)


def nobody_else_is_delayed(evidence: Evidence) -> Iterator[str]:
    """By more than what storage itself was slower meanwhile: one process stands for AWS here, and knows no tenants."""
    if evidence.ratio is None:
        return
    slowdown = evidence.calls.slowdown
    if not math.isfinite(slowdown):
        yield "how much slower storage itself was has not been measured"
    for delay in evidence.delays:
        if not delay.ratio / slowdown <= evidence.ratio:  # nor is what was never measured
            yield (
                f"{delay.name} takes {delay.ratio:.1f} times as long in the flood, not {evidence.ratio:g} times, "
                f"while storage took {slowdown:.1f} times as long"
            )


def the_run_was_as_large_as_asked(evidence: Evidence) -> Iterator[str]:
    for size in evidence.sizes:
        if size.reached < size.wanted:
            yield f"{size.name}: {size.reached:g} of {size.wanted:g}"


PROMISES: Mapping[str, Check] = {
    "acknowledged events are readable exactly once": acknowledged_is_readable_once,
    "positions are dense": positions_are_dense,
    "one id has one answer": one_id_has_one_answer,
    "good events are taken": good_events_are_taken,
    "readers and followers see the ledger": readers_see_the_ledger,
    "targets have every event": targets_have_every_event,
    "deliveries say what targets got": deliveries_say_what_targets_got,
    "doubles only where a request was in doubt": doubles_only_in_doubt,
    "deliveries are complete in time": deliveries_are_in_time,
    "the archive is sound": the_archive_is_sound,
    "nothing leaks to another tenant": nothing_leaks,
    "poison is refused": poison_is_refused,
    "nobody else is delayed": nobody_else_is_delayed,
    "the run was as large as asked": the_run_was_as_large_as_asked,
}


def broken(evidence: Evidence) -> dict[str, list[str]]:
    """By promise, what breaks it; a promise that is kept has nothing."""
    return {name: list(check(evidence)) for name, check in PROMISES.items()}


def _name(target: TargetSeen) -> str:
    return f"{target.tenant}/{target.name}"


def _named(tenants: frozenset[str]) -> str:
    return " and ".join(sorted(tenants)) or "nobody"
