"""Jobs: make what the Glue jobs run (`make jobs`). `make deploy` puts it into the hub's bucket.

The zip is Glue's `--extra-py-files`: the hub's own package and the jobs'. Glue brings Spark and boto3.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

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


def main() -> None:
    for path in build():
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
