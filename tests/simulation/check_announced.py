"""What emitters of delivery transitions may rely on: T4, whatever fails and in whichever order it happens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from millrace.ledger.domain.names import Ledger, split_key
from millrace.streams.application.emit import Emitted, delivery_group
from millrace.streams.domain.errors import AlreadyTerminal, Conflict, InvalidState
from millrace.streams.domain.transition import RANKS
from tests.simulation.announced import RUNTIME, TENANT, Said, Story, Told, committed
from tests.simulation.history import broken, chain, check_unique
from tests.simulation.rows import RecordedRows, RecordedTables

MESSAGES = delivery_group(TENANT, RUNTIME)


def check_messages(story: Story, tables: RecordedTables) -> None:
    """While no process runs: what was said, against what is committed."""
    ledgers = [Ledger(name, name) for name in tables.log.pages]
    check_unique(tables, ledgers)
    for ledger in ledgers:
        chain(tables, ledger)
    _check_versions(tables.rows)
    told = list(committed(tables.log))
    by_id = {(one.stream, one.id): one for one in told}
    for said in story.said:
        _check_said(said, story, by_id.get((said.stream, said.event["event_id"])), told)
    fresh = [
        (s.stream, s.result.event_id) for s in story.said if isinstance(s.result, Emitted) and not s.result.deduped
    ]
    broken(len(fresh) != len(set(fresh)), "two requests were told that they committed one event", sorted(fresh))
    for message_id in {one.event.get("message_id") for one in told} - {None}:
        passed = [one for one in told if one.event.get("message_id") == message_id]
        _check_forward(story, passed)
        _check_row(tables.rows, str(message_id), passed)


def check_settled(tables: RecordedTables) -> None:
    """After everything was sent again: nothing is pending, and rows remember what is committed, in its order."""
    told = list(committed(tables.log))
    for (group, message_id), row in tables.rows.items.items():
        if group == MESSAGES:
            broken(row.pending is not None, "a transition is still pending:", message_id)
            remembered = [tuple(entry[:2]) for entry in row.content.get("events", {}).values()]
            passed = [(one.stream, one.id) for one in told if one.event.get("message_id") == message_id]
            broken(remembered != passed, "a row remembers", remembered, "but committed are", passed)


def _check_versions(rows: RecordedRows) -> None:
    for (_, key), versions in rows.versions.items():
        numbers = [version.row.version for version in versions]
        broken(numbers != list(range(1, len(numbers) + 1)), "versions of", key, "do not grow by 1:", numbers)


def _check_said(said: Said, story: Story, found: Told | None, told: Sequence[Told]) -> None:
    result, id_ = said.result, said.event["event_id"]
    mine = found is not None and found.event == said.stored
    if isinstance(result, Emitted):
        broken(not mine or found is None, "acknowledged but not in the log:", said)
        assert found is not None
        broken(found.position != result.position, "acknowledged at another position:", said, found.position)
        broken(found.step > said.answered, "acknowledged before it was committed:", said)
        return
    broken(mine, "refused but in the log:", said.stream, id_, type(result).__name__)
    broken(not _justified(said, story, found, told), "refused for no reason:", said)


def _justified(said: Said, story: Story, found: Told | None, told: Sequence[Told]) -> bool:
    before = [
        one
        for one in told
        if one.step <= said.answered and one.event.get("message_id") == said.event.get("message_id", "")
    ]
    if isinstance(said.result, AlreadyTerminal):
        return any(story.is_terminal(one.to) for one in before)
    if isinstance(said.result, InvalidState):
        rank = RANKS.get(said.event["payload"]["to"], len(RANKS))
        return any(rank <= RANKS.get(one.to, len(RANKS)) for one in before)
    twins = [other for other in said.batch if other["event_id"] == said.event["event_id"] and other != said.event]
    return isinstance(said.result, Conflict) and (bool(twins) or (found is not None and found.step <= said.answered))


def _check_forward(story: Story, passed: Sequence[Told]) -> None:
    """T4, in the order of commits over all streams; in one stream that is the order of its log."""
    for before, after in pairwise(passed):
        broken(story.is_terminal(before.to), "after the terminal", before, "came", after)
        forward = RANKS.get(before.to, len(RANKS)) < RANKS.get(after.to, len(RANKS))
        broken(not forward, "a step back: after", before, "came", after)


def _check_row(rows: RecordedRows, message_id: str, passed: Sequence[Told]) -> None:
    """What is committed is what the row's versions announced, in their order; one that conflicts was taken back."""
    announced: list[tuple[str, str]] = []
    for version in rows.versions.get((MESSAGES, message_id), []):
        if version.row.pending is None:
            announced.pop()
        else:
            announced.append((split_key(version.row.pending.ledger.name)[-1], version.row.pending.draft.id))
    told = [(one.stream, one.id) for one in passed]
    row = rows.items.get((MESSAGES, message_id))
    on_its_way = row is not None and row.pending is not None and told == announced[:-1]
    broken(told != announced and not on_its_way, message_id, "was announced as", announced, "but told as", told)
