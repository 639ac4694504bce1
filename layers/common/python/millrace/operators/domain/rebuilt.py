"""What a rebuild did, what it found wrong, and what nobody can know any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

EXAMPLES = 20
"""So many names of a finding are kept; all of them are counted."""
CONTRACT = "ledgers of "

CURSORS_AHEAD = "cursors_ahead"
TARGETS_AHEAD = "targets_ahead"
ARCHIVE_AHEAD = "archive_ahead"
UNREADABLE_OBJECTS = "unreadable_objects"
UNREADABLE_LEDGERS = "unreadable_ledgers"
PRUNED_SESSIONS = "pruned_sessions"
PRUNED_STREAMS = "pruned_streams"
UNKNOWN_MARKERS = "unknown_markers"

MEANINGS = {
    CURSORS_AHEAD: "State is newer than Log: a cursor stands above the newest position. Empty State and Index, and run "
    "again; do not let writers in before.",
    TARGETS_AHEAD: "Delivery is newer than Log: the target would miss new events at these positions. Restore Delivery "
    "to a time not after Log's, or delete the target and make it again.",
    ARCHIVE_AHEAD: "The archive has events of positions that Log lost. They stay in the archive and the tables; other "
    "events get the same positions.",
    UNREADABLE_OBJECTS: "Which positions this archive object holds is unknown. `millrace archive verify` says what is "
    "missing or archived twice.",
    UNREADABLE_LEDGERS: "This ledger could not be rebuilt and is not registered. Run again when its cause is gone.",
    PRUNED_SESSIONS: "The text of pruned utterances was in the stored transcript alone. The archive may have it; the "
    "hub's transcript begins after them.",
    PRUNED_STREAMS: "What pruned events told is gone: status is not complete, and a message whose transitions were "
    "pruned can begin again.",
    UNKNOWN_MARKERS: "The last change of this marker was pruned: it counts as deleted, at its last revision.",
}
"""Finding → what it means and what to do."""
MUST_BE_SEEN_TO = frozenset({CURSORS_AHEAD, TARGETS_AHEAD, ARCHIVE_AHEAD, UNREADABLE_OBJECTS, UNREADABLE_LEDGERS})


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something that was in State alone."""

    what: str
    means: str
    contract: str = ""
    """Whose ledgers it concerns; all, if empty."""


UNKNOWN = (
    Unknown("retention policies", "No policy is set, so nothing is pruned. Set them again (`PUT /v1/retention/…`)."),
    Unknown(
        "profiles of projects",
        "Projects take what the deployment says. Set their profiles again (`PUT /v1/projects/…/profile`).",
    ),
    Unknown(
        "fan-out cursors", "A connection that stayed open through the loss may be sent events of the last day again."
    ),
    Unknown("archive reservations", "Cursors follow the archive's objects. What is not in an object is archived anew."),
    Unknown(
        "realtime checkpoints",
        "A consumer that reads with `consumerId` begins at the oldest retained event, until it sets a checkpoint.",
        "realtime",
    ),
    Unknown(
        "realtime counters", "`invalid` and `deduped` begin at 0 again; `emitted` is counted from Log.", "realtime"
    ),
    Unknown(
        "negotiations",
        "Every runtime has to negotiate again; until then emit and poll answer SDK_RUNTIME_INVALID_STATE.",
        "streams",
    ),
    Unknown(
        "break-glass grants",
        "All have ended, and the raw values they kept can never be opened. The audit still tells who had them.",
        "streams",
    ),
    Unknown(
        "degraded subscriptions",
        "A subscription that lost history is told SDK_RUNTIME_CURSOR_EXPIRED once more before it is degraded.",
        "streams",
    ),
    Unknown(
        "changes not yet told",
        "A change of a marker or a message whose event was not committed yet is lost; send it again.",
        "streams",
    ),
    Unknown(
        "terminality of `sent`",
        "A message that is `sent` may still become `delivered`, also where `sent` was its end.",
        "streams",
    ),
)
"""What neither Log nor Claims tells."""


@dataclass(slots=True)
class Rebuilt:
    """May be told by many threads."""

    counts: Counter[str] = field(default_factory=Counter)
    found: dict[str, list[str]] = field(default_factory=dict)
    """Finding → the first names."""
    found_counts: Counter[str] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)

    def count(self, what: str, number: int = 1) -> None:
        if number:
            with self.lock:
                self.counts[what] += number

    def find(self, finding: str, name: str) -> None:
        """The same name again changes nothing, as far as names are kept."""
        with self.lock:
            names = self.found.setdefault(finding, [])
            if name not in names:
                self.found_counts[finding] += 1
                names += [name][: EXAMPLES - len(names)]

    @property
    def sound(self) -> bool:
        """Nothing has to be seen to."""
        return not MUST_BE_SEEN_TO & self.found.keys()

    def unknown(self) -> Sequence[Unknown]:
        """Only where State had forgotten ledgers, and of the contracts that they are of."""
        if not self.counts["forgotten"]:
            return ()
        return [one for one in UNKNOWN if not one.contract or self.counts[CONTRACT + one.contract]]

    def as_json(self) -> dict[str, Any]:
        with self.lock:
            return {
                "sound": self.sound,
                "counts": dict(sorted(self.counts.items())),
                "findings": {
                    name: {"count": self.found_counts[name], "names": list(names), "means": MEANINGS[name]}
                    for name, names in sorted(self.found.items())
                },
                "unknown": [{"what": one.what, "means": one.means} for one in self.unknown()],
            }

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Rebuilt:
        """As an interrupted run left it."""
        findings = stored["findings"]
        return cls(
            Counter(stored["counts"]),
            {name: list(finding["names"]) for name, finding in findings.items()},
            Counter({name: finding["count"] for name, finding in findings.items()}),
        )
