"""Where a job works: in a bucket on AWS, in the embedded stack's bucket on a laptop, or in a directory."""

from __future__ import annotations

from pathlib import Path

from glue_jobs.workspace import DirectWorkspace, StagedWorkspace, Workspace
from millrace.lake.adapters.store import bucket_and_prefix, open_objects
from millrace.ledger.domain.errors import BadRequest
from millrace.operators.adapters.clients import local_stack

STACK_FILE = Path(".local") / "stack.json"
STAGE = Path(".local") / "stage"


def open_store(store: str | None, stage: str | None = None) -> Workspace:
    """`s3://bucket/prefix`, or a directory; nothing named: the bucket of the stack that runs here.

    With a `stage`, Spark works on files that are fetched from and put to S3, as it must where it has no S3 client.
    """
    address, settings = located(store)
    objects = open_objects(address, **settings)
    if "://" not in address:
        return DirectWorkspace(objects, Path(address).absolute().as_uri() + "/")
    bucket, prefix = bucket_and_prefix(address)
    root = f"s3://{bucket}/{prefix}"
    staged = stage if store else STAGE
    return StagedWorkspace(objects, Path(staged), root) if staged else DirectWorkspace(objects, root)


def located(store: str | None) -> tuple[str, dict[str, str]]:
    """A store's address and the settings of its AWS clients; nothing named: those of the stack that runs here."""
    if store is not None:
        return store, {}
    if not STACK_FILE.is_file():
        raise BadRequest("No hub runs here: start one with `make run`, or name a --store.", field="store")
    stack = local_stack(STACK_FILE)
    if not stack.get("archive_bucket"):
        raise BadRequest(f"{STACK_FILE} names no archive_bucket; name a --store.", field="store")
    settings = {
        "endpoint_url": stack["endpoint_url"],
        "region_name": stack["region"],
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
    }
    return f"s3://{stack['archive_bucket']}/", settings
