"""Templates as CloudFormation reads them: YAML with tags such as `!Ref` and `!Sub`."""

from __future__ import annotations

import pickle
from functools import lru_cache
from typing import Any

import yaml
from samtranslator.yaml_helper import intrinsics_multi_constructor

QUICK: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Written in C where PyYAML was built with it, and then ten times as fast."""


class _Loader(QUICK):  # type: ignore[misc]
    """A class of our own, since constructors are added to a class."""


_Loader.add_multi_constructor("!", intrinsics_multi_constructor)


def parse(text: str) -> Any:
    """What it gives is the caller's own. The same text is read once: a dozen writers of documents ask for it."""
    return pickle.loads(_parsed(text))  # noqa: S301 - our own bytes


@lru_cache(maxsize=4)
def _parsed(text: str) -> bytes:
    return pickle.dumps(yaml.load(text, Loader=_Loader))  # noqa: S506 - a safe loader
