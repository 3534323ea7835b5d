"""Parquet, through pyarrow, which is an optional extra."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from auxrnn.data.examples import Problems
from auxrnn.data.tables.lines import cannot_read
from auxrnn.data.tables.rows import Layout, Row, Sample, Size, take_sample, to_cell
from auxrnn.errors import RunError, UsageError

BATCH_ROWS = 256
"""How many rows are decoded at a time."""


def sample_parquet(path: Path) -> Sample:
    """Give the first rows; columns that hold neither texts nor numbers are empty."""
    with _open(path) as file:
        names = tuple(file.schema_arrow.names)
        rows = take_sample(list(map(to_cell, row)) for row in _read_rows(file, names))
    double = [name for name in names if names.count(name) > 1]
    if double:
        raise RunError(f"{path} has two columns called {double[0]!r}; give each column a name of its own")
    return Sample(names, rows)


def read_parquet(path: Path, layout: Layout, _: Problems) -> Iterator[Row]:
    """Give the texts and the label of each row; no other column is decoded."""
    with _open(path) as file:
        picked = layout.text if layout.label is None else (*layout.text, layout.label)
        names = [layout.names[index] for index in picked]
        for number, row in enumerate(_read_rows(file, names), start=1):
            texts, label = row[: len(layout.text)], row[len(layout.text) :]
            yield Row(number, texts, label[0] if label else None)


def measure_parquet(path: Path, layout: Layout) -> Size:
    """Give the number of rows, and the size of the texts before they were packed."""
    with _open(path) as file:
        metadata = file.metadata
        groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
        columns = [group.column(index) for group in groups for index in range(group.num_columns)]
        wanted = {layout.names[index] for index in layout.text}
        sizes = [column.total_uncompressed_size for column in columns if column.path_in_schema in wanted]
        return Size(metadata.num_rows, sum(sizes))


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
        found = "it is damaged or of another kind"
        raise RunError(f"{path} cannot be read as Parquet ({found}); write it again") from error


def _read_rows(file: Any, names: Sequence[str]) -> Iterator[list[object]]:
    for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=list(names), use_threads=False):
        columns = [column.to_pylist() for column in batch.columns]
        yield from map(list, zip(*columns, strict=True))
