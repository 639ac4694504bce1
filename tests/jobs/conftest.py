"""One Spark session for all tests of the jobs."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pyspark.java_gateway
import pyspark.rdd
import pytest
from py4j.java_gateway import JavaClass, JavaPackage, JVMView
from pyspark.sql import SparkSession

from glue_jobs.session import spark_session

QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Compiling a plan takes longer than interpreting it over a handful of rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
QUICK_ARGUMENTS = [part for name, value in QUICK.items() for part in ("--conf", f"{name}={value}")]


def remember_java_names(patch: pytest.MonkeyPatch) -> None:
    """For every column a program names, py4j asks Java what `functions` is, and Java looks for it in every package
    that could have it. That took a fifth of a run."""
    for kind in (JVMView, JavaPackage):
        look_up = kind.__getattr__

        def once(self: Any, name: str, look_up: Any = look_up) -> Any:
            found = look_up(self, name)
            if isinstance(found, (JavaClass, JavaPackage)):
                vars(self)[name] = found
            return found

        patch.setattr(kind, "__getattr__", once)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    connect: Callable[..., tuple[Any, socket.socket]] = pyspark.java_gateway.local_connect_and_auth

    def connect_and_let_go(*where: Any) -> tuple[Any, socket.socket]:
        """pyspark leaves every result's socket to the garbage collector; its file keeps it open long enough."""
        file, connection = connect(*where)
        connection.close()
        return file, connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyspark.rdd, "local_connect_and_auth", connect_and_let_go)
        remember_java_names(patch)
        session = spark_session("millrace-tests", local=True, settings=QUICK)
        gateway = session.sparkContext._gateway
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()
        assert gateway
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
