"""JSON Lines: one object a line, its keys are the columns."""

import json
from collections.abc import Iterator
from pathlib import Path

from auxrnn.data.examples import Problems
from auxrnn.data.tables.lines import Lines, open_text
from auxrnn.data.tables.rows import Layout, Row, Sample, take_sample, to_cell

Object = dict[str, object]

KINDS = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number", type(None): "null"}


def sample_json_lines(path: Path) -> Sample:
    """Give the first objects, each with all keys that any of them has."""
    noted = Problems(is_patient=True)
    names: dict[str, None] = {}
    objects: list[dict[str, str]] = []

    def collect() -> Iterator[list[str]]:
        for _, entry in _read_objects(path, noted):
            cells = {name: to_cell(value) for name, value in entry.items()}
            names.update(dict.fromkeys(cells))
            objects.append(cells)
            yield list(cells.values())

    take_sample(collect())
    fault = noted.refused[0] if noted.refused else None
    return Sample(tuple(names), [[cells.get(name, "") for name in names] for cells in objects], fault)


def read_json_lines(path: Path, layout: Layout, problems: Problems) -> Iterator[Row]:
    """Give the texts and the label of each object; a label may be missing, a text may not."""
    text_keys = [layout.names[index] for index in layout.text]
    label_key = None if layout.label is None else layout.names[layout.label]
    for number, entry in _read_objects(path, problems):
        missing = [key for key in text_keys if key not in entry]
        if missing:
            problems.refuse(f"{path}, line {number}", f"has no {missing[0]!r}", "give it its text under this key")
            continue
        label = None if label_key is None else entry.get(label_key)
        yield Row(number, [entry[key] for key in text_keys], label)


def _read_objects(path: Path, problems: Problems) -> Iterator[tuple[int, Object]]:
    with open_text(path) as file:
        lines = Lines(file, path, problems)
        for line in lines:
            if lines.is_clean and line.strip():
                entry = _parse(line, f"{path}, line {lines.number}", problems)
                if entry is not None:
                    yield lines.number, entry
            lines.start_row()


def _parse(line: str, place: str, problems: Problems) -> Object | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        at = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else "it is too large"
        problems.refuse(place, f"is not JSON ({at})", "write each row as one object on one line")
        return None
    if not isinstance(value, dict):
        problems.refuse(place, f"is {KINDS[type(value)]} where an object is wanted", 'write it as {"text": ...}')
        return None
    return value
