"""What `make bench` imports of every function is what the function has."""

from __future__ import annotations

import pytest

from tests.bench.cold_start import FIRST_REQUEST, PRELOADED, ROOT, SNAPSHOT, _milliseconds, _variants


def test_every_function_is_measured() -> None:
    assert sorted(FIRST_REQUEST) == sorted(
        path.name for path in (ROOT / "functions").iterdir() if (path / "app.py").is_file()
    )


@pytest.mark.parametrize("function", FIRST_REQUEST)
def test_what_a_first_request_takes_can_be_imported(function: str) -> None:
    assert _milliseconds(*_variants()[f"{function}, first request"]) > 0


def test_a_function_that_is_not_listed_loads_what_it_would_load_before_a_snapshot() -> None:
    _, folders = _variants()["submit"]
    loaded = "import sys\nassert 'millrace.sync.application.submit' in sys.modules"
    assert _milliseconds(f"{SNAPSHOT}\nimport app\n{PRELOADED}\n{loaded}", folders) > 0


TAKES_MORE = {"archive", "lake", "deliver", "targets"}
"""S3 is reached by boto3, targets by urllib3, and their secrets are sealed with cryptography."""


@pytest.mark.parametrize("function", sorted(FIRST_REQUEST.keys() - TAKES_MORE))
def test_a_first_request_loads_neither_boto3_nor_a_token_library(function: str) -> None:
    """Tokens are HS256 unless a deployment names an issuer's keys; sealing waits for a grant that asks for it."""
    code, folders = _variants()[f"{function}, first request"]
    unwanted = ["boto3", "botocore.exceptions", "cryptography", "http.client", "jwt", "urllib3"]
    unwanted += [] if function == "publish" else ["pydantic"]
    check = f"import sys\nloaded = set({unwanted}) & set(sys.modules)\nassert not loaded, loaded"
    assert _milliseconds(f"{code}\n{check}", folders) > 0
