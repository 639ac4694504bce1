"""What the name of a ledger, a target or a marker may be. It becomes part of keys, of paths and of messages.

Only what makes something new asks here. What was stored under another name is read as it is.
"""

from __future__ import annotations

import re

from millrace.ledger.domain.errors import BadRequest

MAX_NAME_BYTES = 128
UNFIT = "/?#%"
"""A gateway decodes a path before it routes: a name with one of these would be acknowledged and never found again."""
NAME = f"1 to {MAX_NAME_BYTES} bytes of printable characters, without / ? # %"
"""The rule in one phrase."""


WHITE_SPACE = r"\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What Unicode calls white space, and U+FEFF, which shows as nothing either; as a class of a regular expression."""
NOT_BLANK = f"[^{WHITE_SPACE}]"
"""A pattern that a text has if it is not blank, for JSON Schemas."""
_NOT_BLANK = re.compile(NOT_BLANK)


def is_blank(text: str) -> bool:
    """Whether it is empty, or white space alone."""
    return _NOT_BLANK.search(text) is None


def name_problem(name: str) -> str | None:
    """Why nothing new may have this name; None if it may."""
    if is_blank(name):
        return "must not be blank"
    if not name.isprintable():
        return "must be printable: no control characters, no lone surrogates, no code points without a character"
    if not set(name).isdisjoint(UNFIT):
        return "must not contain / ? # or %"
    if name in (".", ".."):
        return "must not be . or .., which a path loses"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"must be at most {MAX_NAME_BYTES} bytes of UTF-8"
    return None


def require_names(**names: str) -> None:
    """Each by the field that gave it; raises `BadRequest` for the first that nothing new may have."""
    for field, name in names.items():
        problem = name_problem(name)
        if problem is not None:
            raise BadRequest(f"{field} {problem}.", field=field, value_class="string")


def is_text(value: str) -> bool:
    """Whether UTF-8 can say it: a lone surrogate it cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in value)
