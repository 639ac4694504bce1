"""Jobs: make what the Glue jobs run (`make jobs`). `make deploy` puts it into the hub's bucket.

The zip is Glue's `--extra-py-files`: the hub's own package and the jobs'. Glue brings Spark; a second zip holds the
wheels of what else they import, as it is pinned, so that a job downloads nothing when it starts.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from local.package import THE_EPOCH_OF_ZIP
from local.stack import ROOT

BUILD = ROOT / "build" / "jobs"
ZIP = "millrace.zip"
PACKAGES = (ROOT / "layers/common/python/millrace", ROOT / "glue_jobs")
PINNED = ROOT / "requirements" / "jobs.txt"
WHEELS = "millrace-jobs.gluewheels.zip"
GLUE = ("--python-version", "3.11", "--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64")
"""The Python and the system of Glue 5.1, whatever machine this is."""
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


def wheels(folder: Path = BUILD) -> Path:
    """Fetch the pinned wheels that are not there yet; their hashes are checked. Glue takes them as one zip."""
    fetched = folder / "wheels"
    fetched.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", *GLUE]
    where = ["--only-binary", ":all:", "--require-hashes", "--dest", str(fetched), "--requirement", str(PINNED)]
    subprocess.run([*pip, *where], check=True)
    return zipped(folder, pins(PINNED.read_text()))


def pins(text: str) -> list[str]:
    """`boto3==1.2.3` and so on, of a compiled requirement file."""
    return re.findall(r"^([a-z0-9._-]+==[^ \n]+)", text, re.MULTILINE)


def zipped(folder: Path, pinned: list[str]) -> Path:
    """The wheels of these pins and their list, in a folder `wheels` as Glue wants it; `LookupError` if one lacks."""
    with zipfile.ZipFile(folder / WHEELS, "w") as made:
        made.writestr(zipfile.ZipInfo("wheels/requirements.txt", THE_EPOCH_OF_ZIP), "\n".join(pinned) + "\n")
        for pin in pinned:
            wheel = _wheel(folder / "wheels", pin)
            made.writestr(zipfile.ZipInfo(f"wheels/{wheel.name}", THE_EPOCH_OF_ZIP), wheel.read_bytes())
    return folder / WHEELS


def _wheel(folder: Path, pin: str) -> Path:
    name, _, version = pin.partition("==")
    found = list(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
    if len(found) != 1:
        raise LookupError(f"{folder} has {len(found)} wheels of {pin}")
    return found[0]


def main() -> None:
    for path in (*build(), wheels()):
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
