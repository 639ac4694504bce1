"""Planted bugs of rows that announce their changes (T4, M1–M5): the scenario `announce` must catch every one."""

from __future__ import annotations

from tests.simulation.planted import Bug

ANNOUNCE_BUGS = (
    Bug(
        "whoever changes a row commits its pending event first",
        "streams/application/announce.py",
        "            row = self.settled(group, key, row)\n",
        "",
    ),
    Bug(
        "a version is put only on the one before it",
        "streams/adapters/memory.py",
        "if (stored.version if stored else 0) != row.version - 1:",
        "if stored is not None and stored.version > row.version:",
    ),
    Bug(
        "settling forgets only the event of the version it told of",
        "streams/adapters/memory.py",
        "if stored is not None and stored.version == version:",
        "if stored is not None:",
    ),
    Bug(
        "a row whose event conflicts steps back",
        "streams/application/announce.py",
        "        if position is not None:\n",
        "        if row.pending is not None:\n",
    ),
    Bug(
        "a put whose answer was lost is recognised",
        "streams/application/announce.py",
        "if winner is None or mine.nonce in winner.nonces:",
        "if winner is None:",
    ),
    Bug(
        "it is recognised after others have changed the row, too",
        "streams/application/announce.py",
        "if winner is None or mine.nonce in winner.nonces:",
        "if winner is None or mine.nonce == winner.nonce:",
    ),
    Bug(
        "a transition that passed before passes again",
        "streams/application/emit.py",
        "            if transition.known_before(content, emission):\n                return None\n",
        "",
    ),
    Bug(
        "an event id is of its stream",
        "streams/domain/transition.py",
        'if stream_id == emission.event["stream_id"] and event_id == emission.draft.id:',
        "if event_id == emission.draft.id:",
    ),
    Bug(
        "an id whose event was refused is not taken",
        "streams/application/emit.py",
        "        if known is not None or message in self.segment.messages:\n",
        "        if known is not None:\n            raise transition.conflict()\n"
        "        if message in self.segment.messages:\n",
    ),
    Bug(
        "a refused transition is not committed",
        "streams/application/emit.py",
        "if not isinstance(rows.get(e.draft.id), SdkError)]",
        "if rows is not None]",
    ),
    Bug(
        "nothing follows a terminal state",
        "streams/domain/transition.py",
        '    if row.get("terminal"):\n',
        '    if row.get("terminal") and now != "sent":\n',
    ),
    Bug(
        "an intent is durable before the row is changed",
        "streams/application/markers.py",
        "                self.intents.leave(intent, self.clock())\n",
        "",
    ),
    Bug(
        "an intent is cleared after the event is committed",
        "streams/application/markers.py",
        "            self.announce.settle(group, marker_id, row)\n            self.intents.clear(intent)\n",
        "            self.intents.clear(intent)\n            self.announce.settle(group, marker_id, row)\n",
    ),
    Bug(
        "the sweep clears an intent after it has settled the row",
        "streams/application/markers.py",
        "        row = self.rows.get(intent.group, intent.key)\n",
        "        self.intents.clear(intent)\n        row = self.rows.get(intent.group, intent.key)\n",
    ),
    Bug(
        "the sweep leaves the intents of the living alone",
        "streams/application/markers.py",
        "self.intents.left_before(self.clock() - older_than_ms)",
        "self.intents.left_before(self.clock())",
    ),
    Bug(
        "a deleted marker's id continues at its revision",
        "streams/application/markers.py",
        "            revision = row.version + 1 if row else 1\n",
        '            revision = row.version + 1 if row and not row.content["deleted"] else 1\n',
    ),
    Bug(
        "a stale write is refused",
        "streams/application/markers.py",
        "    if row.version != expected:\n",
        "    if row.version < expected:\n",
    ),
)
