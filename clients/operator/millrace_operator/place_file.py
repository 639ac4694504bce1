"""The file in which a long run keeps its place, so that a run that was killed can be started again and goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millrace_client.errors import Usage

FORMAT = 1


@dataclass(frozen=True, slots=True)
class PlaceFile:
    path: Path
    tables: str
    """Of which tables it is: what was saved for others is of no use."""

    def load(self) -> dict[str, Any] | None:
        try:
            content: dict[str, Any] = json.loads(self.path.read_text())
            ours = (content["format"], content["tables"]) == (FORMAT, self.tables)
            return dict(content["place"]) if ours else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Usage(f"{self.path} is not the place of a rebuild; remove it, or name another --place.") from error

    def save(self, content: Mapping[str, Any]) -> None:
        draft = self.path.with_name(self.path.name + ".new")
        try:
            draft.write_text(json.dumps({"format": FORMAT, "tables": self.tables, "place": content}))
            draft.replace(self.path)
        except OSError as error:
            raise Usage(f"{self.path} cannot be written: {error.strerror}. Name another --place.") from error

    def clear(self) -> None:
        self.path.unlink(missing_ok=True)
