"""JSON Lines: one object per line, whose keys are the columns."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from auxrnn.data.examples import ExampleError, Problems
from auxrnn.data.readers.lines import measure_text_file, open_lines
from auxrnn.data.readers.rows import Columns, Layout, TableKind, TableRow
from auxrnn.errors import RunError

MOST_SAMPLED = 100
"""How many objects are looked at for their keys: some may have no label."""

Object = dict[str, object]


def _read_columns(path: Path) -> Columns:
    noted = Problems(is_patient=True)
    objects = [entry for _number, entry in islice(_read_objects(path, noted), MOST_SAMPLED)]
    if not objects:
        raise RunError(noted.refused[0] if noted.refused else f"{path} has no rows; give it at least one")
    return Columns(tuple(dict.fromkeys(key for entry in objects for key in entry)), are_names=True)


def _read_rows(path: Path, layout: Layout, problems: Problems) -> Iterator[TableRow]:
    """Yield the texts and the label of each object; a label may be missing, a text may not."""
    keys = [layout.names[index] for index in layout.text]
    label_key = None if layout.label is None else layout.names[layout.label]
    for number, entry in _read_objects(path, problems):
        missing = [key for key in keys if key not in entry]
        if missing:
            problems.refuse(f"{path}, line {number}", f"has no {missing[0]!r}", "give it its text under this key")
        else:
            yield TableRow(number, [entry[key] for key in keys], None if label_key is None else entry.get(label_key))


def _read_objects(path: Path, problems: Problems) -> Iterator[tuple[int, Object]]:
    with open_lines(path, problems) as lines:
        for line in lines:
            if lines.is_clean and line.strip():
                try:
                    yield lines.number, _parse(line)
                except ExampleError as error:
                    problems.refuse(f"{path}, line {lines.number}", error.what, error.cure)
            lines.is_clean = True


def _parse(line: str) -> Object:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        at = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else "it is too large"
        raise ExampleError(f"is not JSON ({at})", "write each row as one object on one line") from error
    if not isinstance(value, dict):
        raise ExampleError("is JSON but not an object", 'write it as {"text": ...}')
    return value


JSON_LINES = TableKind("JSON Lines", "line", _read_columns, _read_rows, measure_text_file)
