"""trainwreck breaks training runs on purpose, and checks what follows.

The command is `trainwreck`, or `python3 -m trainwreck`.
"""

__version__: str


def __getattr__(name: str) -> str:
    # The wheel's version is that of its program. It is looked up late: that costs longer than the
    # rest of a start.
    if name == "__version__":
        from importlib.metadata import version

        return version("trainwreck")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
