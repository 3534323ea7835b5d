"""The command line of the stress tests."""

import argparse
import importlib
import os
import sys

NAMES = {
    "kills": "kill trainings, resume them, compare with runs that were never killed (--count kills)",
    "starts": "start two to four trainings at the same moment (--count rounds)",
    "flips": "flip single bits in run folders and in the cache (--count flips per file)",
    "soak": "watch memory, file handles and threads of one long training (--minutes)",
    "fuzz": "fuzz readers, configs, flags, streams and weight files (--count inputs, or --minutes)",
    "streams": "compare long and concurrent streams with reading at once",
}


def main() -> None:
    """Run one stress test; the exit code is 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m stress", description="Run one stress test, from the repository.")
    commands = parser.add_subparsers(required=True, metavar="NAME", dest="name")
    for name, text in NAMES.items():
        command = commands.add_parser(name, help=text, description=text)
        if name != "soak":
            command.add_argument("--count", type=int, help="how many (default: as in the docs)")
        if name in ("fuzz", "soak"):
            command.add_argument("--minutes", type=float, help="how long (default: as in the docs)")
        command.add_argument("--seed", type=int, default=0, help="of everything that is drawn (default: 0)")
        if name == "fuzz":
            command.add_argument("--only", default="", help="targets, with commas between (default: all)")
    given = vars(parser.parse_args())
    # Before torch is imported: forked processes inherit no threads.
    os.environ["OMP_NUM_THREADS"] = "1"
    module = importlib.import_module(f"stress.{given.pop('name')}")
    num_failures = module.main(**given)
    sys.exit(1 if num_failures else 0)


if __name__ == "__main__":
    main()
