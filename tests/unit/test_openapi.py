"""R10's neighbour for sync: the served description is valid and never stale."""

from __future__ import annotations

import pytest
from openapi_spec_validator import validate

from infra.openapi.build import META, document, files
from infra.openapi.models import SubmitRequest, SyncRequest


def test_the_document_is_valid_openapi() -> None:
    validate(document())


@pytest.mark.parametrize("name", ["openapi.json", "docs.html"])
def test_the_committed_file_is_not_stale(name: str) -> None:
    assert files()[META / name] == (META / name).read_text(), "run: make openapi"


def test_the_models_take_what_the_readme_sends() -> None:
    item = {"id": "e1", "partitions": ["a"], "event": {"type": "t", "payload": None}, "meta": {"x": 1}}
    SubmitRequest.model_validate({"events": [item]})
    SyncRequest.model_validate({"since_committed_id": 0})


def test_the_page_names_every_route() -> None:
    page = files()[META / "docs.html"]
    assert all(path in page for path in document()["paths"])
