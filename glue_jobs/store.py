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
    if store is None:
        return _embedded()
    objects = open_objects(store)
    if "://" not in store:
        return DirectWorkspace(objects, Path(store).absolute().as_uri() + "/")
    bucket, prefix = bucket_and_prefix(store)
    root = f"s3://{bucket}/{prefix}"
    return StagedWorkspace(objects, Path(stage), root) if stage else DirectWorkspace(objects, root)


def _embedded() -> Workspace:
    if not STACK_FILE.is_file():
        raise BadRequest("No hub runs here: start one with `make run`, or name a --store.", field="store")
    stack = local_stack(STACK_FILE)
    if not stack.get("archive_bucket"):
        raise BadRequest(f"{STACK_FILE} names no archive_bucket; name a --store.", field="store")
    root = f"s3://{stack['archive_bucket']}/"
    objects = open_objects(
        root,
        endpoint_url=stack["endpoint_url"],
        region_name=stack["region"],
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 -- the embedded stack has no real ones
    )
    return StagedWorkspace(objects, STAGE, root)
