"""Lets `python -m auxrnn` be the command line."""

from auxrnn.cli import main

if __name__ == "__main__":
    main()
