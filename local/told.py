"""What `make run`, `make stop` and `make status` say about the data: the same words, whoever says them."""

from __future__ import annotations

from datetime import datetime

from local.saves import Save


def moment(timestamp: str) -> str:
    """In the reader's own time zone."""
    return f"{datetime.fromisoformat(timestamp).astimezone():%Y-%m-%d %H:%M:%S}"


def beginning(save: Save, *, continued: bool) -> str:
    if continued:
        return f"It goes on with the data of {moment(save.saved_at)}."
    return f"It begins empty. Data of {moment(save.saved_at)} is kept and stays: make run KEEP=1 PORT={save.port}"


def what_stop_does(*, keeps_data: bool) -> str:
    return "its data is kept for the next run" if keeps_data else "what it stored goes with it"


def after_a_stop(save: Save | None) -> str:
    if save is None:
        return "what it stored is gone. To keep it next time: make run KEEP=1"
    return f"its data is kept. To go on with it: make run KEEP=1 PORT={save.port}"


def after_a_crash(save: Save | None) -> str:
    if save is None:
        return "What it stored is gone. To start again: make run"
    return (
        f"It was saved at {moment(save.saved_at)}; what was accepted after that is lost.\n"
        f"To go on from there: make run KEEP=1 PORT={save.port}"
    )
