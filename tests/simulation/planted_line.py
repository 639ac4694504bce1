"""Planted bugs of a busy ledger's line: each weakens one rule by changing one line. The simulator catches every one."""

from __future__ import annotations

from tests.simulation.planted import Bug

LEAD, STINT = "ledger/application/lead.py", "ledger/application/stint.py"
LINE, WAITING = "ledger/application/wait_in_line.py", "ledger/domain/waiting.py"

LINE_BUGS = (
    Bug(
        "a leader reads back to the lowest mark",
        LEAD,
        "            self._read_back(stint, lowest)\n",
        "            [setattr(request.search, 'at', stint.chain.low) for request in stint.open()]\n",
    ),
    Bug(
        "a mark is no further than its writer has looked",
        LINE,
        "        mark=search.at,\n",
        "        mark=search.at + search.examined,\n",
    ),
    Bug(
        "a leader looks for every waiting request in the winner's page",
        LEAD,
        "            stint.chain.extend([winner])\n",
        "            stint.chain.extend([winner])\n"
        "            [request.search._pass(winner.end) for request in stint.open()]\n",
    ),
    Bug(
        "a leader looks for its own request in the winner's page",
        LEAD,
        "            stint.chain.extend([winner])\n",
        "            stint.chain.extend([winner])\n            stint.own._pass(winner.end)\n",
    ),
    Bug(
        "a receipt is posted after its page is confirmed",
        LEAD,
        "        winner = self.log.append(stint.ledger, page)\n",
        "        stint.receipts.append(self._receipt(stint, page))\n        self._post(stint, LEASE_MS)\n"
        "        winner = self.log.append(stint.ledger, page)\n",
    ),
    Bug(
        "a receipt is of the page that was put, not of one that lost",
        LEAD,
        "        if winner is not None and winner.nonce != page.nonce:\n",
        "        if winner is not None and winner.nonce != page.nonce and not stint.open():\n",
    ),
    Bug(
        "a receipt's positions begin where the part begins",
        WAITING,
        "            found.append(Placing(number, 1, first + offset))\n",
        "            found.append(Placing(number, 1, first))\n",
    ),
    Bug(
        "parts follow each other in a receipt",
        WAITING,
        "            placed[part.nonce] = _placings(request, ids, first)\n",
        "            placed[part.nonce] = _placings(request, ids, page.first)\n",
    ),
    Bug(
        "a writer learns from receipts of its own request only",
        LINE,
        "    for placing in receipt.placed[request.nonce]:\n",
        "    for placing in next(iter(receipt.placed.values())):\n",
    ),
    Bug(
        "a part carries the nonce of the request that brought it",
        STINT,
        "            self.parts.append(Part(len(self.records) - before, origin, search.nonce))\n",
        "            nonce = self.parts[0].nonce if self.parts else search.nonce\n"
        "            self.parts.append(Part(len(self.records) - before, origin, nonce))\n",
    ),
    Bug(
        "a part carries the client and the connection of the request that brought it",
        STINT,
        "            self.parts.append(Part(len(self.records) - before, origin, search.nonce))\n",
        "            origin = self.parts[0].origin if self.parts else origin\n"
        "            self.parts.append(Part(len(self.records) - before, origin, search.nonce))\n",
    ),
    Bug(
        "one id goes into a page once",
        STINT,
        "            digest = self.taken.get(draft.id)\n",
        "            digest = None\n",
    ),
    Bug(
        "of two contents of one id, one goes into a page",
        STINT,
        "            if digest is None:\n",
        "            if digest is None or digest != draft.digest:\n",
    ),
    Bug(
        "a conflict within a page stops whom it is to stop",
        STINT,
        "            elif search.wanted and digest != draft.digest:\n",
        "            elif search.wanted and not digest:\n",
    ),
    Bug(
        "a leader knows who is to be stopped by a conflict",
        STINT,
        "for draft in row.drafts} if row.stops else {}",
        "for draft in row.drafts} if not row.drafts else {}",
    ),
    Bug(
        "a request that ends while a leader knows it is not put",
        STINT,
        "            if now_ms < request.row.ends_ms:\n",
        "            if now_ms:\n",
    ),
    Bug(
        "a request keeps its order",
        STINT,
        "        todo = {draft.id: draft for draft in row.drafts}\n",
        "        todo = {draft.id: draft for draft in reversed(row.drafts)}\n",
    ),
    Bug(
        "a leader registers a ledger before its first page",
        LEAD,
        "            self.state.register(stint.ledger)\n",
        "            pass\n",
    ),
    Bug(
        "a leader's page never crosses the end of a bucket",
        STINT,
        "draft_page = _DraftPage(room=bucket_end(self.chain.at + 1) - self.chain.at)",
        "draft_page = _DraftPage(room=bucket_end(self.chain.at + 1))",
    ),
    Bug(
        "a chain has no hole",
        STINT,
        "            if page.first == self.at + 1:\n",
        "            if page.first > self.at:\n",
    ),
    Bug(
        "the room is the ledger's own",
        "ledger/adapters/memory_room.py",
        "            return list(self.rows.get(ledger.name, {}).values())\n",
        "            return [row for rows in self.rows.values() for row in rows.values()]\n",
    ),
    Bug(
        "a request leaves the room after its page is confirmed",
        LEAD,
        "            self.state.register(stint.ledger)\n        winner",
        "            self.state.register(stint.ledger)\n"
        "        self._clear(stint.ledger, list(stint.requests))\n        winner",
    ),
    Bug(
        "an event is fresh for the request that brought it only",
        "ledger/application/search.py",
        "        fresh = event.nonce == self.nonce\n",
        "        fresh = bool(event.nonce)\n",
    ),
    Bug(
        "a request that was given up is not answered as if it were placed",
        LINE,
        "            self._give_up(ledger, place)\n            return None\n",
        "            place.search.todo.clear()\n            return None\n",
    ),
)
