"""Builds the operator's wheel: its commands, and the hub's adapters to AWS. The rules below them come with the client.

The two wheels have no file in common, so both can be installed beside each other.
"""

from __future__ import annotations

import atexit
import runpy
import shutil
import tempfile
from pathlib import Path

from setuptools import find_packages, setup

HUB = Path("../../layers/common/python")
ROOMS = ("delivery", "lake", "ledger", "streams", "sync")

build = tempfile.mkdtemp()  # what an earlier build left behind must not get into this one
atexit.register(shutil.rmtree, build, ignore_errors=True)
version = runpy.run_path(str(HUB / "millrace/version.py"))["VERSION"]
adapters = ["millrace.operators*", *(f"millrace.{room}.adapters*" for room in ROOMS)]
setup(
    version=version,
    install_requires=["boto3", f"millrace-client=={version}"],
    packages=[*find_packages(include=["millrace_operator*"]), *find_packages(str(HUB), include=adapters)],
    package_dir={"millrace": str(HUB / "millrace")},
    package_data={"millrace_operator": ["py.typed"]},
    options={"build": {"build_base": build}, "egg_info": {"egg_base": build}},
)
