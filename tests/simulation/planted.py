"""Planted bugs: each weakens one rule of the protocol by changing one line. The simulator must catch every one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bug:
    rule: str
    file: str
    line: str
    instead: str


BUGS = (
    Bug(
        "a loser looks for its own ids in the winner's page",
        "ledger/application/commit.py",
        "            search.examine(winner)\n",
        "            search._pass(winner.end)\n",
    ),
    Bug(
        "the search starts from the lowest seen of all ids",
        "ledger/application/commit.py",
        "search = Search(todo, seen, wanted, at=min(seen[id_] for id_ in todo), nonce=self.nonce())",
        "search = Search(todo, seen, wanted, at=max(seen[id_] for id_ in todo), nonce=self.nonce())",
    ),
    Bug(
        "ids claimed a moment ago count for where the search starts",
        "ledger/application/commit.py",
        "            seen[id_] = min(seen[id_], claims[id_].seen)\n",
        "            seen[id_] = claims[id_].seen\n"
        "        seen.update(dict.fromkeys(seen, min(claims[id_].seen for id_ in existed)))\n",
    ),
    Bug(
        "a jump ahead goes no further than the lowest seen of what is left",
        "ledger/application/search.py",
        "self.at = max(self.at, min(self.seen[id_] for id_ in self.todo))",
        "self.at = max(self.at, max(self.seen[id_] for id_ in self.todo))",
    ),
    Bug(
        "heads are page ends",
        "ledger/application/heads.py",
        "return None if page is None else page.end",
        "return None if page is None else page.first",
    ),
    Bug(
        "seen moves to page ends that were searched",
        "ledger/application/commit.py",
        "self.claims.advance(ledger, missing, search.at)",
        "self.claims.advance(ledger, missing, search.at + 1)",
    ),
    Bug(
        "a claim binds its id to its ledger",
        "ledger/application/commit.py",
        "if claims[id_].ledger != ledger.name:",
        "if not ledger.name:",
    ),
    Bug(
        "no page is put before every id in it has a confirmed claim",
        "ledger/application/commit.py",
        "pending = [id_ for id_ in pending if id_ in claimed.failed]",
        "created, pending = created | claimed.failed, []",
    ),
    Bug(
        "a claim that was there is read before its id is committed",
        "ledger/application/commit.py",
        "            seen[id_] = min(seen[id_], claims[id_].seen)\n",
        "            seen[id_] = max(seen[id_], claims[id_].seen)\n",
    ),
    Bug(
        "a page is put only if nothing is there",
        "ledger/adapters/memory.py",
        "        if winner is None:\n",
        "        if winner is None or winner.time_ms < page.time_ms - 1_000:\n",
    ),
    Bug(
        "pages never cross the end of a bucket",
        "ledger/application/commit.py",
        "if len(records) == room or (records and weight > MAX_PAGE_BYTES):",
        "if records and weight > MAX_PAGE_BYTES:",
    ),
    Bug(
        "a key of the log is never deleted",
        "ledger/adapters/memory.py",
        "            pages[page.first] = page\n            return True",
        "            del pages[page.first]\n            return True",
    ),
    Bug(
        "pruning overwrites only the revision it read",
        "ledger/adapters/memory.py",
        "if stored is None or stored.revision != page.revision - 1:",
        "if stored is None:",
    ),
    Bug(
        "pruning stays below every consumer's cursor",
        "ledger/application/prune.py",
        "through = min([through, *(marks.cursors.get(consumer, 0) for consumer in self.consumers)])",
        "through = through + len(self.consumers) - 1",
    ),
    Bug(
        "a writer's search stops at a hole",
        "ledger/application/search.py",
        "            if page.first != self.at + 1:\n                break\n",
        "",
    ),
    Bug(
        "a reader stops at a hole",
        "ledger/domain/page.py",
        "        if page.first != expected:\n            return\n",
        "",
    ),
    Bug(
        "a sync starts from the head, not from a hint",
        "sync/application/sync.py",
        "return newest(self.log, self.heads, ledger, best)",
        "return best",
    ),
    Bug(
        "the index cursor is read before the index rows",
        "sync/application/sync.py",
        "hits, horizon = _merge(answers[1:], start, indexed)",
        "hits, horizon = _merge(answers[1:], start, self.state.marks(ledger).hint)",
    ),
    Bug(
        "a sync goes no further than the shortest truncated index query",
        "sync/application/sync.py",
        "horizon = min(horizon, answer.rows[-1].end)",
        "horizon = max(horizon, answer.rows[-1].end)",
    ),
    Bug(
        "index rows above the cursor are not used",
        "sync/application/sync.py",
        "    horizon = indexed\n",
        "    horizon = indexed + 3\n",
    ),
    Bug(
        "index rows are durable before the cursor moves",
        "sync/application/index_partitions.py",
        "            self.index.write(ledger, rows_of(pages, cursor + 1, end))\n",
        "            self.state.move_cursor(ledger, INDEX_CONSUMER, cursor, end)\n"
        "            self.index.write(ledger, rows_of(pages, cursor + 1, end))\n",
    ),
    Bug(
        "a late indexer's rows do not replace others",
        "sync/adapters/memory.py",
        "[row.end, row.start] = row",
        "[row.start, row.start] = row",
    ),
    Bug(
        "a partition that lost nothing is not told of pruning",
        "sync/application/sync.py",
        "if since < hit.position <= start]",
        "if hit.position] and [start]",
    ),
    Bug(
        "what a partition lost in the index row that reaches the floor is told",
        "sync/application/sync.py",
        "rows = [row for answer in answers[: len(reaching)] for row in answer.rows[:1]]",
        "rows = list[IndexRow]()",
    ),
    Bug(
        "what a partition lost in earlier index rows is told",
        "sync/application/sync.py",
        "rows += [row for row in answers[len(reaching) :] if row is not None]",
        "rows += [row for row in answers[len(reaching) :] if row is start]",
    ),
    Bug(
        "a ledger is registered before its first page",
        "ledger/application/commit.py",
        "                self.state.register(ledger)\n",
        "                pass\n",
    ),
    Bug(
        "a sync's subscription is durable before the head is read",
        "live/application/answer.py",
        "            self._subscribe_to_sync(connection, ledger, partitions, payload)\n",
        "            sync_to = find_head(self.sync.log, ledger, 0)\n"
        "            self._subscribe_to_sync(connection, ledger, partitions, payload)\n",
    ),
    Bug(
        "the fan-out's cursor moves after the posts",
        "live/application/broadcast.py",
        "                self.deliver(audience, events)\n",
        "                self.state.move_cursor(ledger, FAN_OUT_CONSUMER, cursor, pages[-1].end)\n"
        "                self.deliver(audience, events)\n",
    ),
    Bug(
        "after one failed post nothing more is sent to a connection",
        "live/application/broadcast.py",
        "return all(self._post(subscription, self.render(subscription, event)) for event in wanted)",
        "return all([self._post(subscription, self.render(subscription, event)) for event in wanted])",
    ),
    Bug(
        "a connection with a failed post is closed",
        "live/application/broadcast.py",
        "return all(self._post(subscription, self.render(subscription, event)) for event in wanted)",
        "return all(self._post(subscription, self.render(subscription, event)) for event in wanted) or True",
    ),
    Bug(
        "a subscription is forgotten only after its connection is closed",
        "live/application/broadcast.py",
        "        self.wire.close(connection)\n        self.subscriptions.remove(connection)\n",
        "        self.subscriptions.remove(connection)\n        self.wire.close(connection)\n",
    ),
    Bug(
        "the fan-out leaves the sender of a snapshot a note of what it passed over",
        "live/application/broadcast.py",
        "gone_live = self.subscriptions.note_missed(subscription, events[-1].position)",
        "gone_live = None",
    ),
    Bug(
        "a snapshot does not go live while a note asks for more",
        "live/adapters/memory.py",
        "            if note > sent:\n",
        "            if note > sent + 1_000:\n",
    ),
    Bug(
        "the rest of a snapshot is sent by one sender",
        "live/adapters/memory.py",
        "            return TakenSnapshot(self.rows[key], step, mine=by == sender)\n",
        "            return TakenSnapshot(self.rows[key], step, mine=step == handover.step + 1)\n",
    ),
    Bug(
        "a handover says how far the snapshot was sent",
        "live/application/send_snapshot.py",
        "                self._hand_over(mine, reached, watermark, step)\n",
        "                self._hand_over(mine, reached + 1, watermark, step)\n",
    ),
    Bug(
        "a snapshot that is handed over does not go live",
        "live/application/send_snapshot.py",
        "            if reached < through:\n",
        "            if reached + 1 < through:\n",
    ),
    Bug(
        "a subscription that has gone live meanwhile is served, not noted",
        "live/adapters/memory.py",
        "            if row is not None and row.live:\n",
        "            if row is None:\n",
    ),
    Bug(
        "nothing live is posted while a snapshot is being sent",
        "live/application/broadcast.py",
        "        if not subscription.live:\n",
        "        if subscription.sender_until_ms < 0:\n",
    ),
    Bug(
        "a connection does not get its own events",
        "live/application/broadcast.py",
        "if event.origin.connection and event.origin.connection == subscription.connection:",
        "if event.origin.connection and not subscription.connection:",
    ),
    Bug(
        "live is what lies above the point of going live",
        "live/application/broadcast.py",
        "if event.record.body is None or event.position <= subscription.after:",
        "if event.record.body is None:",
    ),
    Bug(
        "a new cycle on a socket ends at the head, not at a remembered watermark",
        "live/application/answer.py",
        "cycle, sync_to = connection.cycle, None",
        "cycle, sync_to = connection.cycle, asked.sync_to",
    ),
    Bug(
        "a connection that works is served",
        "live/application/broadcast.py",
        "        now = self.clock()\n        if not subscription.live:\n",
        "        now = self.clock()\n        if subscription.live:\n            return False\n"
        "        if not subscription.live:\n",
    ),
)
