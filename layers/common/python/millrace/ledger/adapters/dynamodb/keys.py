"""Reads keys of the log's stream. It imports nothing, because functions without tables use it too."""


def ledger_of(bucket_key: str) -> str:
    """The ledger's name inside the log's partition key, as a stream record carries it."""
    return bucket_key.rpartition("#")[0]
