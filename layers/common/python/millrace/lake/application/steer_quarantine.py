"""Steer quarantine: an operator lists what compaction set aside, shows it, repairs it and drives it again (C7)."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from millrace.lake.application.editions import Editions
from millrace.lake.application.quarantine import REDRIVEN, Entry, Redrive, ShowQuarantined
from millrace.lake.domain.edition import QUARANTINE
from millrace.lake.domain.hub_access import may_see_line, runs_the_hub
from millrace.lake.domain.retention_rules import scope_of
from millrace.lake.ports.objects import Objects
from millrace.ledger.domain.access import OPERATOR, Identity
from millrace.ledger.domain.errors import BadRequest, Conflict, Forbidden, NotFound
from millrace.ledger.domain.kinds import kind_of
from millrace.ledger.ports import Together

MOST_FILES, MOST_LOOKED_AT = 20, 5_000
"""Files and entries that one page reads. A run of compaction that sets something aside makes one file or two."""
MOST_MARKERS = 1_000
"""Notes of what was driven again, one for up to 1,000 entries."""
MOST_IDS, MOST_LINES = 100, 1_000

Section = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SteerQuarantine:
    objects: Objects
    together: Together

    def page(self, identity: Identity, reason: str | None, after: str, limit: int, *, every: bool) -> Section:
        """Entries that the bearer may know of. A page may be short, and even empty, before the end."""
        entries, complete, following = self._page(identity, reason, after, limit, every=every)
        return {"entries": [entry_json(entry) for entry in entries], "complete": complete, "next": following}

    def show(self, identity: Identity, id_: str) -> Section:
        """Raises `NotFound` if the bearer may not know of it, too."""
        identity.require(OPERATOR)
        entry = self._find(identity, id_)
        return {**entry_json(entry), "line": entry.line}

    def _find(self, identity: Identity, id_: str) -> Entry:
        entry = ShowQuarantined(self.objects)(id_)
        if not may_see_line(identity, entry.ledger):
            raise NotFound("Nothing in quarantine has this id.", field="id")
        return entry

    def redrive(self, identity: Identity, body: Any) -> Section:
        """Those that are named, or a page of those with a reason."""
        identity.require(OPERATOR)
        ids, reason, after = _asked(body)
        following = None
        if reason is not None:
            entries, _, following = self._page(identity, reason, after, MOST_IDS, every=False)
            ids = [entry.id for entry in entries]
        done = self._redrive(identity)(ids) if ids else {}
        return {"redriven": done, "next": following}

    def repair(self, identity: Identity, id_: str, body: Any) -> Section:
        """Lines in place of an entry's own. They may name only ledgers that the bearer may see lines of."""
        identity.require(OPERATOR)
        lines = _lines(body)
        is_object = self._find(identity, id_).ledger is None and runs_the_hub(identity)
        for number, line in enumerate(lines):
            ledger = line.get("ledger")
            if isinstance(ledger, str) and not is_object and not may_see_line(identity, ledger):
                raise Forbidden("The token does not reach this ledger.", field=f"lines[{number}].ledger")
        return {"redriven": self._redrive(identity)([id_], {id_: lines})}

    def _redrive(self, identity: Identity) -> Redrive:
        return Redrive(self.objects, lambda entry: may_see_line(identity, entry.ledger))

    def _page(
        self, identity: Identity, reason: str | None, after: str, limit: int, *, every: bool
    ) -> tuple[list[Entry], bool, str | None]:
        identity.require(OPERATOR)
        files = Editions(self.objects).current().edition.files(QUARANTINE)
        begun, line = _place(after)
        if begun and begun not in files:
            raise Conflict("The list has changed meanwhile; begin again without after.", field="after")
        driven, complete = self._driven()
        found: list[Entry] = []
        looked_at = 0
        start = files.index(begun) if begun else 0
        for file in files[start : start + MOST_FILES]:
            for number, entry in self._entries(file, line if file == begun else 0):
                if len(found) == limit or looked_at == MOST_LOOKED_AT:
                    return found, complete, f"{file}#{number}"
                looked_at += 1
                known = replace(entry, redriven=driven.get(entry.id))
                wanted = reason in (None, known.reason) and (every or known.redriven is None)
                if wanted and may_see_line(identity, known.ledger):
                    found.append(known)
        rest = files[start + MOST_FILES :]
        return found, complete, f"{rest[0]}#0" if rest else None

    def _entries(self, file: str, begin: int) -> Iterator[tuple[int, Entry]]:
        """From this line on, one after the other: a file may have very many."""
        stored = self.objects.get(file)
        if stored is None:
            return
        with gzip.GzipFile(fileobj=io.BytesIO(stored.data)) as lines:
            for number, line in enumerate(lines):
                if number >= begin:
                    yield number, Entry(**json.loads(line))

    def _driven(self) -> tuple[dict[str, str], bool]:
        """By id, the object that it went into again; and whether all of them were read."""
        names = [one.name for one in islice(self.objects.list(REDRIVEN), MOST_MARKERS + 1)]
        calls = [partial(self.objects.get, name) for name in names[:MOST_MARKERS]]
        notes = [json.loads(found.data) for found in (self.together(calls) if calls else []) if found]
        return {id_: note["object"] for note in notes for id_ in note["ids"]}, len(names) <= MOST_MARKERS


