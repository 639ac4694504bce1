"""Stored fields are read by this release and by an older one, and what is no object is said to be unreadable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from millrace.ledger.domain.stored import known


@dataclass(frozen=True)
class Kept:
    failures: int = 0


def test_what_a_newer_release_adds_is_left_out() -> None:
    assert known(Kept, {"failures": 2, "since": 7}) == {"failures": 2}


@pytest.mark.parametrize("stored", [[], ["failures"], "failures", None, 7])
def test_what_is_no_object_is_not_read_as_one_without_fields(stored: Any) -> None:
    with pytest.raises(TypeError, match="A Kept is stored by its fields"):
        known(Kept, stored)
