from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millrace.ledger.adapters.dynamodb.keys import ledger_of
from millrace.ledger.domain.names import BUCKET, Ledger, bucket_end, bucket_of, join_key, split_key

parts = st.lists(st.text(st.sampled_from("ab#%23"), max_size=4), min_size=1, max_size=4)


@given(parts, parts)
def test_different_parts_never_give_the_same_key(one: list[str], other: list[str]) -> None:
    assert (join_key(*one) == join_key(*other)) == (one == other)


@given(parts)
def test_a_key_can_be_taken_apart(one: list[str]) -> None:
    assert split_key(join_key(*one)) == one


def test_two_tenants_with_telling_names_do_not_share_a_ledger() -> None:
    assert Ledger.of("sync", "a#b", "c") != Ledger.of("sync", "a", "b#c")


@given(st.text(st.sampled_from("ab#%"), min_size=1), st.integers(0, 10**6))
def test_a_stream_record_names_its_ledger(project: str, bucket: int) -> None:
    ledger = Ledger.of("sync", "default", project)
    assert ledger_of(f"{ledger.name}#{bucket}") == ledger.name


def test_buckets_are_arithmetic() -> None:
    assert [bucket_of(1), bucket_of(BUCKET), bucket_of(BUCKET + 1)] == [0, 0, 1]
    assert [bucket_end(1), bucket_end(BUCKET), bucket_end(BUCKET + 1)] == [BUCKET, BUCKET, 2 * BUCKET]
