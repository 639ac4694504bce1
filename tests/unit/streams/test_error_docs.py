"""The catalogue of the streams contract's errors is what the code says (T12)."""

from __future__ import annotations

import pytest

from infra import error_docs
from millrace.ledger.domain import errors
from millrace.streams.domain.errors import InternalError, SdkError, as_sdk_error, catalogue


def test_the_committed_page_is_not_stale() -> None:
    assert error_docs.PAGE.read_text() == error_docs.page()


@pytest.mark.parametrize("kind", catalogue(), ids=lambda kind: kind.code)
def test_t12_an_error_says_what_it_is_and_what_to_do(kind: type[SdkError]) -> None:
    body = kind("Why.", field="f").body()
    assert list(body) == ["machine_code", "category", "retryable", "is_user_actionable", "message", "details"]
    assert kind.code.startswith(f"SDK_{body['category'].upper()}_")
    assert kind.advice.endswith(".")
    assert kind.__doc__


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in catalogue()]
    assert len(set(codes)) == len(codes)


def test_every_error_of_the_core_has_an_sdk_form() -> None:
    """T12: whatever goes wrong below, the caller gets one of the catalogue's objects."""
    kinds = [errors.BadRequest, errors.AuthFailed, errors.Forbidden, errors.NotFound, errors.TooLarge]
    kinds += [errors.Unavailable, errors.Contention, errors.Throttled]  # type: ignore[list-item]
    for kind in kinds:
        said = as_sdk_error(kind("Why.", field="f"))
        assert said.status == kind.status
        assert not isinstance(said, InternalError)
        assert said.details == {"field": "f"}
    assert as_sdk_error(errors.MillraceError("Why.")).status == 500
