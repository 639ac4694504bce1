"""Events with secret values in them, each unique and each marked, under every name, spelling and depth (P1, P2)."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.streams_api import event

SECRET = ("message_payload", "auth_token", "private_key_material", "session_secret")
SENSITIVE = ("peer_id", "destination_hash", "correlation_id", "trace_id")
KINDS = ("HealthSnapshot", "ErrorRaised", "InterfaceStateChanged", "RuntimeStateChanged", "acme.radio.heard")
MISPLACED = (
    *("event_id", "ts_ms", "event_type", "severity", "source_component", "contract_version", "seq_no", "payload"),
    *("runtime_id", "stream_id", "message_id", "peer_id", "trace_id", "operation_id", "extensions", "mystery"),
)
"""Fields that hold something else than a list, and one that does not exist."""
MARK_LENGTH = 8
"""As many characters as truncation leaves of a value."""
DEEP = 15


def spellings(name: str) -> list[str]:
    words = name.split("_")
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    plain = ["".join(words), " ".join(words), "-".join(words), ".".join(words), "__".join(words), f"_{name}_"]
    wide = "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in name)
    odd = [wide, "\u200b".join(words), name.replace("s", "ſ"), name.replace("k", "\u212a"), name.swapcase()]
    cased = [name, name.upper(), name.title(), camel, camel[0].upper() + camel[1:], "-".join(words).title()]
    return [*cased, *plain, *odd]


@dataclass
class Maker:
    """Same seed, same shapes; the marks are new each time, so that a leftover of another run proves nothing."""

    rng: random.Random
    secret: str
    secret_number: str
    public: str
    raw: str
    made: int = 0
    names: list[str] = field(default_factory=lambda: [s for name in SECRET for s in spellings(name)])

    @classmethod
    def of(cls, seed: int) -> Maker:
        return cls(random.Random(seed), mark(), mark(string.digits, 12).replace("0", "7"), mark(), mark())

    def taint(self) -> dict[str, Any]:
        """A secret value under one of its names; each value is made once."""
        self.made += 1
        text = f"{self.secret}-{self.made}-{self.rng.randrange(10**9)}"
        shapes: list[Callable[[], Any]] = [
            lambda: text,
            lambda: int(f"{self.secret_number}{self.made:05d}"),
            lambda: [text, {"inner": f"{text}-listed"}],
            lambda: {"value": text, f"{text}-as-a-name": 1, "peer_id": f"{text}-sensitive inside a secret"},
            lambda: text * 40,
            lambda: {"a": {"b": [{"c": text}]}},
        ]
        return {self.names[self.made % len(self.names)]: self.rng.choice(shapes)()}

    def note(self) -> str:
        return f"{self.public}-{self.made}"

    def buried(self, depth: int) -> dict[str, Any]:
        """An object that holds a secret `depth` levels down, with things to keep around it."""
        inner: dict[str, Any] = {"note": self.note(), **self.taint()}
        for level in range(depth):
            wrap = self.rng.randrange(5)
            if wrap == 0:
                inner = {"level": level, "list": [1, None, [inner], "x"]}
            elif wrap == 1:
                inner = {self.rng.choice(SENSITIVE): {"of": f"{self.raw}-{self.made}", "with": inner}}
            elif wrap == 2:
                inner = {**self.taint(), "next": inner}
            else:
                inner = {"next": inner}
        return inner

    def good(self, id_: str, **changes: Any) -> dict[str, Any]:
        depth = self.rng.choice([0, 1, 2, 3, 5, 8])
        if self.rng.random() < 0.02:
            depth = DEEP
        made = event(
            id_,
            event_type=self.rng.choice(KINDS),
            payload={"note": self.note(), "to": "up", "interface": "if0", **self.buried(depth)},
        )
        if self.rng.random() < 0.5:
            made |= self.taint()
        if self.rng.random() < 0.5:
            made["extensions"] = {"vendor": self.buried(self.rng.randrange(4)), **self.taint()}
        for name in self.rng.sample(("peer_id", "correlation_id", "trace_id"), 2):
            made[name] = f"{self.raw}-{self.rng.randrange(10**6)}"
        return {**made, **changes}

    def bad(self, id_: str) -> list[tuple[Any, str]]:
        """Events refused for every other reason, with the code each is refused with."""
        invalid = "SDK_VALIDATION_INVALID_ARGUMENT"
        wrong = [(self.good(id_, **{name: [self.buried(1)]}), invalid) for name in MISPLACED]
        large = self.good(id_)
        large["payload"]["filler"] = "x" * 70_000
        transition = {"event_type": "DeliveryStateTransition", "message_id": id_}
        return [
            *wrong,
            ([self.taint()], invalid),
            (large, "SDK_VALIDATION_EVENT_TOO_LARGE"),
            (self.good(id_, payload={"message_payload": self.secret * 10_000}), "SDK_VALIDATION_EVENT_TOO_LARGE"),
            (self.good(id_, extensions={"x": "y" * 99_000, **self.taint()}), "SDK_VALIDATION_EVENT_TOO_LARGE"),
            (
                self.good(id_, extensions={str(n): self.taint() for n in range(33)}),
                "SDK_VALIDATION_MAX_EXTENSION_KEYS_EXCEEDED",
            ),
            (self.good(id_, event_type="Nonsense"), invalid),
            (self.good(id_, event_type="sdk.of.ours"), invalid),
            (self.good(id_, event_type="ExtensionEvent", payload=self.buried(1)), invalid),
            (self.good(id_, **transition, payload={**self.buried(1), "to": self.taint()}), invalid),
        ]


def mark(letters: str = string.ascii_lowercase + string.digits, length: int = MARK_LENGTH) -> str:
    return "".join(random.SystemRandom().choice(letters) for _ in range(length))
