"""Jobs: make what the Glue jobs run (`make jobs`). `make deploy` puts it into the hub's bucket.

The zip is Glue's `--extra-py-files`: the hub's own package and the jobs'. Glue brings Spark; the wheels are boto3 and
what it needs, as they are pinned, so that a job downloads nothing when it starts.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from local.package import THE_EPOCH_OF_ZIP
from local.stack import ROOT

BUILD = ROOT / "build" / "jobs"
ZIP = "millrace.zip"
PACKAGES = (ROOT / "layers/common/python/millrace", ROOT / "glue_jobs")
PINNED = ROOT / "requirements" / "runtime.txt"
WHEELS = ("boto3", "botocore", "jmespath", "python-dateutil", "s3transfer", "six", "urllib3")
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


def wheels(folder: Path = BUILD) -> list[Path]:
    """Fetch the pinned wheels that are not there yet; their hashes are checked."""
    folder.mkdir(parents=True, exist_ok=True)
    pinned = pinned_wheels(PINNED.read_text())
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
        wanted.write("\n".join(pinned.values()))
        wanted.flush()
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        where = ["--only-binary", ":all:", "--require-hashes", "--dest", str(folder), "--requirement", wanted.name]
        subprocess.run([*pip, *where], check=True)
    return [_wheel(folder, name) for name in pinned]


def pinned_wheels(text: str) -> dict[str, str]:
    """`boto3-1.2.3` → its lines of a compiled requirement file, with the hashes."""
    found = {}
    for name in WHEELS:
        lines = re.search(rf"^{name}==(\S+) .*(?:\n    -+hash.*)+", text, re.MULTILINE)
        if lines is None:
            raise LookupError(f"{name} is not pinned with its hashes in {PINNED.name}")
        found[f"{name.replace('-', '_')}-{lines[1]}"] = lines[0]
    return found


def _wheel(folder: Path, name: str) -> Path:
    (path,) = folder.glob(f"{name}-*.whl")
    return path


def main() -> None:
    for path in (*build(), *wheels()):
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
