"""Package: zip what the template names, put it into a bucket, and have the template name the objects instead.

The template is edited as text, line by line: whatever is not such a line goes out as it came.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from local.errors import LocalError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

ARTEFACT = re.compile(
    r"^(?P<lead>\s*(?:CodeUri|ContentUri|Location|TemplateURL):\s*)(?P<path>[\w./-]+)\s*$", re.MULTILINE
)
LEFT_OUT = {"Makefile", "requirements.in", "requirements.txt"}
THE_EPOCH_OF_ZIP = (1980, 1, 1, 0, 0, 0)


def package(template: Path, bucket: str, s3: S3Client) -> str:
    """The template's text with every local path uploaded and replaced by the address of its object."""
    if not template.is_file():
        raise LocalError(f"There is no {template}. If it is a built one: make build")
    s3.create_bucket(Bucket=bucket)

    def upload(match: re.Match[str]) -> str:
        source = template.parent / match["path"]
        if not source.exists():
            raise LocalError(f"{template} names {match['path']}, which does not exist.")
        content = zipped(source) if source.is_dir() else source.read_bytes()
        key = f"{source.name}/{hashlib.sha256(content).hexdigest()[:32]}{'.zip' if source.is_dir() else source.suffix}"
        s3.put_object(Bucket=bucket, Key=key, Body=content)
        # CloudFormation itself takes web addresses only; the other three properties are SAM's.
        store = s3.meta.endpoint_url if "TemplateURL" in match["lead"] else "s3:/"
        return f"{match['lead']}{store}/{bucket}/{key}"

    return ARTEFACT.sub(upload, template.read_text())


def zipped(folder: Path) -> bytes:
    """Equal content makes equal bytes, whenever and wherever it is zipped."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _files(folder):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), THE_EPOCH_OF_ZIP)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    return buffer.getvalue()


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and "__pycache__" not in inside.parts and inside.as_posix() not in LEFT_OUT:
            yield path
