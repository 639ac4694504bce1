"""Jobs: make what the Glue jobs run, and put it into a deployed hub's bucket. `make jobs`, `make deploy-jobs`.

The zip is Glue's `--extra-py-files`: the hub's own package and the jobs'. Glue brings Spark and boto3.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from local.package import THE_EPOCH_OF_ZIP
from local.stack import ROOT

BUILD = ROOT / "build" / "jobs"
ZIP = "millrace.zip"
PACKAGES = (ROOT / "layers/common/python/millrace", ROOT / "glue_jobs")
SCRIPTS = {"compact.py": ROOT / "glue_jobs/compact/main.py", "retain.py": ROOT / "glue_jobs/retain/job.py"}


def build(folder: Path = BUILD) -> list[Path]:
    """Equal sources make equal bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / ZIP, "w", zipfile.ZIP_DEFLATED) as made:
        for name, path in _modules():
            entry = zipfile.ZipInfo(name, THE_EPOCH_OF_ZIP)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            made.writestr(entry, path.read_bytes())
    for name, source in SCRIPTS.items():
        (folder / name).write_bytes(source.read_bytes())
    return [folder / name for name in (ZIP, *SCRIPTS)]


def _modules() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            yield path.relative_to(package.parent).as_posix(), path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stack", help="put them into the bucket of this CloudFormation stack too")
    asked = parser.parse_args()
    made = build()
    for path in made:
        print(path.relative_to(ROOT))
    if asked.stack:
        try:
            outputs = boto3.client("cloudformation").describe_stacks(StackName=asked.stack)["Stacks"][0]["Outputs"]
            bucket = next(one["OutputValue"] for one in outputs if one["OutputKey"] == "ArchiveBucketName")
            for path in made:
                boto3.client("s3").upload_file(str(path), bucket, f"jobs/{path.name}")
        except (BotoCoreError, ClientError, StopIteration) as error:
            print(f"The jobs could not be put into the bucket of {asked.stack}: {error!r}", file=sys.stderr)
            return 1
        print(f"in s3://{bucket}/jobs/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