def entry_json(entry: Entry) -> Section:
    """Without its line. A ledger whose name is damaged is told as none."""
    scope = scope_of(entry.ledger) if entry.ledger and entry.ledger.count("#") >= 2 else None
    return {
        "id": entry.id,
        "reason": entry.reason,
        "field": entry.field,
        "contract": scope.contract if scope else None,
        "scope": scope.text if scope else None,
        "position": entry.sequence_position,
        "event_type": entry.event_type,
        "event_version": entry.event_version,
        "idempotency_key": entry.idempotency_key,
        "bytes": entry.bytes,
        "object": entry.object,
        "redriven": entry.redriven,
    }


def _place(after: str) -> tuple[str, int]:
    """A file, and the line in it to go on with."""
    if not after:
        return "", 0
    file, _, line = after.rpartition("#")
    if not file or not (line.isascii() and line.isdigit()) or len(line) > 9:
        raise BadRequest("after must be the next of an earlier answer.", field="after")
    return file, int(line)


def _asked(body: Any) -> tuple[Sequence[str], str | None, str]:
    """Ids, or a reason and where to go on."""
    if not isinstance(body, dict):
        raise BadRequest("The body must be an object.", field="body", value_class=kind_of(body))
    given = {name: value for name, value in body.items() if value is not None}
    for name in given:
        if name not in ("ids", "reason", "after"):
            raise BadRequest("A re-drive has the fields ids, or reason and after, and no other.", field=str(name)[:64])
    if ("ids" in given) == ("reason" in given):
        raise BadRequest("Give ids or a reason.", field="ids")
    ids, reason, after = given.get("ids", []), given.get("reason"), given.get("after", "")
    if "ids" in given and not (isinstance(ids, list) and 1 <= len(ids) <= MOST_IDS and all(map(_is_text, ids))):
        raise BadRequest(f"ids must be a list of 1 to {MOST_IDS} strings.", field="ids", value_class=kind_of(ids))
    if reason is not None and not _is_text(reason):
        raise BadRequest("reason must be a non-empty string.", field="reason", value_class=kind_of(reason))
    if not isinstance(after, str):
        raise BadRequest("after must be the next of an earlier answer.", field="after", value_class=kind_of(after))
    return ids, reason, after


def _lines(body: Any) -> list[Mapping[str, Any]]:
    if not isinstance(body, dict) or body.keys() != {"lines"}:
        raise BadRequest(
            "The body must be an object with the key lines alone.", field="body", value_class=kind_of(body)
        )
    lines = body["lines"]
    if not isinstance(lines, list) or not 1 <= len(lines) <= MOST_LINES or not all(isinstance(x, dict) for x in lines):
        raise BadRequest(
            f"lines must be a list of 1 to {MOST_LINES} objects.", field="lines", value_class=kind_of(lines)
        )
    return lines


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
