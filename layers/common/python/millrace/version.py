"""The version this code says it is."""

VERSION = "0.1.0"
