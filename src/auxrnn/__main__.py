"""Lets `python -m auxrnn` be the command line."""

import os

from auxrnn.cli import main
from auxrnn.executors.tethered import TETHERED, end_with_parent

if __name__ == "__main__":
    if TETHERED in os.environ:
        end_with_parent()
    main()
