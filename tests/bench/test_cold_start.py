"""What `make bench` imports of every function is what the function has."""

from __future__ import annotations

import pytest

from tests.bench.cold_start import FIRST_REQUEST, ROOT, _milliseconds, _variants


def test_every_function_is_measured() -> None:
    assert sorted(FIRST_REQUEST) == sorted(
        path.name for path in (ROOT / "functions").iterdir() if (path / "app.py").is_file()
    )


@pytest.mark.parametrize("function", FIRST_REQUEST)
def test_what_a_first_request_takes_can_be_imported(function: str) -> None:
    assert _milliseconds(*_variants()[f"{function}, first request"]) > 0
