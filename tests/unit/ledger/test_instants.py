"""R1: a date-time is compared as an instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.ledger.domain.instants import instant, moment

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = EPOCH.replace(year=2, tzinfo=None), EPOCH.replace(year=9998, tzinfo=None)
offsets = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(FIRST, LAST, timezones=offsets))
def test_it_is_the_nanoseconds_since_1970(when: datetime) -> None:
    assert moment(when.isoformat()) == (when - EPOCH) // timedelta(microseconds=1) * 1000


@pytest.mark.parametrize(
    "same",
    ["2026-02-16T10:00:00Z", "2026-02-16T10:00:00.0Z", "2026-02-16T10:00:00.000000000Z", "2026-02-16T10:00:00+00:00"],
)
def test_spellings_of_one_moment_are_equal(same: str) -> None:
    assert instant(same) == instant("2026-02-16T10:00:00.000Z")


def test_nanoseconds_do_not_collapse() -> None:
    assert instant("2026-02-16T10:00:00.000000001Z") - instant("2026-02-16T10:00:00Z") == 1


@pytest.mark.parametrize("text", ["2026-02-16T10:00:00+01:00", "2026-02-16T10:00:00-00:00", "2026-02-16T10:00:00"])
def test_an_instant_is_given_in_utc(text: str) -> None:
    with pytest.raises(ValueError, match="UTC"):
        instant(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Z",
        "2026-02-16",
        "2026-02-16T10:00Z",
        "2026-02-16 10:00:00Z",
        "2026-02-16t10:00:00Z",
        "2026-02-16T10:00:00.Z",
        "2026-02-16T10:00:00,5Z",
        "2026-02-16T10:00:00.1234567890Z",
        "2026-02-16T10:00:00Z\n",
        "２026-02-16T10:00:00Z",
        "2026-02-30T10:00:00Z",
        "0000-01-01T00:00:00Z",
        "2026-02-16T24:00:00Z",
        "2026-02-16T10:60:00Z",
        "2026-12-31T23:59:60Z",
        "2026-02-16T10:00:00+24:00",
        "2026-W08-1T10:00:00Z",
        "20260216T100000Z",
    ],
)
def test_another_form_or_a_day_that_never_was_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a|must be|out of range"):
        moment(text)
