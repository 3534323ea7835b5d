"""Parquet, through pyarrow, which is an optional extra."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from auxrnn.data.examples import Problems
from auxrnn.data.readers.rows import Columns, Layout, TableKind, TableRow
from auxrnn.errors import RunError, UsageError
from auxrnn.files import cannot_read

BATCH_ROWS = 256
"""How many rows are decoded at a time."""


def _read_columns(path: Path) -> Columns:
    with _open(path) as file:
        names = tuple(file.schema_arrow.names)
    double = [name for name in names if names.count(name) > 1]
    if double:
        raise RunError(f"{path} has two columns called {double[0]!r}; give each column a name of its own")
    return Columns(names, are_names=True)


def _read_rows(path: Path, layout: Layout, _problems: Problems) -> Iterator[TableRow]:
    """Yield the texts and the label of each row; no other column is decoded."""
    texts = [layout.names[index] for index in layout.text]
    labels = [] if layout.label is None else [layout.names[layout.label]]
    number = 0
    with _open(path) as file:
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=texts + labels, use_threads=False):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                number += 1
                yield TableRow(number, row[: len(texts)], row[-1] if labels else None)


def _measure(path: Path, layout: Layout) -> int:
    """Return the size of the texts before they were packed."""
    texts = {layout.names[index] for index in layout.text}
    with _open(path) as file:
        groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
        columns = [group.column(index) for group in groups for index in range(group.num_columns)]
        return sum(column.total_uncompressed_size for column in columns if column.path_in_schema in texts)


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    try:
        import pyarrow.parquet  # noqa: PLC0415 - optional
    except ImportError as error:
        raise UsageError(f"{path} is a Parquet file; to read it, pip install 'auxrnn[parquet]'") from error
    try:
        path.open("rb").close()
    except OSError as error:
        raise cannot_read(path, error) from error
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield file
    except Exception as error:  # pyarrow reports damage by many kinds of exception
        raise RunError(f"{path} cannot be read as Parquet (it is damaged or another format); write it again") from error


PARQUET = TableKind("Parquet", "row", _read_columns, _read_rows, _measure)
