"""``python -m seedrank`` and the ``seedrank`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
    from seedrank.jobs.cli.main import run  # noqa: PLC0415  # click is loaded only for the command

    sys.exit(run(sys.argv[1:], own_process=True))


if __name__ == "__main__":
    main()
