"""Long attacks on the library, each of which ends with a figure for docs: `python -m stress NAME`."""
