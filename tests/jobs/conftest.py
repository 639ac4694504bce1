"""One Spark session for all tests of the jobs."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pyspark.java_gateway
import pyspark.rdd
import pytest
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
        session = spark_session("millrace-tests", local=True, settings=QUICK)
        gateway = session.sparkContext._gateway
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()
        assert gateway
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
