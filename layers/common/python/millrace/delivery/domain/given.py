"""What an operator gives for a target, read setting by setting, on the hub and on a client alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millrace.delivery.domain.families import texts
from millrace.delivery.domain.kinds import Kind, Kinds
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.kinds import kind_of


@dataclass(frozen=True, slots=True)
class Given:
    """Settings by name. `where` is what stands before a name in messages. Everything here raises `BadRequest`."""

    settings: Mapping[str, Any]
    where: str = ""

    def check(self, types: Mapping[str, type | tuple[type, ...]]) -> None:
        """Every setting has one of these names, and its type."""
        for name, value in self.settings.items():
            if name not in types:
                rule = f"{self.where or 'A target'} has the fields {', '.join(types)} and no other."
                raise BadRequest(rule, field=self._field(str(name)[:64]))
            if not isinstance(value, types[name]):
                field = self._field(name)
                raise BadRequest(f"{field} has the wrong type.", field=field, value_class=kind_of(value))

    def kind(self, kinds: Kinds) -> Kind:
        return kinds[self._one_of("type", None, list(kinds))]

    def webhook(self, kind: Kind) -> bool:
        webhook = self._one_of("mode", "batch", ["batch", "webhook"]) == "webhook"
        if webhook and not kind.takes_webhook:
            field = self._field("mode")
            raise BadRequest(f"{field}: a target of type {kind.name} is no webhook.", field=field)
        return webhook

    def families(self) -> frozenset[str]:
        return texts(self.settings.get("families", ()), self._field("families"))

    def start_now(self) -> bool:
        return self._one_of("start", "retained", ["retained", "now"]) == "now"

    def paused(self) -> bool:
        return bool(self.settings.get("paused", False))

    def _one_of(self, name: str, default: str | None, allowed: Sequence[str]) -> str:
        value = self.settings.get(name, default)
        if value not in allowed:
            field = self._field(name)
            raise BadRequest(f"{field} is one of {', '.join(allowed)}.", field=field)
        return str(value)

    def _field(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name
