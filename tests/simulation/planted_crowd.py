"""Planted bugs of fan-out in shards. Each drops one rule; the simulator must catch every one."""

from __future__ import annotations

from tests.simulation.planted import Bug

BROADCAST, CALL = "live/application/broadcast.py", "live/application/call_crew.py"
SERVE, SETTLE = "live/application/serve_shard.py", "live/application/settle_shards.py"
SHARDS, MEMORY = "live/domain/shards.py", "live/adapters/memory_shards.py"

FOUND = "                audience = self.broadcast.find(ledger, events, share.shard)\n"
FOUND_BEFORE = """\
                audience: dict = {}
                for one in early:
                    audience.setdefault(one.connection, []).append(one)
"""
LOOP = """\
        place = share.base
        while True:
            run = self.broadcast.log.read(ledger, place)
            read = list(contiguous(run.pages, place))
            parts = list(slices(read, SLICE_EVENTS))
            for number, pages in enumerate(parts, 1):
                events = [event for page in pages for event in page.events()]
"""

CROWD_BUGS = (
    Bug(
        "a shard's place moves after its events were sent",
        SERVE,
        "                self.broadcast.deliver(audience, events)\n",
        "                held = ShardProgress(pages[-1].end, self.clock() + HOLD_MS, found)\n"
        "                self.shards.move(ledger, share.shard, me, held)\n"
        "                self.broadcast.deliver(audience, events)\n",
    ),
    Bug(
        "the log is read before the shard's subscriptions are found",
        SERVE,
        LOOP + FOUND,
        '        early = self.broadcast.subscriptions.find(ledger, "abc", share.shard)\n' + LOOP + FOUND_BEFORE,
    ),
    Bug(
        "who calls the crew moves no cursor over what is only asked for",
        CALL,
        "        if min(through) > cursor:\n            raise_cursor(self.state, ledger, min(through))\n",
        "        if free and self.log.read(ledger, cursor, 1).pages:\n"
        "            raise_cursor(self.state, ledger, self.log.read(ledger, cursor, 1).pages[0].end)\n",
    ),
    Bug(
        "the cursor goes no further than the shard that is furthest behind",
        CALL,
        "        if min(through) > cursor:\n            raise_cursor(self.state, ledger, min(through))\n",
        "        if max(through) > cursor:\n            raise_cursor(self.state, ledger, max(through))\n",
    ),
    Bug(
        "the cursor is moved by the last shard that is served, not by the first",
        SETTLE,
        "number not in seen or seen[number].through < through",
        "number not in seen",
    ),
    Bug(
        "a shard that nobody served yet is behind",
        SETTLE,
        "number not in seen or seen[number].through < through",
        "number in seen and seen[number].through < through",
    ),
    Bug(
        "whoever settles looks at the shards before its own, too",
        SETTLE,
        "((shard.number, shard.count), (0, shard.number))",
        "((shard.number, shard.count),)",
    ),
    Bug(
        "a place is that of a shard among so many, and of no other",
        SHARDS,
        "    number: int\n    count: int\n",
        "    number: int\n    count: int = __import__('dataclasses').field(compare=False)\n",
    ),
    Bug(
        "every connection is in a shard",
        SHARDS,
        'f"{(self.number + 1) * SLOTS // self.count:04x}"',
        'f"{(self.number + 1) * SLOTS // self.count - SLOTS // 32:04x}"',
    ),
    Bug(
        "a shard is called with its own place, not with that of another",
        CALL,
        "Share(ledger.name, Shard(number, count), through[number])",
        "Share(ledger.name, Shard(number, count), furthest)",
    ),
    Bug(
        "a shard that was never served begins where everyone has been served",
        SERVE,
        "base=max(share.base, held.through)",
        "base=held.through",
    ),
    Bug(
        "a shard that was served goes on from its own place",
        SERVE,
        "base=max(share.base, held.through)",
        "base=share.base",
    ),
    Bug(
        "who lets a shard go looks at the log again",
        SERVE,
        "            if not self.broadcast.log.read(ledger, reached, 1).pages:\n",
        "            if reached >= 0:\n",
    ),
    Bug(
        "who has no time left lets the shard go before it calls another",
        SERVE,
        "                until = 0 if last or over else now + HOLD_MS\n",
        "                until = 0 if last else now + HOLD_MS\n",
    ),
    Bug(
        "who has no time left calls another",
        SERVE,
        "                    self.call_crew.crew.call([replace(share, base=place)])\n",
        "",
    ),
    Bug(
        "one worker at a time holds a shard",
        MEMORY,
        "            if by != holder and progress.until_ms > now_ms:\n",
        "            if by == holder and progress.until_ms > until_ms:\n",
    ),
    Bug(
        "a shard whose holder died is called again",
        CALL,
        "if each.until_ms <= now]",
        "if each.until_ms == 0]",
    ),
    Bug(
        "a shard that is behind the others is called",
        CALL,
        "free = [number for number in free if through[number] < furthest]",
        "free = []",
    ),
    Bug(
        "a crowd that is split anew is called anew",
        SERVE,
        "                    self._call_again(ledger)\n",
        "",
    ),
    Bug(
        "where the log has more, it is read on",
        BROADCAST,
        "(not run.more and read[-1].end != bucket_end(read[-1].first))",
        "read[-1].end != bucket_end(read[-1].first)",
    ),
    Bug(
        "after the last page of a bucket the next bucket is read",
        BROADCAST,
        "(not run.more and read[-1].end != bucket_end(read[-1].first))",
        "not run.more",
    ),
)
